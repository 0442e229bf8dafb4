// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

// faults are what may become of a call on its way, or at the daemon.
var faults = map[string]libvirtd.Fault{
	"the call is lost": libvirtd.Lost, "the answer is lost": libvirtd.Unanswered, "the answer is cut": libvirtd.Cut,
	"something else answers": libvirtd.Garbage, "refused": libvirtd.Refused, "nothing comes": libvirtd.Hung,
}

// procedures are all that the driver calls.
var procedures = []string{
	"AuthList", "ConnectOpen", "DomainLookupByUUID", "DomainGetXMLDesc", "DomainGetState", "DomainInterfaceAddresses", "DomainDefineXMLFlags",
	"DomainSetMetadata", "DomainSetAutostart", "DomainCreateWithFlags", "DomainDestroyFlags", "DomainUndefineFlags",
	"StoragePoolLookupByName", "StoragePoolIsActive", "StorageVolLookupByName", "StorageVolCreateXML", "StorageVolGetInfo", "StorageVolUpload",
	"StorageVolUpload end", "StorageVolDelete", "ConnectListAllStoragePools", "StoragePoolListAllVolumes", "ConnectListAllDomains",
	"ConnectListAllNetworks", "NetworkLookupByName", "NetworkGetXMLDesc", "NetworkGetDhcpLeases", "NetworkIsActive", "NetworkIsPersistent", "NetworkUpdate", "ConnectSupportsFeature",
}

// once lets the n-th call of a procedure have a fault.
func once(l *libvirtd.Daemon, procedure string, n int, fault libvirtd.Fault) {
	var mu sync.Mutex
	l.Strike(func(p string) libvirtd.Fault {
		mu.Lock()
		defer mu.Unlock()
		if p == procedure {
			if n--; n == 0 {
				if fault == libvirtd.Hung {
					time.AfterFunc(100*time.Millisecond, l.Disconnect) // nobody waits longer
				}
				return fault
			}
		}
		return libvirtd.None
	})
}

// Whatever becomes of whichever call: one instance, then none, and nothing of it.
func TestNoFaultMakesTwoInstancesOrLeavesOne(t *testing.T) {
	t.Parallel()
	for named, fault := range faults {
		t.Run(named, func(t *testing.T) {
			t.Parallel()
			l := newDaemon(t)
			d := opened(t, l)
			resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), map[string]any{"networkInterfaceAddress": "192.168.126.0/24"}))
			must(t, err)
			for _, procedure := range procedures {
				for n := 1; n <= 3 && (n == 1 || !testing.Short()); n++ {
					must(t, d.Close(t.Context())) // so that it connects anew
					once(l, procedure, n, fault)
					struck(t, l, d, resolved, fmt.Sprintf("call %d of %s", n, procedure))
				}
			}
		})
	}
}

// struck creates and removes an instance beside a fault.
func struck(t *testing.T, l *libvirtd.Daemon, d *driver, resolved []byte, what string) {
	t.Helper()
	r := refOf("worker-a")
	patient := func(call func() error, done func(error) bool) {
		for try := 0; ; try++ {
			err := call()
			if done(err) {
				return
			}
			if try == 20 {
				t.Fatalf("%s: %v", what, err)
			}
		}
	}
	var in provider.Instance
	patient(func() (err error) {
		in, err = d.Create(t.Context(), r, resolved)
		if len(in.Progress) > 0 {
			r.Progress = in.Progress
		}
		return err
	}, func(err error) bool { return err == nil && in.State == provider.StateRunning })
	if all := l.Domains(); len(all) != 1 || l.Children() != 3 {
		t.Fatalf("%s: %d domains, %d children", what, len(all), l.Children())
	}
	patient(func() error { return d.Delete(t.Context(), r) }, func(err error) bool { return provider.CodeOf(err) == provider.NotFound })
	if all := l.Domains(); len(all) != 0 || l.Children() != 0 {
		t.Fatalf("%s: %d domains, %d children are left: %v", what, len(all), l.Children(), l.Volumes(libvirtd.Pool))
	}
}

