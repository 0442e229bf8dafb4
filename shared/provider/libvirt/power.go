// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"context"

	"github.com/digitalocean/go-libvirt"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// PowerCycle implements [provider.PowerCycler]. A domain that has yet to be started starts from power-off anyhow, when it is complete.
func (d *driver) PowerCycle(ctx context.Context, r provider.Ref) error {
	return d.each(ctx, r, "power-cycle", func(l *daemon, m domain) error {
		switch {
		case m.Held:
			return provider.Errorf(provider.Exhausted, "power-cycle %s: it is held off: let it have power again", m.Ref.Name)
		case m.state() == provider.StateIncomplete:
			return nil
		}
		if err := d.cut(l, m); err != nil { // no reset: that waits for the domain's job, and leaves what is paused so
			return err
		}
		m.State = libvirt.DomainShutoff
		if err := d.powerOn(l, m); err != nil || m.Noted {
			return err
		}
		return d.failed("note the start of "+m.Ref.Name, l.flag(m.Ref, spaceLaunched))
	})
}

// PowerOff implements [provider.PowerSwitch]. Its host's next start does not start the domain either.
func (d *driver) PowerOff(ctx context.Context, r provider.Ref) error {
	return d.each(ctx, r, "power off", func(l *daemon, m domain) error {
		if err := d.cut(l, m); err != nil { // first: nothing else ends what the daemon waits for in it
			return err
		}
		if m.Launched && !m.Noted { // who started it was cut off: when its host starts anew nothing else would say that it ran
			if err := l.flag(m.Ref, spaceLaunched); err != nil {
				return d.failed("note that "+m.Ref.Name+" ran", err)
			}
		}
		if !m.Held {
			if err := l.flag(m.Ref, spaceHeld); err != nil {
				return d.failed("hold "+m.Ref.Name+" off", err)
			}
		}
		if err := l.autostart(m.Ref, false); err != nil {
			return d.failed("autostart of "+m.Ref.Name, err)
		}
		return d.cutAgain(l, m)
	})
}

// PowerOn implements [provider.PowerSwitch]. That it was held off is forgotten last, so that a call that was cut off is made again.
func (d *driver) PowerOn(ctx context.Context, r provider.Ref) error {
	return d.each(ctx, r, "power on", func(l *daemon, m domain) error {
		if !m.Held {
			return nil
		}
		if m.state() != provider.StateIncomplete { // else its creation starts it, when it is complete
			if err := d.start(l, m); err != nil {
				return err
			}
		}
		if err := l.unflag(m.Ref, spaceHeld); err != nil {
			return d.failed("let "+m.Ref.Name+" have power", err)
		}
		return nil
	})
}

// each does something to the domain that r names, unless it is on its way out.
func (d *driver) each(ctx context.Context, r provider.Ref, what string, do func(*daemon, domain) error) error {
	return d.call(ctx, func(_ context.Context, l *daemon) error {
		found, err := d.named(l, r)
		if err != nil {
			return err
		}
		there := false
		for _, m := range found {
			if m.Deleting {
				continue
			}
			there = true
			if err := do(l, m); err != nil {
				return err
			}
		}
		if !there {
			return provider.Errorf(provider.NotFound, "%s %s: it has no domain", what, r.Name)
		}
		return nil
	})
}
