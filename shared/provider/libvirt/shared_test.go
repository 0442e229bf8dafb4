// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

// Each of two hosts that share a pool shows the other's volumes: what Machines at one have is nothing of the account at the other.
func TestPoolThatTwoHostsShare(t *testing.T) {
	t.Parallel()
	a, b := newDaemon(t), newDaemon(t)
	b.Board(2)
	r, _, err := created(t, opened(t, a), "worker-a", specOf(uriOf(a), nil))
	must(t, err)
	b.Share(libvirtd.Pool, a)
	other := opened(t, b)
	all, err := other.List(t.Context())
	if err != nil || len(all) != 0 {
		t.Errorf("the other host lists %+v, %v", all, err)
	}
	for name := range a.Volumes(libvirtd.Pool) {
		for _, ref := range []provider.Ref{r, {UID: r.UID}, {UID: r.UID, Token: r.Token, Attempt: true}, {ID: "volume/" + libvirtd.Pool + "/" + name}} {
			wantError(t, other.Delete(t.Context(), ref), provider.NotFound)
		}
	}
	if n := len(b.Volumes(libvirtd.Pool)); n != 2 {
		t.Errorf("%d of 2 volumes are left", n)
	}
}

// What people copied of a Machine's volumes stays where they put it, and is nobody's.
func TestCopiesOfVolumesStay(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	l.AddPool("backup", "dir")
	for name := range l.Volumes(libvirtd.Pool) {
		l.AddVolume("backup", name, false)
		l.AddVolume(libvirtd.Pool, "before-upgrade-"+name, false)
	}
	if all, err := d.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("listed %+v, %v", all, err)
	}
	removed(t, d, r)
	if here, there := l.Volumes(libvirtd.Pool), l.Volumes("backup"); len(here) != 2 || len(there) != 2 || len(l.Domains()) != 0 {
		t.Errorf("left %v and %v", here, there)
	}
}

// A host that got another board, and with it another UUID, loses no Machine, and removes what it has.
func TestHostWithAnotherBoard(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	l.Board(2)
	must(t, d.Close(t.Context()))
	again := opened(t, l)
	if all, err := again.List(t.Context()); err != nil || len(all) != 1 || all[0].UID != r.UID {
		t.Errorf("listed %+v, %v", all, err)
	}
	removed(t, again, r)
	if l.Children() != 0 {
		t.Errorf("left %v", l.Volumes(libvirtd.Pool))
	}
}
