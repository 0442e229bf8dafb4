// SPDX-License-Identifier: Apache-2.0

package vcenter

import (
	"fmt"
	"slices"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/soap"
	"github.com/vmware/govmomi/vim25/types"
)

type reference = types.ManagedObjectReference

// golden is a template whose clones get the identity that the call asks for, as API and vCenter have it
// (VirtualMachineCloneSpec.config). vcsim sets it on a copy that it throws away.
type golden struct {
	*simulator.VirtualMachine
	guests *guests
}

// CloneVMTask overrides vcsim's.
func (g *golden) CloneVMTask(ctx *simulator.Context, req *types.CloneVM_Task) soap.HasFault {
	g.guests.mu.Lock()
	if g.guests.cloning[req.Name] == nil { // else its name is taken, and the call is going to fail
		g.guests.cloning[req.Name] = req.Spec.Config
	}
	g.guests.mu.Unlock()
	res := g.VirtualMachine.CloneVMTask(ctx, req)
	if body, ok := res.(*methods.CloneVM_TaskBody); ok && body.Res != nil {
		ctx.Map.Get(body.Res.Returnval).(*simulator.Task).Wait() // vCenters let nobody at a clone that is not done; vcsim does
	}
	return res
}

// guests plays what vcsim lacks: a started instance's first network card gets an address.
type guests struct {
	mu      sync.Mutex
	taken   map[reference]bool
	cloning map[string]*types.VirtualMachineConfigSpec
}

// Reference implements [mo.Reference].
func (*guests) Reference() reference { return reference{Type: "Guests", Value: "guests"} }

// RemoveObject implements [simulator.RegisterObject].
func (*guests) RemoveObject(*simulator.Context, reference) {}

// PutObject implements [simulator.RegisterObject].
func (*guests) PutObject(*simulator.Context, mo.Reference) {}

// UpdateObject implements [simulator.RegisterObject].
func (g *guests) UpdateObject(_ *simulator.Context, o mo.Reference, changes []types.PropertyChange) {
	vm, ok := o.(*mo.VirtualMachine)
	if !ok {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if config := g.cloning[vm.Name]; config != nil {
		delete(g.cloning, vm.Name)
		vm.Config.InstanceUuid, vm.Summary.Config.InstanceUuid = config.InstanceUuid, config.InstanceUuid
		vm.Config.ExtraConfig = append(vm.Config.ExtraConfig, config.ExtraConfig...)
	}
	started := slices.ContainsFunc(changes, func(c types.PropertyChange) bool {
		return c.Name == "runtime.powerState" && c.Val == types.VirtualMachinePowerStatePoweredOn
	})
	if started && len(vm.Guest.Net) > 0 && len(vm.Guest.Net[0].IpAddress) == 0 {
		g.taken[vm.Self] = true
		n := len(g.taken)
		vm.Guest.Net[0].IpAddress = []string{fmt.Sprintf("10.0.%d.%d", n/250, n%250+1), "fe80::1"}
	}
}
