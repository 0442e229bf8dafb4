// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// made is a vCenter with the instance worker-a of a Machine.
func made(t *testing.T) (*vcenter, *driver, provider.Ref, provider.Instance) {
	t.Helper()
	v := newVCenter(t)
	d, _ := v.wired(t, v.account())
	r, in, err := create(t, d, "worker-a", v.spec(nil))
	must(t, err)
	return v, d, r, in
}

// copyOf clones the instance of a Machine as a person does, or a backup that is restored, or a replication: a vCenter
// copies the settings, which the simulator does not, and gives the clone another instanceUuid.
func copyOf(t *testing.T, v *vcenter, m mo.VirtualMachine, name, biosUUID string) mo.VirtualMachine {
	t.Helper()
	c := v.client(t)
	var settings []types.BaseOptionValue
	for _, o := range m.Config.ExtraConfig {
		if strings.HasPrefix(o.GetOptionValue().Key, "machine-functions.") {
			settings = append(settings, o)
		}
	}
	task, err := object.NewVirtualMachine(c, m.Self).Clone(t.Context(), object.NewFolder(c, *m.Parent), name, types.VirtualMachineCloneSpec{
		Location: types.VirtualMachineRelocateSpec{Datastore: &m.Datastore[0], Pool: m.ResourcePool},
	})
	done(t)(task, err)
	task, err = object.NewVirtualMachine(c, v.machines(t)[name].Self).Reconfigure(t.Context(), types.VirtualMachineConfigSpec{Uuid: biosUUID, ExtraConfig: settings})
	done(t)(task, err)
	return v.machines(t)[name]
}

// remove deletes until the driver says something.
func remove(ctx context.Context, d *driver, r provider.Ref) (err error) {
	for range 100 {
		if err = d.Delete(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

func TestCopyIsNobodysInstance(t *testing.T) {
	t.Parallel()
	v, d, r, in := made(t)
	ctx := t.Context()
	clone := copyOf(t, v, v.machines(t)["worker-a"], "forensics", "")
	id := strings.ToLower(clone.Config.Uuid)
	all, err := d.List(ctx)
	must(t, err)
	told := 0
	for _, i := range all {
		switch {
		case i.ID == in.ID && (i.UID != r.UID || !i.Sole):
			t.Errorf("the instance itself is %+v", i)
		case i.ID == id && (i.UID != "" || i.Sole || i.Token != "" || !strings.Contains(i.Message, string(r.UID))):
			t.Errorf("the copy is %+v", i)
		case i.ID == id:
			told++
		}
	}
	found, err := d.Find(ctx, r)
	if told != 1 || err != nil || len(found) != 1 || found[0].ID != in.ID {
		t.Errorf("told of the copy %d times, of the Machine %+v, %v", told, found, err)
	}
	for _, ref := range []provider.Ref{{Name: r.Name, ID: id}, {Name: r.Name, ProviderID: scheme + id}, r, {UID: r.UID, Name: r.Name, ID: id, ProviderID: scheme + id}} {
		if err := remove(ctx, d, ref); err == nil || ref.ProviderID == "" && provider.CodeOf(err) != provider.NotFound {
			t.Errorf("delete %+v = %v", ref, err)
		}
	}
	left := v.machines(t)
	if _, there := left["forensics"]; !there || len(left) != 1 {
		t.Errorf("left %d, the copy among them: %v", len(left), there)
	}
}

// Some replications keep the id of the BIOS, which is what a Machine records. While the instance is there, it alone is the
// Machine's; once it is gone nobody can know what the other is, and its deletion is up to people.
func TestCopyWithTheRecordedIDIsLeftToPeople(t *testing.T) {
	t.Parallel()
	v, d, r, in := made(t)
	ctx := t.Context()
	r.ID, r.ProviderID = in.ID, in.ProviderID
	replica := copyOf(t, v, v.machines(t)["worker-a"], "replica", v.machines(t)["worker-a"].Config.Uuid)
	if scheme+strings.ToLower(replica.Config.Uuid) != in.ProviderID {
		t.Fatalf("the replica has %s", replica.Config.Uuid)
	}
	found, err := d.Find(ctx, r)
	if err != nil || len(found) != 1 || found[0].UID != r.UID {
		t.Errorf("found %+v, %v", found, err)
	}
	err = remove(ctx, d, r)
	if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), "instanceUuid to "+string(r.UID)) {
		t.Errorf("Delete = %v", err)
	}
	if left := v.machines(t); len(left) != 1 || left["replica"].Self != replica.Self {
		t.Errorf("left %v", left)
	}
	task, err := object.NewVirtualMachine(v.client(t), replica.Self).Reconfigure(ctx, types.VirtualMachineConfigSpec{InstanceUuid: string(r.UID)})
	done(t)(task, err)
	if err := remove(ctx, d, r); provider.CodeOf(err) != provider.NotFound || len(v.machines(t)) != 0 {
		t.Errorf("once it is the Machine's, Delete = %v", err)
	}
}

// A template that was made of an instance keeps everything of it, its instanceUuid too, and is nobody's to destroy.
func TestTemplateMadeOfAnInstanceIsNoInstance(t *testing.T) {
	t.Parallel()
	v, d, r, in := made(t)
	ctx := t.Context()
	vm := object.NewVirtualMachine(v.client(t), v.machines(t)["worker-a"].Self)
	done(t)(vm.PowerOff(ctx))
	must(t, vm.MarkAsTemplate(ctx))
	all, err := d.List(ctx)
	if err != nil || len(all) != 1 || all[0].UID != "" || all[0].Message == "" {
		t.Errorf("List = %+v, %v", all, err)
	}
	r.ID, r.ProviderID = in.ID, in.ProviderID
	if err := remove(ctx, d, r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete = %v", err)
	}
	if len(v.machines(t)) != 1 {
		t.Error("the template is gone")
	}
}

// What a Machine's instance has on its disks is for nobody who may write specs: it is cloned once people have made it a template, or a copy
// of it, and not before.
func TestInstanceOfAMachineIsNoTemplate(t *testing.T) {
	t.Parallel()
	v, d, r, _ := made(t)
	ctx := t.Context()
	spec := v.spec(map[string]any{"template": "worker-a", "diskGiB": 0})
	if _, err := d.Resolve(ctx, spec); provider.CodeOf(err) != provider.Invalid || !strings.Contains(err.Error(), "providerSpec.value.template") {
		t.Errorf("an instance: %v", err)
	}
	vm := object.NewVirtualMachine(v.client(t), v.machines(t)["worker-a"].Self)
	task, err := vm.Reconfigure(ctx, types.VirtualMachineConfigSpec{InstanceUuid: string(uuid.NewUUID())})
	done(t)(task, err)
	if _, err := d.Resolve(ctx, spec); provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), `providerSpec.value.template: "worker-a" runs`) {
		t.Errorf("what runs: %v", err)
	}
	done(t)(vm.PowerOff(ctx))
	if _, err := d.Resolve(ctx, spec); err != nil {
		t.Errorf("a copy that people made: %v", err)
	}
	task, err = vm.Reconfigure(ctx, types.VirtualMachineConfigSpec{InstanceUuid: string(r.UID)})
	done(t)(task, err)
	must(t, vm.MarkAsTemplate(ctx))
	if _, err := d.Resolve(ctx, spec); err != nil {
		t.Errorf("a template: %v", err)
	}
}

