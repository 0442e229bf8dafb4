// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"
	"path"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// remove takes every instance that r names, and the clone that is being made for it, further on its way out.
func (d *driver) remove(ctx context.Context, c *vim25.Client, r provider.Ref) error {
	cloning, err := d.stopCloning(ctx, c, r)
	if err != nil {
		return err
	}
	found, err := d.named(ctx, c, r)
	if err != nil {
		return err
	}
	if len(found) == 0 && !cloning {
		return provider.Errorf(provider.NotFound, "delete %s: no instance is there", r.Name)
	}
	var errs []error
	for _, m := range found {
		err := d.destroy(ctx, c, m)
		switch name(faultOf(err)) {
		case "ManagedObjectNotFound", "TaskInProgress", "InvalidState", "InvalidPowerState", "ConcurrentAccess":
			err = nil // somebody else is at it: it goes, or the next call looks again
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// stopCloning cancels the clone that the recorded progress speaks of, and reports whether it still runs: nothing of it
// can be found yet, but it will be.
func (d *driver) stopCloning(ctx context.Context, c *vim25.Client, r provider.Ref) (bool, error) {
	p, unreadable := parseProgress(r) // then the UID alone leads to what there is
	if unreadable != nil || p.Task == nil || p.Step != stepClone {
		return false, nil
	}
	info, err := await(ctx, c, *p.Task, 0)
	if err != nil || ended(info) {
		return false, err
	}
	return true, cancel(ctx, c, *p.Task)
}

// destroy switches m off, lets go of disks that are not its own, and destroys the rest.
func (d *driver) destroy(ctx context.Context, c *vim25.Client, m clone) error {
	vm := object.NewVirtualMachine(c, m.Ref)
	if m.Power != types.VirtualMachinePowerStatePoweredOff {
		task, err := vm.PowerOff(ctx)
		if ended, err := d.finished(ctx, c, "power off "+m.Name, refOf(task), err); !ended {
			return err
		}
	}
	foreign, err := foreignDisks(ctx, c, m)
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		task, err := detach(ctx, c, m, foreign)
		if ended, err := d.finished(ctx, c, "detach volumes from "+m.Name, task, err); !ended {
			return err
		}
		if foreign, err = foreignDisks(ctx, c, m); err != nil || len(foreign) > 0 { // one was attached meanwhile
			return err
		}
	}
	task, err := vm.Destroy(ctx)
	_, err = d.finished(ctx, c, "destroy "+m.Name, refOf(task), err)
	return err
}

// finished waits for a task, and reports whether it was done; not, without an error, if it takes longer.
func (d *driver) finished(ctx context.Context, c *vim25.Client, what string, task reference, err error) (bool, error) {
	if err != nil {
		return false, err
	}
	info, err := await(ctx, c, task, patience)
	switch {
	case err != nil || info == nil:
		return false, err
	case info.State == types.TaskInfoStateError && name(info.Error.Fault) == "InvalidPowerState": // off already
		return true, nil
	case info.State == types.TaskInfoStateError && name(info.Error.Fault) == "ManagedObjectNotFound":
		return false, nil
	case info.State == types.TaskInfoStateError:
		return false, failed(what, info.Error)
	}
	return info.State == types.TaskInfoStateSuccess, nil
}

// foreignDisks returns the disks of m that must outlive it: volumes of pods, which a vCenter would destroy with it
// (SPEC E25, R-B29). What the instance had when it was started is its own; of one that was never noted, what lies in
// its own folder.
func foreignDisks(ctx context.Context, c *vim25.Client, m clone) ([]*types.VirtualDisk, error) {
	disks, err := attached(ctx, c, m.Ref)
	if err != nil {
		return nil, err
	}
	home, err := folderOf(ctx, c, m.Ref)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(disks, func(disk *types.VirtualDisk) bool {
		switch {
		case disk.VDiskId != nil: // a disk with a life of its own
			return false
		case m.Launched != nil:
			return slices.Contains(m.Launched.Disks, diskID(disk))
		}
		file, ok := disk.Backing.(types.BaseVirtualDeviceFileBackingInfo)
		return ok && folder(file.GetVirtualDeviceFileBackingInfo().FileName) == home
	}), nil
}

// folderOf returns the datastore's folder in which an instance lives.
func folderOf(ctx context.Context, c *vim25.Client, ref reference) (string, error) {
	var m mo.VirtualMachine
	if err := property.DefaultCollector(c).RetrieveOne(ctx, ref, []string{"config.files.vmPathName"}, &m); err != nil {
		return "", err
	}
	if m.Config == nil {
		return "", provider.Errorf(provider.Unknown, "the vCenter does not tell where %s lies", ref.Value)
	}
	return folder(m.Config.Files.VmPathName), nil
}

func folder(file string) string {
	var p object.DatastorePath
	if !p.FromString(file) {
		return file
	}
	return path.Dir(p.Path)
}

// detach takes disks off m and keeps their files.
func detach(ctx context.Context, c *vim25.Client, m clone, disks []*types.VirtualDisk) (reference, error) {
	var spec types.VirtualMachineConfigSpec
	for _, disk := range disks {
		spec.DeviceChange = append(spec.DeviceChange, &types.VirtualDeviceConfigSpec{Operation: types.VirtualDeviceConfigSpecOperationRemove, Device: disk})
	}
	task, err := object.NewVirtualMachine(c, m.Ref).Reconfigure(ctx, spec)
	return refOf(task), err
}
