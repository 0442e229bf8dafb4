// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"fmt"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/methods"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// clone begins to clone the template. Identity and devices are part of the one call: there is no instance without its
// mark, and no step that would add a disk twice if it were repeated.
func (d *driver) clone(ctx context.Context, c *vim25.Client, r provider.Ref, req request) (reference, error) {
	owner, err := noted(keyMark, d.owner(r, req))
	if err != nil {
		return reference{}, err
	}
	changes, err := devices(ctx, c, req)
	if err != nil {
		return reference{}, err
	}
	move := types.VirtualMachineRelocateDiskMoveOptionsMoveAllDiskBackingsAndConsolidate
	if req.Snapshot != nil {
		move = types.VirtualMachineRelocateDiskMoveOptionsCreateNewChildDiskBacking
	}
	spec := types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Datastore: &req.Datastore, Folder: &req.Folder, Pool: &req.Pool, DiskMoveType: string(move)},
		Snapshot: req.Snapshot,
		Config: &types.VirtualMachineConfigSpec{
			InstanceUuid: string(r.UID),
			Annotation:   fmt.Sprintf("Machine %s/%s of cluster %s", d.account.Namespace, r.Name, d.account.ClusterID),
			// A template that was made of an instance has that one's notes.
			ExtraConfig:  []types.BaseOptionValue{owner, option(keyConfigured, ""), option(keyLaunched, ""), option(keyTags, "")},
			DeviceChange: changes,
		},
	}
	res, err := methods.CloneVM_Task(ctx, c, &types.CloneVM_Task{This: req.Template, Folder: req.Folder, Name: r.Name, Spec: spec})
	if err != nil {
		return reference{}, err
	}
	return res.Returnval, nil
}

// devices returns how the clone's devices differ from the template's.
func devices(ctx context.Context, c *vim25.Client, req request) ([]types.BaseVirtualDeviceConfigSpec, error) {
	var t mo.VirtualMachine
	if err := property.DefaultCollector(c).RetrieveOne(ctx, req.Template, []string{"config.hardware.device"}, &t); err != nil {
		return nil, err
	}
	if t.Config == nil {
		return nil, provider.Errorf(provider.Exhausted, "%s: %q is not ready to be cloned", at("template"), req.Spec.Template)
	}
	all := object.VirtualDeviceList(t.Config.Hardware.Device)
	cards, err := networkCards(ctx, c, all, req.Networks)
	if err != nil {
		return nil, err
	}
	changes := cards
	if disks := disksOf(all); req.Snapshot == nil && req.Spec.DiskGiB > 0 && len(disks) > 0 {
		disks[0].CapacityInKB, disks[0].CapacityInBytes = req.Spec.DiskGiB*kibPerGiB, req.Spec.DiskGiB<<30
		changes = append(changes, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationEdit, Device: disks[0]})
	}
	added, err := dataDisks(all, req)
	return append(changes, added...), err
}

// networkCards replaces the template's cards by one for each network.
func networkCards(ctx context.Context, c *vim25.Client, all object.VirtualDeviceList, networks []reference) ([]types.BaseVirtualDeviceConfigSpec, error) {
	var changes []types.BaseVirtualDeviceConfigSpec
	for _, old := range all.SelectByType((*types.VirtualEthernetCard)(nil)) {
		changes = append(changes, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationRemove, Device: old})
	}
	for i, ref := range networks {
		n, ok := object.NewReference(c, ref).(object.NetworkReference)
		if !ok {
			return nil, provider.Errorf(provider.Invalid, "%s: %s is no network", at("network", "devices").Index(i), ref)
		}
		backing, err := n.EthernetCardBackingInfo(ctx)
		if err != nil {
			return nil, fmt.Errorf("network %s: %w", ref.Value, err)
		}
		card, err := object.EthernetCardTypes().CreateEthernetCard("vmxnet3", backing)
		if err != nil {
			return nil, fmt.Errorf("network card: %w", err)
		}
		card.GetVirtualDevice().Key = int32(-100 - i) // the vCenter gives it a key of its own
		changes = append(changes, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, Device: card})
	}
	return changes, nil
}

// mostOnController is how many disks a SCSI controller takes.
const mostOnController = 15

