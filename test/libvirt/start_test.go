// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	driver "github.com/machine-functions/machine-functions/shared/provider/libvirt"
)

// begun is a domain that has yet to be started, and how to go on with it.
func begun(t *testing.T, name string) (provider.Driver, provider.Ref, func() (provider.Instance, error)) {
	t.Helper()
	folder(t)
	const uri = "qemu+tls://127.0.0.1/system"
	connect(t, "qemu:///system").prepare(t)
	d, err := driver.Provider().Open(t.Context(), account(t, uri))
	must(t, err)
	resolved, err := d.Resolve(t.Context(), spec(t, uri, nil))
	must(t, err)
	uid := uuid.NewUUID()
	r := provider.Ref{UID: uid, Name: name, Token: machine.Token(uid, 1, "zone")}
	in, err := d.Create(t.Context(), r, resolved)
	must(t, err)
	r.Progress = in.Progress
	return d, r, func() (provider.Instance, error) { return d.Create(t.Context(), r, resolved) }
}

// A domain whose hypervisor hangs at its start, which the daemon waits for, is removed all the same.
func TestStartThatHangs(t *testing.T) { //nolint:paralleltest // the suite beside it counts what there is
	d, r, create := begun(t, "hangs")
	if in, err := create(); err == nil {
		t.Fatalf("%+v", in)
	}
	begin := time.Now()
	eventually(t, "it is gone", time.Minute, func() bool {
		err := d.Delete(t.Context(), r)
		return provider.CodeOf(err) == provider.NotFound
	})
	t.Logf("removed after %.1fs", time.Since(begin).Seconds())
}

// A domain whose hypervisor takes a while, and fails then, is never taken for one that was made.
func TestStartThatFails(t *testing.T) { //nolint:paralleltest // the suite beside it counts what there is
	d, r, create := begun(t, "fails")
	done := make(chan error, 1)
	go func() {
		_, err := create()
		done <- err
	}()
	paused := 0
	for over := false; !over; time.Sleep(100 * time.Millisecond) {
		found, err := d.Find(t.Context(), r)
		if err != nil || len(found) != 1 || found[0].State != provider.StateIncomplete {
			t.Fatalf("found %+v, %v", found, err)
		}
		if found[0].CloudState == "paused" {
			paused++
			if in, err := create(); err == nil && in.State != provider.StateIncomplete {
				t.Errorf("Create = %+v, %v", in, err)
			}
		}
		select {
		case err := <-done:
			over = true
			if provider.CodeOf(err) != provider.Exhausted {
				t.Errorf("the first caller has %v", err)
			}
		default:
		}
	}
	if paused == 0 {
		t.Error("nobody saw it while it was being started")
	}
	eventually(t, "it is gone", time.Minute, func() bool { return provider.CodeOf(d.Delete(t.Context(), r)) == provider.NotFound })
}
