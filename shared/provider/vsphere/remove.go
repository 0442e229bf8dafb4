// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"errors"
	"path"
	"slices"
	"strings"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/kubeapi"
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
		err := d.release(ctx, r)
		if errors.Is(err, kubeapi.ErrConflict) {
			return nil // whoever writes the claim keeps it: the next call looks again
		}
		if err != nil {
			return err
		}
		return provider.Errorf(provider.NotFound, "delete %s: no instance is there", r.Name)
	}
	if err := ambiguous(r, found); err != nil {
		return err
	}
	var errs []error
	for _, m := range found {
		if m.copied() {
			errs = append(errs, provider.Errorf(provider.Exhausted, "delete %s: %s has the Machine's mark and the id that it records, but not its UID for instanceUuid: a copy is left alone; "+
				"remove it, or set its instanceUuid to %s", r.Name, m.Ref.Value, m.Mark.UID))
			continue
		}
		err := d.destroy(ctx, c, m)
		switch name(faultOf(err)) {
		case "ManagedObjectNotFound", "TaskInProgress", "InvalidPowerState", "ConcurrentAccess":
			err = nil // somebody else is at it: it goes, or the next call looks again
		case "NotFound", "FileNotFound": // as of its disk: it is there itself
			err = provider.Errorf(provider.Exhausted, "delete %s (%s), which lacks something: %w: mend it, or remove it from the vCenter's inventory", m.Name, m.Ref.Value, err)
		case "InvalidState":
			err = stuck(ctx, c, m, err)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// stuck says in which state an instance is that the vCenter will not remove in it: one whose host or datastore is away is
// disconnected, inaccessible or orphaned, and stays so until people do something.
func stuck(ctx context.Context, c *vim25.Client, m clone, refused error) error {
	var now mo.VirtualMachine
	err := property.DefaultCollector(c).RetrieveOne(ctx, m.Ref, []string{"runtime.connectionState"}, &now)
	if name(faultOf(err)) == "ManagedObjectNotFound" {
		return nil
	}
	if err != nil {
		return err
	}
	return provider.Errorf(provider.Exhausted, "delete %s (%s), which is %s: %w: mend its host or datastore, or remove it from the vCenter's inventory",
		m.Name, m.Ref.Value, now.Runtime.ConnectionState, refused)
}

// release lets the addresses of a Machine go when nothing of it is left that could use them (SPEC E25). Another attempt has the same.
func (d *driver) release(ctx context.Context, r provider.Ref) error {
	if r.UID == "" || r.Attempt || d.addresses == nil {
		return nil
	}
	return d.addresses.release(ctx, d.account.Namespace, r)
}

// stopCloning cancels the clone that the recorded progress speaks of, and reports whether it still runs: nothing of it
// can be found yet, but it will be.
func (d *driver) stopCloning(ctx context.Context, c *vim25.Client, r provider.Ref) (bool, error) {
	p, err := provider.ProgressOf[progress](r)
	if err != nil || p.Task == nil || p.Step != stepClone { // of a record that nobody can read the UID alone leads to what there is
		return false, nil
	}
	info, err := await(ctx, c, *p.Task, 0)
	if err != nil || ended(info) || !clones(info) {
		return false, err
	}
	if p.Template != "" && info.Entity != nil && info.Entity.Value != p.Template { // somebody else's: waited for, and let be
		return true, nil
	}
	return true, cancel(ctx, c, *p.Task)
}

// clones reports whether a task makes a clone, as far as the vCenter says what it does. A record may name somebody else's: one that was set up
// anew counts its tasks from the beginning.
func clones(info *types.TaskInfo) bool {
	return info.Name == "" || strings.EqualFold(info.Name, "CloneVM_Task")
}

// destroy switches m off, lets go of disks that are not its own, and destroys the rest.
func (d *driver) destroy(ctx context.Context, c *vim25.Client, m clone) error {
	if slices.Contains(m.Unreadable, keyLaunched) {
		return provider.Errorf(provider.Exhausted, "delete %s (%s): its setting %s, which names its own disks, cannot be read: empty it, and they are those in its folder",
			m.Name, m.Ref.Value, keyLaunched)
	}
	vm := object.NewVirtualMachine(c, m.Ref)
	if m.Power != types.VirtualMachinePowerStatePoweredOff {
		task, err := vm.PowerOff(ctx)
		if ended, err := d.finished(ctx, c, "power off "+m.Name, refOf(task), err); !ended {
			return err
		}
	}
	home, err := folderOf(ctx, c, m.Ref)
	if err != nil {
		return err
	}
	if err := captured(ctx, c, m, home); err != nil {
		return err
	}
	foreign, err := foreignDisks(ctx, c, m, home)
	if err != nil {
		return err
	}
	if len(foreign) > 0 {
		task, err := detach(ctx, c, m, foreign)
		if ended, err := d.finished(ctx, c, "detach volumes from "+m.Name, task, err); !ended {
			return err
		}
		if foreign, err = foreignDisks(ctx, c, m, home); err != nil || len(foreign) > 0 { // one was attached meanwhile
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
	if err != nil || info == nil || info.State != types.TaskInfoStateError {
		return info != nil && info.State == types.TaskInfoStateSuccess, err
	}
	why := reason(info)
	switch name(why.Fault) {
	case "InvalidPowerState": // off already
		return true, nil
	case "ManagedObjectNotFound":
		return false, nil
	}
	return false, failed(what, why)
}

// foreignDisks returns the disks of m that must outlive it: volumes of pods, which a vCenter would destroy with it
// (SPEC E25, R-B29).
func foreignDisks(ctx context.Context, c *vim25.Client, m clone, home string) ([]*types.VirtualDisk, error) {
	disks, err := attached(ctx, c, m.Ref)
	return m.foreign(disks, home), err
}

// foreign returns those of some disks that are not m's own. Those noted when the instance was started are its own wherever
// they have been moved since; of one that was never noted, those that would be noted now.
func (m clone) foreign(disks []*types.VirtualDisk, home string) []*types.VirtualDisk {
	own := ownDisks(disks, home)
	if m.Launched != nil {
		own = m.Launched.Disks
	}
	return slices.DeleteFunc(disks, func(disk *types.VirtualDisk) bool {
		return disk.VDiskId == nil && diskID(disk) != "" && slices.Contains(own, diskID(disk))
	})
}

// ownDisks returns the ids of the disks that lie in an instance's own folder and have no life of their own. A pod's
// volume may be attached before the disks are noted: it lies elsewhere. A disk without an id is nobody's to destroy.
func ownDisks(disks []*types.VirtualDisk, home string) []string {
	own := []string{}
	for _, disk := range disks {
		file, ok := disk.Backing.(types.BaseVirtualDeviceFileBackingInfo)
		if !ok || disk.VDiskId != nil || diskID(disk) == "" {
			continue
		}
		if folder(file.GetVirtualDeviceFileBackingInfo().FileName) == home {
			own = append(own, diskID(disk))
		}
	}
	slices.Sort(own)
	return own
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
