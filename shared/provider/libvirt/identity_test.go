// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"slices"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

func identityOf(t *testing.T, d *driver) string {
	t.Helper()
	id, err := d.Identity(t.Context())
	must(t, err)
	return id
}

// anew starts a daemon anew, on another board, and waits until a driver has seen that.
func anew(t *testing.T, l *libvirtd.Daemon, d *driver, serial byte) {
	t.Helper()
	l.Board(serial)
	for alive := true; alive; time.Sleep(time.Millisecond) {
		d.session.mu.Lock()
		alive = slices.ContainsFunc(d.session.idle, func(l *daemon) bool { return l.conn.alive() })
		d.session.mu.Unlock()
	}
}

// A daemon that calls its host otherwise at each start is the same to all records: what is being made goes on, what is being removed goes,
// and what was left is listed.
func TestHostThatInventsItsUUID(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	before := identityOf(t, d)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	going, _, err := created(t, d, "going", specOf(uriOf(l), nil))
	must(t, err)
	left, _, err := created(t, d, "left", specOf(uriOf(l), nil))
	must(t, err)
	midway := refOf("midway")
	in, err := d.Create(t.Context(), midway, resolved)
	must(t, err)
	midway.Progress = in.Progress
	l.Activate(libvirtd.Pool, false)
	wantError(t, d.Delete(t.Context(), going), provider.Exhausted, "going", "not active")
	l.Activate(libvirtd.Pool, true)
	l.Undefine("left")
	for serial := range byte(2) {
		anew(t, l, d, serial)
		for what, again := range map[string]*driver{"the driver of before": d, "another": opened(t, l)} {
			if now := identityOf(t, again); now != before {
				t.Errorf("%s says that the host is %q, and was %q", what, now, before)
			}
			all, err := again.List(t.Context())
			children := 0
			for _, i := range all {
				if i.Child && i.UID == left.UID {
					children++
				}
			}
			if err != nil || len(all) != 4 || children != 2 {
				t.Errorf("%s lists %+v, %v", what, all, err)
			}
		}
	}
	again := opened(t, l)
	removed(t, again, going)
	removed(t, again, left)
	if in, err := proceed(t.Context(), again, &midway, resolved); err != nil || in.State != provider.StateRunning || l.Children() != 2 {
		t.Errorf("%+v, %v, %d children", in, err, l.Children())
	}
}

// Before anything is made there a host is whom it says; from then on it is who Machines recorded that it was.
func TestHostIsWhoWasRecorded(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	first := identityOf(t, d)
	anew(t, l, d, 7)
	second := identityOf(t, d)
	if first != "4c4c4544-0043-1046-8035-b7c04f4d3132 qemu:///system" || first == second {
		t.Errorf("it is %q, then %q", first, second)
	}
	anew(t, l, d, 8) // between the record and the call
	_, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	if now := identityOf(t, opened(t, l)); now != second {
		t.Errorf("recorded was %q, and it is %q", second, now)
	}
	if now := identityOf(t, d); now != second {
		t.Errorf("recorded was %q, and to this driver it is %q", second, now)
	}
	calls := l.Calls("StoragePoolLookupByName")
	if _ = identityOf(t, d); l.Calls("StoragePoolLookupByName") != calls || l.Calls("StoragePoolDefineXML") != 1 {
		t.Error("it is asked for what is known")
	}
	other := newDaemon(t)
	if theirs := identityOf(t, opened(t, other)); theirs == second {
		t.Errorf("two hosts are %q", theirs)
	}
}

// A host that lets nobody define a pool goes by its UUID: nothing else is worse for it.
func TestHostThatKeepsNoPool(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	before := identityOf(t, d)
	l.Strike(func(p string) libvirtd.Fault {
		if p == "StoragePoolDefineXML" {
			return libvirtd.Denied
		}
		return libvirtd.None
	})
	r, in, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	if err != nil || in.State != provider.StateRunning || identityOf(t, d) != before {
		t.Errorf("%+v, %v", in, err)
	}
	removed(t, d, r)
}
