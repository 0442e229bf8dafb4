// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
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
