// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"net/http"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var _ provider.PowerCycler = (*driver)(nil)

// PowerCycle implements [provider.PowerCycler]. An instance that has yet to be started starts from power-off anyhow, when it is complete.
func (d *driver) PowerCycle(ctx context.Context, r provider.Ref) error {
	return d.call(ctx, func(ctx context.Context) error {
		found, err := d.named(ctx, r, "")
		if err != nil {
			return err
		}
		if len(found) == 0 || found[0].copied() {
			return provider.Errorf(provider.NotFound, "power-cycle %s: no instance is there", r.Name)
		}
		return present(d.cycle(ctx, r, found[0]))
	})
}

// hung reports whether a reset does not bring i back: the engine does not count it among those that run, although it is not off, or it is being
// stopped, after which nobody starts it. A start would let what is suspended go on where it was.
func (i instance) hung() bool {
	switch i.Status {
	case "paused", "suspended", "not_responding", "unknown", "powering_down":
		return true
	}
	return false
}

func (d *driver) cycle(ctx context.Context, r provider.Ref, i instance) error {
	switch state := i.state(); {
	case state == provider.StateIncomplete, state == provider.StateDeleting:
		return nil
	case i.Status == "down":
		return d.start(ctx, i)
	case i.Status == "saving_state" || i.Status == "restoring_state": // which ends by itself
		return provider.Errorf(provider.Unknown, "power-cycle %s: it is %s, of which the engine stops and resets none: wait until that ends", r.Name, i.Status)
	case i.hung():
		if _, err := d.stop(ctx, i); err != nil {
			return err
		}
		return provider.Errorf(provider.Unknown, "power-cycle %s: it is %s, of which the engine resets none: it is being stopped, and started next time", r.Name, i.Status)
	}
	err := d.session.ask(ctx, "power-cycle "+i.Name, http.MethodPost, i.at("/reset"), nil, content{}, nil)
	switch {
	case refusedWith(err, http.StatusConflict) && (i.Status == "wait_for_launch" || i.Status == "reboot_in_progress"): // it starts just now
		return nil
	case refusedWith(err, http.StatusConflict) && silent(err):
		return provider.Errorf(provider.Exhausted, "%w: the engine does not say why: reset needs the compatibility level 4.6 of its cluster: raise it, or stop and start the instance by hand", err)
	case refusedWith(err, http.StatusNotFound) && silent(err), refusedWith(err, http.StatusMethodNotAllowed):
		return provider.Errorf(provider.Exhausted, "%w: the engine knows no reset, which came with oVirt 4.4.6: upgrade it, or stop and start the instance by hand", err)
	}
	return err
}