// An answer that is lost is none, whatever the library makes of it: nothing that did not happen is believed, and nothing proves absence.
func TestLostAnswersProveNothing(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, in, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	r.ID, r.ProviderID = in.ID, in.ProviderID
	for named, fault := range faults {
		if fault == libvirtd.Hung {
			continue
		}
		for _, procedure := range []string{"DomainDestroyFlags", "DomainSetMetadata", "DomainSetAutostart", "DomainCreateWithFlags"} {
			once(l, procedure, 1, fault)
			do := d.PowerOff
			if procedure == "DomainCreateWithFlags" {
				do = d.PowerCycle
			}
			if err := do(t.Context(), r); err == nil {
				t.Errorf("%s of %s: no error", named, procedure)
			}
			l.Strike(nil)
			must(t, d.PowerOn(t.Context(), r))
			must(t, d.PowerCycle(t.Context(), r))
		}
		for _, procedure := range []string{"DomainLookupByUUID", "DomainGetXMLDesc", "DomainGetState", "ConnectListAllDomains", "StoragePoolListAllVolumes"} {
			once(l, procedure, 1, fault)
			found, err := d.Find(t.Context(), r)
			if err == nil && len(found) != 1 {
				t.Errorf("%s of %s: Find = %+v", named, procedure, found)
			}
			once(l, procedure, 1, fault)
			if all, err := d.List(t.Context()); err == nil && len(all) != 1 {
				t.Errorf("%s of %s: List = %+v", named, procedure, all)
			}
		}
		l.Strike(nil)
	}
}

// A fault has its code, and says what happened.
func TestFaultIsCodedAndNamesItsCause(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	for named, want := range map[string]struct {
		code  provider.Code
		names string
	}{
		"the call is lost": {provider.Unknown, l.Address}, "the answer is lost": {provider.Unknown, l.Address}, "the answer is cut": {provider.Unknown, l.Address},
		"something else answers": {provider.Unknown, "another service"}, "refused": {provider.Unknown, "internal error"},
	} {
		once(l, "ConnectListAllDomains", 1, faults[named])
		_, err := d.List(t.Context())
		wantError(t, err, want.code, want.names)
	}
	once(l, "ConnectListAllDomains", 1, libvirtd.Denied)
	_, err := d.List(t.Context())
	wantError(t, err, provider.Denied, "machines/"+Secret, "access denied")
}

// A daemon that was started again is connected to anew, without an error.
func TestDaemonThatRestarts(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	for range 3 {
		l.Disconnect()
		for _, idle := range d.session.idle { // no call is under way
			select {
			case <-idle.conn.ended:
			case <-time.After(20 * time.Second):
				t.Fatal("the driver does not hear of it")
			}
		}
		if found, err := d.Find(t.Context(), r); err != nil || len(found) != 1 {
			t.Errorf("Find = %+v, %v", found, err)
		}
	}
}

// Calls use connections again, and give back what they do not need; a driver that is closed keeps none.
func TestConnectionsAreUsedAgain(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	for range 5 {
		_, err := d.List(t.Context())
		must(t, err)
	}
	if n := l.Calls("ConnectOpen"); n != 1 {
		t.Errorf("%d connections for calls that came one after the other", n)
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := d.List(t.Context()); err != nil {
				t.Errorf("List = %v", err)
			}
		})
	}
	wg.Wait()
	must(t, d.Close(t.Context()))
	for end := time.Now().Add(5 * time.Second); l.Connections() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d connections are left", l.Connections())
		}
	}
	if _, err := d.List(t.Context()); err != nil {
		t.Errorf("who calls later: %v", err)
	}
}

// A connection that nobody used for long is not trusted to be one.
func TestConnectionsThatWaitedForLong(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	for range 3 {
		_, err := d.List(t.Context())
		must(t, err)
		d.session.idle[0].since = time.Now().Add(-idleFor) // no call is under way
	}
	if n := l.Calls("ConnectOpen"); n != 3 {
		t.Errorf("%d connections", n)
	}
}

// Whose turn would come too late asks nothing, and is told when to come again.
func TestCallsWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := openedFor(t, accountOf(strings.Replace(uriOf(l), "127.0.0.1", "localhost", 1))) // the limiter of the others' daemons is another
	d.session.limiter.Pause(time.Minute)
	_, err := d.List(t.Context())
	wantError(t, err, provider.Throttled)
	if e, ok := errors.AsType[*provider.Error](err); !ok || e.RetryAfter < 50*time.Second || l.Calls("AuthList") != 0 {
		t.Errorf("%v, %d calls", err, l.Calls("AuthList"))
	}
}

// A call that nobody answers ends with its context, and says so, at every procedure.
func TestCallThatHangsEnds(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	for _, procedure := range []string{"AuthList", "ConnectOpen", "ConnectListAllStoragePools", "StoragePoolListAllVolumes", "ConnectListAllDomains"} {
		must(t, d.Close(t.Context()))
		l.Strike(func(p string) libvirtd.Fault {
			if p == procedure {
				return libvirtd.Hung
			}
			return libvirtd.None
		})
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		begin := time.Now()
		_, err := d.List(ctx)
		cancel()
		if provider.CodeOf(err) != provider.Unknown || !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 5*time.Second {
			t.Errorf("%s: %v after %v", procedure, err, time.Since(begin))
		}
	}
}