// A clone of such a template was neither configured nor started: what the template notes of itself does not come along.
func TestCloneLeavesTheTemplatesNotesBehind(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, _ := v.wired(t, v.account())
	resolved, err := d.Resolve(t.Context(), v.spec(nil))
	must(t, err)
	_, err = d.Create(t.Context(), provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}, resolved)
	must(t, err)
	var settings map[string]string
	for range 100 {
		if m, there := v.machines(t)["worker-a"]; there {
			settings = settingsOf(m)
			break
		}
	}
	for _, key := range []string{keyConfigured, keyLaunched, keyTags} {
		if value, given := settings[key]; !given || value != "" { // as the vCenter is asked to take it away
			t.Errorf("%s of the clone is %q, given %v", key, value, given)
		}
	}
}

// A restore may give an instance another id of the BIOS, so another provider id: its instanceUuid says whose it is.
func TestInstanceWithANewIDIsItsMachines(t *testing.T) {
	t.Parallel()
	v, d, r, in := made(t)
	ctx := t.Context()
	r.ID, r.ProviderID = in.ID, in.ProviderID
	task, err := object.NewVirtualMachine(v.client(t), v.machines(t)["worker-a"].Self).Reconfigure(ctx, types.VirtualMachineConfigSpec{Uuid: string(uuid.NewUUID())})
	done(t)(task, err)
	found, err := d.Find(ctx, r)
	must(t, err)
	listed, err := d.List(ctx)
	must(t, err)
	for _, all := range [][]provider.Instance{found, listed} {
		if len(all) != 1 || all[0].ProviderID == in.ProviderID || all[0].UID != r.UID || !all[0].Sole {
			t.Errorf("found %+v", all)
		}
	}
	if err := remove(ctx, d, r); provider.CodeOf(err) != provider.NotFound || len(v.machines(t)) != 0 {
		t.Errorf("Delete = %v", err)
	}
}
