// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var _ provider.PowerCycler = (*driver)(nil)

// PowerCycle implements [provider.PowerCycler]. A clone that has yet to be started starts from power-off anyhow, when it is complete.
func (d *driver) PowerCycle(ctx context.Context, r provider.Ref) error {
	return d.call(ctx, func(ctx context.Context, c *vim25.Client) error {
		found, err := d.named(ctx, c, r)
		if err != nil {
			return err
		}
		if len(found) == 0 {
			return provider.Errorf(provider.NotFound, "power-cycle %s: no instance is there", r.Name)
		}
		if err := ambiguous(r, found); err != nil {
			return err
		}
		if found[0].state() == provider.StateIncomplete {
			return nil
		}
		vm := object.NewVirtualMachine(c, found[0].Ref)
		begin := vm.Reset
		if found[0].Power != types.VirtualMachinePowerStatePoweredOn {
			begin = vm.PowerOn
		}
		task, err := begin(ctx)
		_, err = d.finished(ctx, c, "power-cycle "+r.Name, refOf(task), err)
		return err
	})
}
