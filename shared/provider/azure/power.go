// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"net/http"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// PowerCycle implements [provider.PowerCycler]. Azure restarts an instance that runs, and starts one that does not; both keep its disks
// and addresses (https://learn.microsoft.com/rest/api/compute/virtual-machines/restart). One that is being made starts anyhow.
func (d *driver) PowerCycle(ctx context.Context, r provider.Ref) error {
	return d.call(ctx, func(ctx context.Context) error {
		found, err := d.named(ctx, r)
		if err != nil {
			return absent("power-cycle "+r.Name, d.coded(err))
		}
		if len(found) == 0 {
			return provider.Errorf(provider.NotFound, "power-cycle %s: no instance is there", r.Name)
		}
		i, err := d.at(ctx, found[0].ID) // with its power, also where lists may not tell that
		if err != nil {
			return absent("power-cycle "+r.Name, d.coded(err))
		}
		if i.Properties.State == creating {
			return nil
		}
		action := "/restart"
		if state, _, _ := i.state(); state == provider.StateStopped {
			action = "/start"
		}
		return d.do(ctx, ask{method: http.MethodPost, id: i.ID + action}, nil)
	})
}
