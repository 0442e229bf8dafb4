// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// write changes settings of an instance, as whoever may edit it can.
func write(t *testing.T, v *vcenter, name, key, value string) {
	t.Helper()
	spec := types.VirtualMachineConfigSpec{ExtraConfig: []types.BaseOptionValue{option(key, value)}}
	task, err := object.NewVirtualMachine(v.client(t), v.machines(t)[name].Self).Reconfigure(t.Context(), spec)
	done(t)(task, err)
}

// Whoever may edit one virtual machine must not hide every instance in the vCenter: a mark that nobody can read is no mark.
// The instance is still its Machine's, whose UID it carries.
func TestMarkThatCannotBeReadHidesNoOther(t *testing.T) {
	t.Parallel()
	v, d, damaged, _ := made(t)
	ctx := t.Context()
	other, in, err := create(t, d, "worker-b", v.spec(nil))
	must(t, err)
	for _, mark := range []string{`{"cluster":`, `{"cluster":"cluster-a389-fmxsv","uid":7}`} {
		write(t, v, "worker-a", keyMark, mark)
		all, err := d.List(ctx)
		if err != nil || len(all) != 1 || all[0].ID != in.ID {
			t.Errorf("List = %+v, %v, want worker-b", all, err)
		}
		found, err := d.Find(ctx, damaged)
		if err != nil || len(found) != 1 || found[0].Name != "worker-a" || !strings.Contains(found[0].Message, keyMark) {
			t.Errorf("Find = %+v, %v, want worker-a, and that its mark cannot be read", found, err)
		}
	}
	if err := remove(ctx, d, damaged); provider.CodeOf(err) != provider.NotFound || len(v.machines(t)) != 1 {
		t.Errorf("Delete = %v, left %d", err, len(v.machines(t)))
	}
	if found, err := d.Find(ctx, other); err != nil || len(found) != 1 {
		t.Errorf("worker-b: %+v, %v", found, err)
	}
}

// Which disks outlive an instance is not guessed where it was noted once and cannot be read any more.
func TestNoteOfDisksThatCannotBeReadIsToldAndKeepsThem(t *testing.T) {
	t.Parallel()
	v, d, r, _ := made(t)
	ctx := t.Context()
	write(t, v, "worker-a", keyLaunched, "lost")
	if all, err := d.List(ctx); err != nil || len(all) != 1 || !strings.Contains(all[0].Message, keyLaunched) {
		t.Errorf("List = %+v, %v", all, err)
	}
	err := remove(ctx, d, r)
	if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), keyLaunched) || len(v.machines(t)) != 1 {
		t.Errorf("Delete = %v", err)
	}
	write(t, v, "worker-a", keyLaunched, "")
	if err := remove(ctx, d, r); provider.CodeOf(err) != provider.NotFound || len(v.machines(t)) != 0 {
		t.Errorf("without the note: %v", err)
	}
}

// While its files are out of reach a vCenter knows an instance and nothing of its settings: it is there all the same. Taken
// for gone, it would run beside the one that replaces it when the datastore is back.
func TestInstanceOutOfReachIsNotGone(t *testing.T) {
	t.Parallel()
	v, d, r, in := made(t)
	ctx := t.Context()
	r.ID, r.ProviderID = in.ID, in.ProviderID
	ref := v.machines(t)["worker-a"].Self
	vm := v.service.Context.Map.Get(ref).(*simulator.VirtualMachine)
	change := func(f func()) { v.service.Context.WithLock(vm, f) }
	uuid, settings := vm.Config.Uuid, vm.Config.ExtraConfig
	change(func() {
		vm.Config.Uuid, vm.Config.ExtraConfig = "", nil
		vm.Runtime.ConnectionState = types.VirtualMachineConnectionStateInaccessible
	})
	if all, err := d.List(ctx); err != nil || len(all) != 0 {
		t.Errorf("List = %+v, %v", all, err)
	}
	_, found := d.Find(ctx, r)
	for call, err := range map[string]error{"Find": found, "Delete": d.Delete(ctx, r), "PowerCycle": d.PowerCycle(ctx, r)} {
		if provider.CodeOf(err) != provider.Unknown || err == nil || !strings.Contains(err.Error(), "is inaccessible") {
			t.Errorf("%s = %v, want that it is out of reach", call, err)
		}
	}
	change(func() {
		vm.Config.Uuid, vm.Config.ExtraConfig = uuid, settings
		vm.Runtime.ConnectionState = types.VirtualMachineConnectionStateConnected
	})
	if all, err := d.Find(ctx, r); err != nil || len(all) != 1 || all[0].ID != in.ID {
		t.Errorf("once it is back: %+v, %v", all, err)
	}
}

// What the vCenter finds by its id is there, also if it says nothing else of it, and says why or not.
func TestInstanceThatIsWithheldIsNotGone(t *testing.T) {
	t.Parallel()
	v, d, r, _ := made(t)
	vm := v.service.Context.Map.Get(v.machines(t)["worker-a"].Self).(*simulator.VirtualMachine)
	v.service.Context.WithLock(vm, func() { vm.Config.Uuid, vm.Config.ExtraConfig = "", nil })
	_, err := d.Find(t.Context(), r)
	for call, err := range map[string]error{"Find": err, "Delete": d.Delete(t.Context(), r)} {
		if provider.CodeOf(err) != provider.Unknown || err == nil || !strings.Contains(err.Error(), "is connected") {
			t.Errorf("%s = %v", call, err)
		}
	}
	withheld := read(types.ObjectContent{Obj: vm.Self, MissingSet: []types.MissingProperty{
		{Path: "config.uuid", Fault: types.LocalizedMethodFault{Fault: &types.NoPermission{PrivilegeId: "System.Read"}}},
		{Path: "guest.net", Fault: types.LocalizedMethodFault{Fault: &types.SystemError{}}},
	}})
	if err := withheld.blind("worker-a"); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "NoPermission") {
		t.Errorf("what the user may not read: %v (%v): one that is withheld is no reason to look at no other", err, provider.CodeOf(err))
	}
}
