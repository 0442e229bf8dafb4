// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"strings"

	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// snapshots returns all snapshots of a tree.
func snapshots(tree []types.VirtualMachineSnapshotTree) (all []types.VirtualMachineSnapshotTree) {
	for _, s := range tree {
		all = append(append(all, s), snapshots(s.ChildSnapshotList)...)
	}
	return all
}

// captured refuses to go on with an instance of which a snapshot holds a disk that must outlive it. A vCenter destroys with an
// instance what its snapshots hold, also what was detached since; and what is detached now would leave its older half there.
// Removing snapshots may merge disks or delete them: that is for people to decide. Independent disks, as pods' volumes are, are
// in no snapshot (SPEC E25, R-B29).
func captured(ctx context.Context, c *vim25.Client, m clone, home string) error {
	var vm mo.VirtualMachine
	if err := property.DefaultCollector(c).RetrieveOne(ctx, m.Ref, []string{"snapshot"}, &vm); err != nil || vm.Snapshot == nil {
		return err
	}
	for _, s := range snapshots(vm.Snapshot.RootSnapshotList) {
		var then mo.VirtualMachineSnapshot
		if err := property.DefaultCollector(c).RetrieveOne(ctx, s.Snapshot, []string{"config.hardware.device"}, &then); err != nil {
			return err
		}
		if len(then.Config.Hardware.Device) == 0 { // there are controllers at least
			return provider.Errorf(provider.Unknown, "delete %s (%s): the vCenter does not tell which disks its snapshot %q holds", m.Name, m.Ref.Value, s.Name)
		}
		for _, disk := range m.foreign(disksOf(then.Config.Hardware.Device), home) {
			if file, mode := backing(disk); !strings.HasPrefix(mode, "independent_") {
				return provider.Errorf(provider.Exhausted, "delete %s (%s): its snapshot %q holds the disk %s, which is not its own and would be destroyed with it: save that disk, then remove the snapshot",
					m.Name, m.Ref.Value, s.Name, file)
			}
		}
	}
	return nil
}

// backing returns the file of a disk, and in which mode it is written.
func backing(d *types.VirtualDisk) (file, mode string) {
	switch b := d.Backing.(type) {
	case *types.VirtualDiskFlatVer2BackingInfo:
		return b.FileName, b.DiskMode
	case *types.VirtualDiskSeSparseBackingInfo:
		return b.FileName, b.DiskMode
	case *types.VirtualDiskRawDiskMappingVer1BackingInfo:
		return b.FileName, b.DiskMode
	case *types.VirtualDiskSparseVer2BackingInfo:
		return b.FileName, b.DiskMode
	}
	return "", ""
}
