// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"slices"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// A paravirtual controller of a template may have a disk at any of 64 places, and the SDK panics where it is beyond the 30th. Further disks get a
// controller of their own then.
func TestDiskAtAHighPlaceOfATemplate(t *testing.T) {
	t.Parallel()
	for _, unit := range []int32{16, 40, 63} {
		controller := &types.ParaVirtualSCSIController{}
		controller.Key, controller.ScsiCtlrUnitNumber = 1000, 7
		disk := &types.VirtualDisk{}
		disk.Key, disk.ControllerKey, disk.UnitNumber = 2000, 1000, &unit
		changes, err := dataDisks(object.VirtualDeviceList{controller, disk}, request{Spec: providerspec.VSphere{
			DataDisks: []providerspec.VSphereDataDisk{{Name: "images", SizeGiB: 2}, {Name: "logs", SizeGiB: 1}},
		}})
		if err != nil || len(changes) != 3 {
			t.Fatalf("place %d: %d changes, %v, want a controller with two disks", unit, len(changes), err)
		}
		for i, change := range changes[1:] {
			at := change.GetVirtualDeviceConfigSpec().Device.GetVirtualDevice()
			if at.ControllerKey != changes[0].GetVirtualDeviceConfigSpec().Device.GetVirtualDevice().Key || *at.UnitNumber != int32(i) {
				t.Errorf("place %d: disk %d is at %d of %d", unit, i, *at.UnitNumber, at.ControllerKey)
			}
		}
	}
}

// A controller of a template takes 15 disks, and the next goes to a controller of its own.
func TestControllerOfATemplateFillsUp(t *testing.T) {
	t.Parallel()
	for have, want := range map[int32][]int32{13: {1000, 1000}, 14: {1000, 0}, 15: {0, 0}} {
		controller := &types.ParaVirtualSCSIController{}
		controller.Key, controller.ScsiCtlrUnitNumber = 1000, 7
		devices := object.VirtualDeviceList{controller}
		for i := range have {
			unit := i
			if unit >= 7 { // the controller's own
				unit++
			}
			disk := &types.VirtualDisk{}
			disk.Key, disk.ControllerKey, disk.UnitNumber = 2000+i, 1000, &unit
			devices = append(devices, disk)
		}
		changes, err := dataDisks(devices, request{Spec: providerspec.VSphere{
			DataDisks: []providerspec.VSphereDataDisk{{Name: "images", SizeGiB: 2}, {Name: "logs", SizeGiB: 1}},
		}})
		if err != nil {
			t.Fatal(err)
		}
		var on []int32
		for _, change := range changes {
			if disk, ok := change.GetVirtualDeviceConfigSpec().Device.(*types.VirtualDisk); ok {
				on = append(on, max(disk.ControllerKey, 0)) // the key of a new one is below nothing
			}
		}
		if !slices.Equal(on, want) {
			t.Errorf("beside %d disks the next are on %v, want %v", have, on, want)
		}
	}
}
