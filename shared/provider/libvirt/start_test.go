// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

// A domain whose start is under way, and may fail yet, is not taken for one that was made, by nobody who looks meanwhile.
func TestStartThatIsUnderWay(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	r := refOf("worker-a")
	l.Memory(0)
	_, err = proceed(t.Context(), d, &r, resolved)
	wantError(t, err, provider.Exhausted, "Cannot allocate memory")
	l.Starting("worker-a")
	found, err := d.Find(t.Context(), r)
	if err != nil || len(found) != 1 || found[0].State != provider.StateIncomplete {
		t.Errorf("found %+v, %v", found, err)
	}
	writes := l.Writes()
	in, err := d.Create(t.Context(), r, resolved)
	if err != nil || in.State != provider.StateIncomplete || l.Writes() != writes { // which would wait for it
		t.Errorf("Create = %+v, %v", in, err)
	}
	r.Progress = in.Progress
	once(l, "DomainGetState", 2, libvirtd.Refused)
	again, err := d.Create(t.Context(), r, resolved)
	if err == nil || string(again.Progress) != string(in.Progress) {
		t.Errorf("it waits since %s, then %s, %v", in.Progress, again.Progress, err)
	}
	l.Strike(nil)
	again, err = d.Create(t.Context(), r, resolved)
	if err != nil || string(again.Progress) != string(in.Progress) {
		t.Errorf("it waits since %s, then %s, %v", in.Progress, again.Progress, err)
	}
	r.Progress = fmt.Appendf(nil, `{"step":"start","since":%d}`, time.Now().Add(-longestStart).Unix())
	_, err = d.Create(t.Context(), r, resolved)
	wantError(t, err, provider.Throttled, "worker-a", "starting for more than ten minutes", "virsh destroy worker-a")
	ahead := fmt.Appendf(nil, `{"step":"start","since":%d}`, time.Now().Add(48*time.Hour).Unix()) // by another clock
	from := r
	from.Progress = ahead
	if again, err = d.Create(t.Context(), from, resolved); err != nil || string(again.Progress) == string(ahead) {
		t.Errorf("it waits since %s, %v", again.Progress, err)
	}
	time.AfterFunc(time.Second, func() { l.FailStart("worker-a") })
	_, err = d.Create(t.Context(), r, resolved) // in one call
	wantError(t, err, provider.Exhausted, "Cannot allocate memory")
	l.Memory(1 << 20)
	if in, err = proceed(t.Context(), d, &r, resolved); err != nil || in.State != provider.StateRunning {
		t.Errorf("after it failed: %+v, %v", in, err)
	}
	l.Starting("worker-a") // as by a power-cycle
	if found, err = d.Find(t.Context(), r); err != nil || len(found) != 1 || found[0].State != provider.StatePending {
		t.Errorf("found %+v, %v", found, err)
	}
}

// What is noted waits for the start that is under way: where that fails, it is taken back, and the start is tried again.
func TestStartThatFailsWhileItIsNoted(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	r := refOf("worker-a")
	var once atomic.Bool
	l.Strike(func(p string) libvirtd.Fault {
		if p == "DomainSetMetadata" && once.CompareAndSwap(false, true) {
			l.FailStart("worker-a")
		}
		return libvirtd.None
	})
	in, err := proceed(t.Context(), d, &r, resolved)
	if err != nil || in.State != provider.StateRunning || !once.Load() || l.Calls("DomainCreateWithFlags") != 2 {
		t.Errorf("%+v, %v", in, err)
	}
}

// A domain that ran and is on record, and on which that was not written as its creator was cut off, has power again when it is asked for.
func TestRecordedWithoutANote(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	r := refOf("worker-a")
	_, err = d.Create(t.Context(), r, resolved)
	must(t, err)
	once(l, "DomainSetMetadata", 1, libvirtd.Lost)
	_, _ = d.Create(t.Context(), r, resolved)
	l.Strike(nil)
	found, err := d.Find(t.Context(), r)
	if err != nil || len(found) != 1 || found[0].State != provider.StateRunning {
		t.Fatalf("found %+v, %v", found, err)
	}
	r.ID, r.ProviderID = found[0].ID, found[0].ProviderID
	l.Set("worker-a", libvirt.DomainShutoff) // with its host
	if found, err = d.Find(t.Context(), r); err != nil || found[0].State != provider.StateStopped {
		t.Errorf("found %+v, %v", found, err)
	}
	must(t, d.PowerCycle(t.Context(), r))
	if m := l.Domains()["worker-a"]; m.State != libvirt.DomainRunning || !strings.Contains(m.XML, spaceLaunched) {
		t.Errorf("it is %+v", m)
	}
}

