// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"testing"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

// Each state of a domain is told in virsh's word, and means what the machine layer knows.
func TestStates(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	for state, want := range map[libvirt.DomainState]struct {
		state provider.State
		word  string
	}{
		libvirt.DomainRunning: {provider.StateRunning, "running"}, libvirt.DomainBlocked: {provider.StateRunning, "idle"},
		libvirt.DomainPaused: {provider.StateStopped, "paused"}, libvirt.DomainShutdown: {provider.StateStopped, "in shutdown"},
		libvirt.DomainShutoff: {provider.StateStopped, "shut off"}, libvirt.DomainCrashed: {provider.StateStopped, "crashed"},
		libvirt.DomainPmsuspended: {provider.StateStopped, "pmsuspended"}, libvirt.DomainNostate: {provider.StatePending, "no state"}, 99: {provider.StateStopped, "state 99"},
	} {
		l.Set("worker-a", state)
		found, err := d.Find(t.Context(), r)
		if err != nil || len(found) != 1 || found[0].State != want.state || found[0].CloudState != want.word || (found[0].Power == provider.PowerOn) != (want.state == provider.StateRunning) {
			t.Errorf("%d: %+v, %v", state, found, err)
		}
		again, err := proceed(t.Context(), d, &r, []byte(`{}`)) // a creation that is complete changes nothing
		if err != nil || again.State != want.state {
			t.Errorf("%d: Create = %+v, %v", state, again, err)
		}
	}
}

// A domain has power again from its beginning, whatever it is doing.
func TestPowerCycle(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	for _, state := range []libvirt.DomainState{libvirt.DomainRunning, libvirt.DomainPaused, libvirt.DomainShutoff, libvirt.DomainCrashed, libvirt.DomainPmsuspended} {
		l.Set("worker-a", state)
		before := l.Domains()["worker-a"].Starts
		must(t, d.PowerCycle(t.Context(), r))
		if m := l.Domains()["worker-a"]; m.State != libvirt.DomainRunning || m.Starts-before != 1 {
			t.Errorf("%d: %+v", state, m)
		}
	}
}

// What is held off stays off when its host starts anew, and no power-cycle switches it on; let go it has what its spec says.
func TestHeldOff(t *testing.T) {
	t.Parallel()
	for _, autostart := range []bool{true, false} {
		l := newDaemon(t)
		d := opened(t, l)
		r, _, err := created(t, d, "worker-a", specOf(uriOf(l), map[string]any{"autostart": autostart}))
		must(t, err)
		must(t, d.PowerOff(t.Context(), r))
		if m := l.Domains()["worker-a"]; m.State != libvirt.DomainShutoff || m.Autostart {
			t.Errorf("held off it is %+v", m)
		}
		wantError(t, d.PowerCycle(t.Context(), r), provider.Exhausted, "held off")
		must(t, d.PowerOn(t.Context(), r))
		if m := l.Domains()["worker-a"]; m.State != libvirt.DomainRunning || m.Autostart != autostart {
			t.Errorf("let go it is %+v", m)
		}
		l.Set("worker-a", libvirt.DomainShutoff)
		must(t, d.PowerOn(t.Context(), r))
		if m := l.Domains()["worker-a"]; m.State != libvirt.DomainShutoff {
			t.Errorf("what was not held off was switched on: %+v", m)
		}
	}
}

// A domain that has yet to be started is started by who makes it.
func TestWhatIsBeingMadeIsNotCycled(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	r := refOf("worker-a")
	_, err = d.Create(t.Context(), r, resolved)
	must(t, err)
	must(t, d.PowerCycle(t.Context(), r))
	if m := l.Domains()["worker-a"]; m.State != libvirt.DomainShutoff || l.Children() != 0 {
		t.Errorf("%+v", m)
	}
	must(t, d.PowerOff(t.Context(), r))
	must(t, d.PowerOn(t.Context(), r)) // without its disks, or the address that is reserved for it, it would be another
	if m := l.Domains()["worker-a"]; m.Starts != 0 || l.Children() != 0 {
		t.Errorf("let go it is %+v", m)
	}
	if in, err := proceed(t.Context(), d, &r, resolved); err != nil || in.State != provider.StateRunning {
		t.Errorf("Create = %+v, %v", in, err)
	}
	l.Switch(libvirtd.Network, false)
}
