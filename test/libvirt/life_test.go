// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"bytes"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	driver "github.com/machine-functions/machine-functions/shared/provider/libvirt"
)

// One life on qemu: a volume over the base, user data in the firmware, an address by DHCP, off and on, and nothing left.
func TestLife(t *testing.T) { //nolint:paralleltest // the suite beside it counts what there is
	folder(t)
	const uri = "qemu+tls://127.0.0.1/system"
	a := connect(t, "qemu:///system")
	a.prepare(t)
	d, err := driver.Provider().Open(t.Context(), account(t, uri))
	must(t, err)
	resolved, err := d.Resolve(t.Context(), spec(t, uri, map[string]any{"networkInterfaceAddress": "192.168.126.200", "autostart": true}))
	must(t, err)
	uid := uuid.NewUUID()
	r := provider.Ref{UID: uid, Name: "worker-a", Token: machine.Token(uid, 1, "zone")}
	begin := time.Now()
	var in provider.Instance
	for in.State != provider.StateRunning {
		in, err = d.Create(t.Context(), r, resolved)
		must(t, err)
		r.Progress = in.Progress
	}
	t.Logf("%s runs after %.1fs: %s", in.Name, time.Since(begin).Seconds(), in.ProviderID)
	eventually(t, "it has its address", time.Minute, func() bool {
		found, err := d.Find(t.Context(), r)
		must(t, err)
		return strings.Contains(fmt.Sprint(found[0].Addresses), string(corev1.NodeInternalIP)+" 192.168.126.200")
	})
	t.Logf("it has its address after %.1fs", time.Since(begin).Seconds())
	ref, err := a.DomainLookupByName("worker-a")
	must(t, err)
	p, err := a.StoragePoolLookupByName("ocp43")
	must(t, err)
	vols, _, err := a.StoragePoolListAllVolumes(p, 1, 0)
	must(t, err)
	for _, v := range vols {
		if strings.HasSuffix(v.Name, ".ignition") {
			var got bytes.Buffer
			must(t, a.StorageVolDownload(v, &got, 0, 0, 0))
			if got.String() != userData {
				t.Errorf("the guest reads %q", got.String())
			}
		}
	}
	power := d.(provider.PowerSwitch)
	must(t, power.PowerOff(t.Context(), r))
	if on, err := a.DomainGetAutostart(ref); err != nil || on != 0 {
		t.Errorf("held off it starts with its host: %d, %v", on, err)
	}
	must(t, power.PowerOn(t.Context(), r))
	if on, err := a.DomainGetAutostart(ref); err != nil || on != 1 {
		t.Errorf("let go it does not start with its host: %d, %v", on, err)
	}
	must(t, d.(provider.PowerCycler).PowerCycle(t.Context(), r))
	eventually(t, "it runs again", time.Minute, func() bool {
		found, err := d.Find(t.Context(), r)
		must(t, err)
		return found[0].State == provider.StateRunning && found[0].ID == in.ID
	})
	begin = time.Now()
	eventually(t, "it is gone", time.Minute, func() bool { return provider.CodeOf(d.Delete(t.Context(), r)) == provider.NotFound })
	if n := a.ours(t, "ocp43", "ocp43", "rhcos-ocp43"); n != 0 {
		t.Errorf("%d volumes and reservations are left", n)
	}
	t.Logf("gone after %.1fs", time.Since(begin).Seconds())
}

// With cloud-init the guest has a second disk; what people keep of a domain, its saved state and snapshots, goes with it.
func TestLifeWithCloudInit(t *testing.T) { //nolint:paralleltest // the suite beside it counts what there is
	folder(t)
	const uri = "qemu+tcp://127.0.0.1/system"
	a := connect(t, "qemu:///system")
	a.prepare(t)
	d, err := driver.Provider().Open(t.Context(), account(t, uri))
	must(t, err)
	resolved, err := d.Resolve(t.Context(), spec(t, uri, map[string]any{"ignition": nil, "cloudInit": map[string]any{"userDataSecret": "worker-user-data"}}))
	must(t, err)
	uid := uuid.NewUUID()
	r := provider.Ref{UID: uid, Name: "worker-c", Token: machine.Token(uid, 1, "zone")}
	var in provider.Instance
	for in.State != provider.StateRunning {
		in, err = d.Create(t.Context(), r, resolved)
		must(t, err)
		r.Progress = in.Progress
	}
	ref, err := a.DomainLookupByName("worker-c")
	must(t, err)
	text, err := a.DomainGetXMLDesc(ref, 0)
	must(t, err)
	if strings.Count(text, "<disk ") != 2 || !strings.Contains(text, ".cloudinit") {
		t.Errorf("the domain is %s", text)
	}
	_, err = a.DomainSnapshotCreateXML(ref, "<domainsnapshot><name>before</name></domainsnapshot>", 0)
	if err != nil {
		t.Logf("no snapshot: %v", err)
	}
	if err := a.DomainManagedSave(ref, 0); err != nil {
		t.Logf("not saved: %v", err)
	}
	found, err := d.Find(t.Context(), r)
	if err != nil || len(found) != 1 || found[0].ID != in.ID {
		t.Errorf("found %+v, %v", found, err)
	}
	eventually(t, "it is gone", time.Minute, func() bool { return provider.CodeOf(d.Delete(t.Context(), r)) == provider.NotFound })
	if n := a.ours(t, "ocp43", "ocp43", "rhcos-ocp43"); n != 0 {
		t.Errorf("%d volumes and reservations are left", n)
	}
}

// The same daemon by each way to it, and the host's own id.
func TestWays(t *testing.T) {
	t.Parallel()
	state, ids := folder(t), map[string]bool{}
	for _, uri := range []string{
		"qemu+tls://127.0.0.1/system", "qemu://127.0.0.1/system", "qemu+tls://127.0.0.1:16514/system?no_verify=1", "qemu+tcp://127.0.0.1/system",
		"qemu+unix:///system?socket=" + filepath.Join(state, socket), "qemu:///system",
	} {
		d, err := driver.Provider().Open(t.Context(), account(t, uri))
		must(t, err)
		_, err = d.List(t.Context())
		if err != nil {
			t.Errorf("%s: %v", uri, err)
			continue
		}
		id, err := d.(provider.Identified).Identity(t.Context())
		must(t, err)
		ids[id] = true
		must(t, d.(provider.Closer).Close(t.Context()))
	}
	if len(ids) != 1 || ids[""] {
		t.Errorf("the host is called %v", ids)
	}
	a := account(t, "qemu+tls://127.0.0.1/system")
	delete(a.Credentials, "tls.crt")
	delete(a.Credentials, "tls.key")
	d, err := driver.Provider().Open(t.Context(), a)
	must(t, err)
	if _, err := d.List(t.Context()); err == nil {
		t.Error("without a certificate the daemon answers")
	} else {
		t.Logf("without a certificate: %v", err)
	}
}