// Held off, it is one that ran to who lists it too, after its host has started anew.
func TestHeldOffWithoutANote(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, in, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	r.ProviderID = in.ProviderID
	_ = l.Define(strings.ReplaceAll(l.Domains()["worker-a"].XML, spaceLaunched, "https://example.com/other")) // it runs already, which is no matter
	must(t, d.PowerOff(t.Context(), r))
	l.Set("worker-a", libvirt.DomainShutoff)
	if all, err := d.List(t.Context()); err != nil || len(all) != 1 || all[0].State != provider.StateStopped || all[0].Power != provider.PowerHeld {
		t.Errorf("listed %+v, %v", all, err)
	}
}

// What another attempt defined, and nobody started, is no part of this one: its spec may have been another.
func TestDomainOfAnotherAttempt(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	one, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	two, err := d.Resolve(t.Context(), specOf(uriOf(l), map[string]any{"domainMemory": 16384, "ignition": nil, "cloudInit": map[string]any{"userDataSecret": "cloud-init"}}))
	must(t, err)
	r := refOf("worker-a")
	l.Memory(0)
	_, err = proceed(t.Context(), d, &r, one)
	wantError(t, err, provider.Exhausted, "Cannot allocate memory")
	l.Memory(1 << 20)
	r.Token, r.Progress = machine.Token(r.UID, 2, "zone"), nil
	first, err := d.Create(t.Context(), r, two)
	must(t, err)
	r.Progress = first.Progress
	if next, err := d.Create(t.Context(), r, two); err != nil || string(next.Progress) == string(first.Progress) { // as of a call that waited
		t.Errorf("removed, then defined: progress %s, then %s, %v", first.Progress, next.Progress, err)
	}
	in, err := proceed(t.Context(), d, &r, two)
	if s := look(t, l.Domains()["worker-a"].XML); err != nil || in.State != provider.StateRunning || in.Token != r.Token || s.Memory != "16384" || l.Children() != 2 {
		t.Errorf("%+v, %v, %+v, %d children", in, err, s, l.Children())
	}
	r.Token = machine.Token(r.UID, 3, "zone")
	for _, state := range []libvirt.DomainState{libvirt.DomainRunning, libvirt.DomainShutoff} { // one that ran is its Machine's
		l.Set("worker-a", state)
		if again, err := d.Create(t.Context(), r, one); err != nil || again.Token != in.Token {
			t.Errorf("%d: %+v, %v", state, again, err)
		}
	}
}

// A power-cycle does not go on with what the host saved of the guest, which may be what hangs.
func TestPowerCycleStartsFromTheBeginning(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	l.Save("worker-a")
	must(t, d.PowerCycle(t.Context(), r))
	if m := l.Domains()["worker-a"]; m.State != libvirt.DomainRunning || m.Restored {
		t.Errorf("it is %+v", m)
	}
}

// What is held off before it is complete has no power from its creator either.
func TestHeldOffWhileItIsMade(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	r := refOf("worker-a")
	_, err = d.Create(t.Context(), r, resolved)
	must(t, err)
	must(t, d.PowerOff(t.Context(), r))
	_, err = proceed(t.Context(), d, &r, resolved)
	wantError(t, err, provider.Exhausted, "worker-a", "held off")
	must(t, d.PowerOn(t.Context(), r))
	in, err := proceed(t.Context(), d, &r, resolved)
	if err != nil || in.State != provider.StateRunning || in.Power != provider.PowerOn {
		t.Errorf("%+v, %v", in, err)
	}
}
