// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/libvirtd"
)

// A daemon waits for the job that a domain has under way, such as the start of a qemu that hangs, and only to be switched off ends it: that
// comes first, whatever is to become of the domain.
func TestDomainWithAJobUnderWay(t *testing.T) {
	t.Parallel()
	for what, do := range map[string]func(*driver, provider.Ref) error{
		"Delete":   func(d *driver, r provider.Ref) error { return d.Delete(t.Context(), r) },
		"PowerOff": func(d *driver, r provider.Ref) error { return d.PowerOff(t.Context(), r) },
		"PowerCycle": func(d *driver, r provider.Ref) error {
			if err := d.PowerCycle(t.Context(), r); err != nil {
				return err
			}
			return d.PowerOff(t.Context(), r)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			l := newDaemon(t)
			d := opened(t, l)
			r, _, err := created(t, d, "worker-a", specOf(uriOf(l), map[string]any{"autostart": true}))
			must(t, err)
			var ended atomic.Bool
			l.Strike(func(p string) libvirtd.Fault {
				switch p {
				case "DomainDestroyFlags":
					ended.Store(true)
				case "DomainSetMetadata", "DomainSetAutostart", "DomainCreateWithFlags", "DomainUndefineFlags":
					if !ended.Load() {
						return libvirtd.Hung
					}
				}
				return libvirtd.None
			})
			begin := time.Now()
			if err := do(d, r); err != nil || time.Since(begin) > deadline/2 {
				t.Errorf("after %v: %v", time.Since(begin), err)
			}
			if m, there := l.Domains()["worker-a"]; there && (m.State != libvirt.DomainShutoff || m.Autostart) {
				t.Errorf("it is %+v", m)
			}
		})
	}
}

// What somebody started after the power was cut, as it had no flag yet, is switched off again.
func TestDomainThatIsStartedWhileItGoes(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	var once atomic.Bool
	l.Strike(func(p string) libvirtd.Fault {
		if p == "DomainSetMetadata" && once.CompareAndSwap(false, true) {
			l.Set("worker-a", libvirt.DomainRunning)
		}
		return libvirtd.None
	})
	must(t, d.PowerOff(t.Context(), r))
	if m := l.Domains()["worker-a"]; m.State != libvirt.DomainShutoff {
		t.Errorf("held off it is %+v", m)
	}
	must(t, d.PowerOn(t.Context(), r))
	once.Store(false)
	must(t, d.Delete(t.Context(), r))
	if n := l.Calls("DomainDestroyFlags"); n != 4 || len(l.Domains()) != 0 {
		t.Errorf("switched off %d times, left %v", n, l.Domains())
	}
}

// That nothing is there the driver says of what it saw: of a pool or a network that goes meanwhile a daemon says the same.
func TestOnlyWhatWasSeenIsGone(t *testing.T) {
	t.Parallel()
	numbers := []libvirt.ErrorNumber{libvirt.ErrNoDomain, libvirt.ErrNoNetwork, libvirt.ErrNoStoragePool, libvirt.ErrNoStorageVol}
	for _, procedure := range procedures {
		t.Run(procedure, func(t *testing.T) {
			t.Parallel()
			l := newDaemon(t)
			d := opened(t, l)
			for _, number := range numbers {
				for n := 1; n <= 2; n++ {
					r, _, err := created(t, d, "worker-a", specOf(uriOf(l), map[string]any{"networkInterfaceAddress": "192.168.126.0/24"}))
					must(t, err)
					once(l, procedure, n, libvirtd.Number(number))
					err = d.Delete(t.Context(), r)
					// of one domain, and by its own number, the daemon's word is taken: it is what is asked
					own := number == libvirt.ErrNoDomain && procedure == "DomainLookupByUUID" || number == libvirt.ErrNoDomain && (procedure == "DomainGetXMLDesc" || procedure == "DomainGetState")
					if provider.CodeOf(err) == provider.NotFound && !own {
						t.Errorf("%d at call %d: %v", number, n, err)
					}
					l.Strike(nil)
					removed(t, d, r)
				}
			}
		})
	}
	l := newDaemon(t)
	d := opened(t, l)
	r, _, err := created(t, d, "worker-a", specOf(uriOf(l), nil))
	must(t, err)
	l.Strike(func(p string) libvirtd.Fault {
		if p == "StoragePoolIsActive" {
			l.DropPool(libvirtd.Pool)
		}
		return libvirtd.None
	})
	wantError(t, d.Delete(t.Context(), r), provider.Unknown, "no storage pool")
	removed(t, d, r)
	if len(l.Domains()) != 0 {
		t.Errorf("left %v", l.Domains())
	}
}

// Who undefines a domain leaves what a network reserved for its card: it goes with the Machine, and blocks no other of the name.
func TestReservationWithoutADomain(t *testing.T) {
	t.Parallel()
	l := newDaemon(t)
	d := opened(t, l)
	spec := specOf(uriOf(l), map[string]any{"networkInterfaceAddress": "192.168.126.0/24"})
	r, _, err := created(t, d, "master-0", spec)
	must(t, err)
	l.Undefine("master-0")
	l.Reserve(libvirtd.Network, libvirtd.Host{MAC: "52:54:00:00:00:01", Name: "printer", IP: "192.168.126.51"})
	must(t, d.Delete(t.Context(), r))
	must(t, d.Delete(t.Context(), r))
	wantError(t, d.Delete(t.Context(), r), provider.NotFound)
	if all := l.Reserved(libvirtd.Network); len(all) != 1 || all[0].Name != "printer" {
		t.Errorf("reserved %v", all)
	}
	r, _, err = created(t, d, "master-0", spec)
	must(t, err)
	once(l, "DomainLookupByUUID", 1, libvirtd.Number(libvirt.ErrNoDomain)) // which came between two looks
	if err := d.Delete(t.Context(), provider.Ref{UID: r.UID}); provider.CodeOf(err) != provider.NotFound || len(l.Reserved(libvirtd.Network)) != 2 {
		t.Errorf("%v, %v", err, l.Reserved(libvirtd.Network))
	}
	once(l, "DomainLookupByUUID", 2, libvirtd.Number(libvirt.ErrNoDomain)) // as between two attempts
	if err := d.Delete(t.Context(), provider.Ref{UID: r.UID, Token: "another", Attempt: true}); provider.CodeOf(err) != provider.NotFound || len(l.Reserved(libvirtd.Network)) != 2 {
		t.Errorf("%v, %v", err, l.Reserved(libvirtd.Network))
	}
	l.Strike(nil)
	if err := d.Delete(t.Context(), provider.Ref{UID: r.UID, Token: "another", Attempt: true}); provider.CodeOf(err) != provider.NotFound || len(l.Reserved(libvirtd.Network)) != 2 {
		t.Errorf("%v, %v", err, l.Reserved(libvirtd.Network))
	}
}