// dataDisks adds the spec's further disks, with controllers as those of the template fill up.
func dataDisks(all object.VirtualDeviceList, req request) ([]types.BaseVirtualDeviceConfigSpec, error) {
	var changes []types.BaseVirtualDeviceConfigSpec
	add := func(device types.BaseVirtualDevice, file types.VirtualDeviceConfigSpecFileOperation) {
		all = append(all, device)
		changes = append(changes, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationAdd, FileOperation: file, Device: device})
	}
	for i, wanted := range req.Spec.DataDisks {
		controller := free(all)
		if controller == nil {
			device, err := all.CreateSCSIController("pvscsi")
			if err != nil {
				return nil, provider.Errorf(provider.Invalid, "%s: no controller takes it: %w", at("dataDisks").Index(i), err)
			}
			device.GetVirtualDevice().Key = int32(-300 - i)
			add(device, "")
			controller = free(all)
		}
		disk := all.CreateDisk(controller, req.Datastore, "")
		disk.Key = int32(-200 - i)
		disk.CapacityInKB, disk.CapacityInBytes = wanted.SizeGiB*kibPerGiB, wanted.SizeGiB<<30
		backing, ok := disk.Backing.(*types.VirtualDiskFlatVer2BackingInfo)
		if !ok {
			return nil, fmt.Errorf("disk %s: its backing is %T", wanted.Name, disk.Backing)
		}
		provision(backing, wanted.ProvisioningMode)
		add(disk, types.VirtualDeviceConfigSpecFileOperationCreate)
	}
	return changes, nil
}

func provision(b *types.VirtualDiskFlatVer2BackingInfo, mode string) {
	switch mode {
	case "Thin":
		b.ThinProvisioned = types.NewBool(true)
	case "Thick":
		b.ThinProvisioned = types.NewBool(false)
	case "EagerlyZeroed":
		b.ThinProvisioned, b.EagerlyScrub = types.NewBool(false), types.NewBool(true)
	default:
		b.ThinProvisioned = nil // as the datastore does it
	}
}

// free returns a SCSI controller that takes another disk, or nil.
func free(all object.VirtualDeviceList) types.BaseVirtualController {
	for _, device := range all {
		c, ok := device.(types.BaseVirtualSCSIController)
		if !ok {
			continue
		}
		n, key := 0, c.GetVirtualSCSIController().Key
		for _, d := range all {
			if at := d.GetVirtualDevice(); at.ControllerKey != key {
				continue
			} else if at.UnitNumber != nil && *at.UnitNumber > mostOnController { // of a controller that takes more than the SDK knows
				n = mostOnController
			}
			n++
		}
		if n < mostOnController {
			return c.GetVirtualSCSIController()
		}
	}
	return nil
}

// disksOf returns the disks among devices, in their order.
func disksOf(all object.VirtualDeviceList) []*types.VirtualDisk {
	var disks []*types.VirtualDisk
	for _, d := range all {
		if disk, ok := d.(*types.VirtualDisk); ok {
			disks = append(disks, disk)
		}
	}
	return disks
}

// attached returns the disks that an instance has now.
func attached(ctx context.Context, c *vim25.Client, ref reference) ([]*types.VirtualDisk, error) {
	var m mo.VirtualMachine
	if err := property.DefaultCollector(c).RetrieveOne(ctx, ref, []string{"config.hardware.device"}, &m); err != nil {
		return nil, err
	}
	if m.Config == nil {
		return nil, provider.Errorf(provider.Unknown, "the vCenter does not tell the disks of %s", ref.Value)
	}
	return disksOf(m.Config.Hardware.Device), nil
}

// diskID names a disk wherever it is moved.
func diskID(d *types.VirtualDisk) string {
	switch b := d.Backing.(type) {
	case *types.VirtualDiskFlatVer2BackingInfo:
		return b.Uuid
	case *types.VirtualDiskSeSparseBackingInfo:
		return b.Uuid
	case *types.VirtualDiskRawDiskMappingVer1BackingInfo:
		return b.Uuid
	case *types.VirtualDiskSparseVer2BackingInfo:
		return b.Uuid
	}
	return ""
}