// What a daemon says of a step that it refused is told, and is a reason that may pass; what it says may be anything.
func TestRefusalsOfSteps(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	for _, c := range []struct {
		what  string
		short func()
		mend  func()
		names string
	}{
		{"no room", func() { l.Full(true) }, func() { l.Full(false) }, "No space left on device"},
		{"no memory", func() { l.Memory(4096) }, func() { l.Memory(1 << 20) }, "Cannot allocate memory"},
		{"no network", func() { l.Switch(libvirtd.Network, false) }, func() { l.Switch(libvirtd.Network, true) }, "is not active"},
		{"no pool", func() { l.Activate(libvirtd.Pool, false) }, func() { l.Activate(libvirtd.Pool, true) }, "is not active: start it"},
	} {
		r := refOf("worker-a")
		c.short()
		in, err := proceed(t.Context(), d, &r, resolved)
		wantError(t, err, provider.Exhausted, c.names)
		if len(in.Progress) == 0 || !strings.Contains(fmt.Sprint(l.Domains()), string(r.UID)) {
			t.Errorf("%s: what is there is not said: %+v", c.what, in)
		}
		c.mend()
		if in, err = proceed(t.Context(), d, &r, resolved); err != nil || in.State != provider.StateRunning {
			t.Errorf("%s, and then there is: %+v, %v", c.what, in, err)
		}
		removed(t, d, r)
	}
}

// That a step was refused, and how things are since, are two answers: without the second one nothing is known.
func TestRefusalWithoutALookProvesNothing(t *testing.T) {
	t.Parallel()
	for step, look := range map[string]string{"StorageVolCreateXML": "StorageVolLookupByName", "DomainCreateWithFlags": "DomainGetState", "DomainDefineXMLFlags": "DomainLookupByName", "NetworkUpdate": "NetworkGetXMLDesc"} {
		l := newDaemon(t)
		d := opened(t, l)
		resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), map[string]any{"networkInterfaceAddress": "192.168.126.0/24"}))
		must(t, err)
		r := refOf("worker-a")
		var mu sync.Mutex
		stepped := false
		l.Strike(func(p string) libvirtd.Fault {
			mu.Lock()
			defer mu.Unlock()
			switch {
			case p == step:
				stepped = true
			case p == look && stepped:
				stepped = false
			default:
				return libvirtd.None
			}
			return libvirtd.Refused
		})
		for range 3 {
			in, err := d.Create(t.Context(), r, resolved)
			if len(in.Progress) > 0 {
				r.Progress = in.Progress
			}
			if err != nil && provider.CodeOf(err) != provider.Unknown || l.Calls(step) == 0 == (err != nil) {
				t.Errorf("%s, and no %s: %+v, %v", step, look, in, err)
			}
		}
	}
}

// A call that failed where nothing is seen takes nothing back that was recorded: another attempt might begin beside it.
func TestWhatWasRecordedStays(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	for _, procedure := range []string{"DomainLookupByUUID", "DomainDefineXMLFlags"} {
		for _, progress := range []string{"", `{"step":"define"}`} {
			r := refOf("worker-a")
			r.Progress = []byte(progress)
			once(l, procedure, 1, libvirtd.Denied)
			in, err := d.Create(t.Context(), r, resolved)
			wantError(t, err, provider.Denied)
			if (len(in.Progress) > 0) != (progress != "") {
				t.Errorf("%s, recorded %q: %+v", procedure, progress, in)
			}
		}
	}
}

// Whatever a daemon says of what it was given, the Machine does not fail for good: its host may be mended.
func TestNoDaemonSaysThatASpecIsInvalid(t *testing.T) {
	t.Parallel()
	s, err := newSession(accountOf("qemu+tcp://host.example.com/system"))
	must(t, err)
	for number := range libvirt.ErrorNumber(200) {
		if code := provider.CodeOf(s.coded(libvirt.Error{Code: uint32(number)})); code == provider.Invalid { //nolint:gosec // below 200
			t.Errorf("%d is %v", number, code)
		}
	}
	l := newDaemon(t)
	d := opened(t, l)
	resolved, err := d.Resolve(t.Context(), specOf(uriOf(l), nil))
	must(t, err)
	for _, number := range []libvirt.ErrorNumber{libvirt.ErrInvalidArg, libvirt.ErrConfigUnsupported, libvirt.ErrNoSupport, libvirt.ErrXMLError} {
		once(l, "DomainDefineXMLFlags", 1, libvirtd.Number(number))
		_, err := d.Create(t.Context(), refOf("worker-a"), resolved)
		wantError(t, err, provider.Exhausted)
	}
	once(l, "StoragePoolLookupByName", 1, libvirtd.Number(libvirt.ErrNoSupport))
	_, err = d.Resolve(t.Context(), specOf(uriOf(l), nil))
	wantError(t, err, provider.Exhausted)
}
