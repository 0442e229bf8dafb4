// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"fmt"
	"regexp"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	driver "github.com/machine-functions/machine-functions/shared/provider/libvirt"
)

// Eight instances come to run, one each, and go without leaving anything, while the daemon is killed again and again; those that run go on
// meanwhile.
func TestInstancesWhileTheDaemonIsKilled(t *testing.T) { //nolint:paralleltest // the suite beside it needs the daemon
	folder(t)
	const uri, n = "qemu+tls://127.0.0.1/system", 8
	connect(t, "qemu:///system").prepare(t)
	d, err := driver.Provider().Open(t.Context(), account(t, uri))
	must(t, err)
	resolved, err := d.Resolve(t.Context(), spec(t, uri, map[string]any{"networkInterfaceAddress": "192.168.126.0/24"}))
	must(t, err)
	killed, stop := 0, make(chan struct{})
	var killing sync.WaitGroup
	killing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(3 * time.Second): // since it answers
				signal(t, syscall.SIGKILL)
				killed++
			}
			for answers := false; !answers; time.Sleep(50 * time.Millisecond) {
				_, err := d.List(t.Context())
				answers = err == nil
			}
		}
	})
	refs := make([]provider.Ref, n)
	all := func(what string, step func(*provider.Ref) bool) {
		var wg sync.WaitGroup
		turns := make(chan struct{}, 3)
		for i := range refs {
			wg.Go(func() {
				turns <- struct{}{}
				defer func() { <-turns }()
				for end := time.Now().Add(2 * time.Minute); !step(&refs[i]); time.Sleep(50 * time.Millisecond) {
					if time.Now().After(end) {
						t.Errorf("%s: not %s", refs[i].Name, what)
						return
					}
				}
			})
		}
		wg.Wait()
	}
	for i := range refs {
		uid := uuid.NewUUID()
		refs[i] = provider.Ref{UID: uid, Name: fmt.Sprintf("worker-%d", i), Token: machine.Token(uid, 1, "zone")}
	}
	begin := time.Now()
	all("running", func(r *provider.Ref) bool {
		in, err := d.Create(t.Context(), *r, resolved)
		if len(in.Progress) > 0 {
			r.Progress = in.Progress
		}
		return err == nil && in.State == provider.StateRunning
	})
	t.Logf("%d instances run after %.0fs; the daemon was killed %d times", n, time.Since(begin).Seconds(), killed)
	begin = time.Now()
	all("gone", func(r *provider.Ref) bool { return provider.CodeOf(d.Delete(t.Context(), *r)) == provider.NotFound })
	close(stop)
	killing.Wait()
	t.Logf("all are gone after %.0fs; the daemon was killed %d times", time.Since(begin).Seconds(), killed)
	eventually(t, "the daemon answers", time.Minute, func() bool {
		left, err := d.List(t.Context())
		return err == nil && len(left) == 0
	})
	if left := connect(t, "qemu:///system").ours(t, "ocp43", "ocp43", "rhcos-ocp43"); left != 0 {
		t.Errorf("%d volumes and reservations are left", left)
	}
}

// A host is the same after its daemon has started anew, also where that reads no UUID of a board and invents one.
func TestHostIsTheSameAfterwards(t *testing.T) { //nolint:paralleltest // it kills the daemon
	d, r, _ := begun(t, "recorded") // defined, so that the host keeps who it is
	capabilities := regexp.MustCompile(`<uuid>[^<]*</uuid>`)
	told := func() string {
		text, err := connect(t, "qemu:///system").Capabilities()
		must(t, err)
		return capabilities.FindString(string(text))
	}
	identity := func(d provider.Driver) (id string, err error) { return d.(provider.Identified).Identity(t.Context()) }
	before, err := identity(d)
	must(t, err)
	says := told()
	signal(t, syscall.SIGKILL)
	eventually(t, "the daemon answers", time.Minute, func() bool {
		_, err := d.List(t.Context())
		return err == nil
	})
	again, err := driver.Provider().Open(t.Context(), account(t, "qemu+tls://127.0.0.1/system"))
	must(t, err)
	after, err := identity(again)
	must(t, err)
	if before != after || before == "" {
		t.Errorf("it was %q, and is %q", before, after)
	}
	t.Logf("its capabilities said %s, and say %s", says, told())
	eventually(t, "it is gone", time.Minute, func() bool { return provider.CodeOf(again.Delete(t.Context(), r)) == provider.NotFound })
}
