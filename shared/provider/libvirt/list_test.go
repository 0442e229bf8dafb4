// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"fmt"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/test/libvirtd"
)

// A list costs two requests for each domain of the host, one more for each of the cluster's that runs, and one for each pool: no lookup,
// and no volume by itself.
func TestWhatAListCosts(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	const ours, others = 5, 40
	for i := range ours {
		_, _, err := created(t, d, fmt.Sprintf("worker-%d", i), specOf(uriOf(l), nil))
		must(t, err)
	}
	for i := range others {
		must(t, l.Define(fmt.Sprintf("<domain type='kvm'><name>other-%d</name><uuid>%s</uuid><memory unit='MiB'>1</memory></domain>", i, uuid.NewUUID())))
	}
	l.AddPool("images", "dir")
	var mu sync.Mutex
	asked := map[string]int{}
	l.Strike(func(p string) libvirtd.Fault {
		mu.Lock()
		defer mu.Unlock()
		asked[p]++
		return libvirtd.None
	})
	all, err := d.List(t.Context())
	must(t, err)
	l.Strike(nil)
	want := map[string]int{
		"ConnectListAllStoragePools": 1, "StoragePoolListAllVolumes": 2, "ConnectListAllDomains": 1, "DomainGetXMLDesc": ours + others, "DomainGetState": ours + others, "DomainInterfaceAddresses": ours,
	}
	if len(all) != ours || fmt.Sprint(asked) != fmt.Sprint(want) {
		t.Errorf("%d instances for %v, want %v", len(all), asked, want)
	}
}

// Beside domains that go all the time a list ends, and has those that stay; their volumes are what they left.
func TestListBesideDomainsThatGo(t *testing.T) {
	t.Parallel()
	for _, procedure := range []string{"DomainGetXMLDesc", "DomainGetState", "DomainInterfaceAddresses"} {
		l := newDaemon(t)
		d := opened(t, l)
		for _, name := range []string{"worker-a", "worker-b"} {
			_, _, err := created(t, d, name, specOf(uriOf(l), nil))
			must(t, err)
		}
		l.Strike(func(p string) libvirtd.Fault {
			if p == procedure {
				l.Undefine("worker-b")
			}
			return libvirtd.None
		})
		all, err := d.List(t.Context())
		must(t, err)
		stays := 0
		for _, i := range all {
			if i.Name == "worker-a" {
				stays++
			}
		}
		if stays != 1 || len(all) > 3 {
			t.Errorf("%s: %+v", procedure, all)
		}
		l.Strike(nil)
		if all, err = d.List(t.Context()); err != nil || len(all) != 3 {
			t.Errorf("%s: then %+v, %v", procedure, all, err)
		}
	}
}
