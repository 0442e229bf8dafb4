// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// customized is a spec whose addresses come by customization.
func (v *vcenter) customized() []byte {
	return v.spec(map[string]any{"userDataSecret": map[string]any{"name": "cloud-init"}, "network": map[string]any{"devices": []any{
		map[string]any{"networkName": "VM Network", "ipAddrs": []string{"10.0.0.7/24"}, "gateway": "10.0.0.1"}}}})
}

// begun begins a creation, and returns when there is a clone that nobody has gone on with.
func begun(t *testing.T, d *driver, spec []byte) (provider.Ref, []byte) {
	t.Helper()
	resolved, err := d.Resolve(t.Context(), spec)
	must(t, err)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	in, err := d.Create(t.Context(), r, resolved)
	must(t, err)
	r.Progress = in.Progress
	return r, resolved
}

// fails makes calls of a method end with a fault of this name.
func (w *wire) fails(method, fault string) {
	w.set(func(m string, next func() (*http.Response, error)) (*http.Response, error) {
		if m != method {
			return next()
		}
		res, err := page(500, "text/xml", strings.ReplaceAll(refusal, "InvalidState", fault), "")(nil)
		res.Request = &http.Request{Method: http.MethodPost, URL: &url.URL{Path: "/sdk"}}
		return res, err
	})
}

// A task that failed may not say why. It failed all the same: what it was to do is not done.
func TestTaskThatFailedWithoutAReason(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, resolved := begun(t, d, v.customized())
	r.Progress = failedTask(t, v, stepCustomize, nil)
	task := v.service.Context.Map.Get(reference{Type: "Task", Value: "task-failed"}).(*simulator.Task)
	v.service.Context.WithLock(task, func() { task.Info.Error = nil })
	in, err := d.Create(t.Context(), r, resolved)
	if provider.CodeOf(err) != provider.Exhausted || !strings.Contains(err.Error(), stepCustomize+" worker-a: the vCenter does not say why") {
		t.Errorf("Create = %v", err)
	}
	if done, err := d.finished(t.Context(), v.client(t), "destroy worker-a", task.Self, nil); done || provider.CodeOf(err) != provider.Exhausted {
		t.Errorf("finished = %v, %v", done, err)
	}
	r.Progress = in.Progress
	if in, err = proceed(t.Context(), d, r, resolved); err != nil || in.State != provider.StateRunning || w.count("CustomizeVM_Task") != 1 {
		t.Errorf("then %+v, %v, customized %d times", in, err, w.count("CustomizeVM_Task"))
	}
}

// Of a task that the vCenter has forgotten only the instance tells: one that has no customization before it is to start would
// start without its addresses.
func TestForgottenCustomizationIsBegunAnew(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, resolved := begun(t, d, v.customized())
	r.Progress = []byte(`{"step":"customize","task":{"type":"Task","value":"task-forgotten"}}`)
	in, err := proceed(t.Context(), d, r, resolved)
	if err != nil || in.State != provider.StateRunning || w.count("CustomizeVM_Task") != 1 {
		t.Errorf("Create = %+v, %v, customized %d times", in, err, w.count("CustomizeVM_Task"))
	}
}

// A clone that is not complete is not started by a power-cycle: it would run without its user data, and nobody would give it any.
func TestHalfMadeCloneIsNotPowerCycled(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, resolved := begun(t, d, v.spec(nil))
	if err := d.PowerCycle(t.Context(), r); err != nil || w.count("PowerOnVM_Task", "ResetVM_Task") != 0 {
		t.Errorf("PowerCycle = %v, %d calls", err, w.count("PowerOnVM_Task", "ResetVM_Task"))
	}
	if in, err := proceed(t.Context(), d, r, resolved); err != nil || in.State != provider.StateRunning {
		t.Errorf("then %+v, %v", in, err)
	}
	if settings := settingsOf(v.machines(t)["worker-a"]); settings["guestinfo.ignition.config.data"] == "" {
		t.Error("it runs without its user data")
	}
}

// A member of a VM group may go while the group's list is written: the clone is not gone, and must not be made anew.
func TestMemberOfTheGroupThatGoesIsNotTheClone(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, resolved := begun(t, d, v.spec(map[string]any{"workspace": map[string]any{"vmGroup": "zone-a"}}))
	w.fails("ReconfigureComputeResource_Task", "ManagedObjectNotFound")
	var err error
	for range 10 {
		var in provider.Instance
		if in, err = d.Create(t.Context(), r, resolved); err != nil {
			break
		}
		r.Progress = in.Progress
	}
	if provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), `VM group "zone-a"`) {
		t.Errorf("Create = %v (%v)", err, provider.CodeOf(err))
	}
	w.set(nil)
	if in, err := proceed(t.Context(), d, r, resolved); err != nil || in.State != provider.StateRunning || w.count("CloneVM_Task") != 1 {
		t.Errorf("then %+v, %v, %d clones", in, err, w.count("CloneVM_Task"))
	}
}

// What a snapshot holds is destroyed with its instance: one of which the vCenter tells nothing may hold a pod's volume.
func TestSnapshotThatIsNotToldKeepsTheInstance(t *testing.T) {
	t.Parallel()
	v, d, r, _ := made(t)
	vm := object.NewVirtualMachine(v.client(t), v.machines(t)["worker-a"].Self)
	v.noteDisks(t, vm)
	done(t)(vm.CreateSnapshot(t.Context(), "nightly", "", false, false))
	var m mo.VirtualMachine
	must(t, vm.Properties(t.Context(), vm.Reference(), []string{"snapshot"}, &m))
	snapshot := v.service.Context.Map.Get(*m.Snapshot.CurrentSnapshot).(*simulator.VirtualMachineSnapshot)
	v.service.Context.WithLock(snapshot, func() { snapshot.Config.Hardware.Device = nil })
	if err := removed(t, d, r); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), `"nightly"`) || len(v.machines(t)) != 1 {
		t.Errorf("Delete = %v, left %d", err, len(v.machines(t)))
	}
}

// What OpenShift made carries no mark, and a replica of it has the id that the Machine records: nobody can know which is which,
// once one of them is gone. Neither is touched until people have seen to it.
func TestReplicaOfWhatCarriesNoMark(t *testing.T) {
	t.Parallel()
	v, d, r, in := made(t)
	ctx := t.Context()
	write(t, v, "worker-a", keyMark, "")
	r.ID, r.ProviderID = in.ID, in.ProviderID
	replica := copyOf(t, v, v.machines(t)["worker-a"], "replica", v.machines(t)["worker-a"].Config.Uuid)
	tag := v.tag(t, d, "owner", "team-a", reference{})
	for call, err := range map[string]error{"Delete": remove(ctx, d, r), "PowerCycle": d.PowerCycle(ctx, r), "Update": d.Update(ctx, r, map[string]string{tag: ""})} {
		if provider.CodeOf(err) != provider.Exhausted || err == nil || !strings.Contains(err.Error(), replica.Self.Value) {
			t.Errorf("%s = %v", call, err)
		}
	}
	if len(v.machines(t)) != 2 {
		t.Fatalf("left %d", len(v.machines(t)))
	}
	task, err := object.NewVirtualMachine(v.client(t), replica.Self).Reconfigure(ctx, types.VirtualMachineConfigSpec{Uuid: string(uuid.NewUUID())})
	done(t)(task, err)
	err = remove(ctx, d, r)
	if left := v.machines(t); provider.CodeOf(err) != provider.NotFound || len(left) != 1 || left["replica"].Self != replica.Self {
		t.Errorf("then Delete = %v, left %d", err, len(left))
	}
}

// A replica outlives the instance that OpenShift made, with its id: once people have removed that it is all that is found by the id. What has
// neither the UID of the Machine nor its name is not destroyed for that.
func TestReplicaThatOutlivesTheOriginal(t *testing.T) {
	t.Parallel()
	v, d, r, in := made(t)
	ctx := t.Context()
	write(t, v, "worker-a", keyMark, "")
	r.ID, r.ProviderID = in.ID, in.ProviderID
	original := v.machines(t)["worker-a"]
	replica := copyOf(t, v, original, "worker-a_replica", original.Config.Uuid)
	vm := object.NewVirtualMachine(v.client(t), original.Self)
	done(t)(vm.PowerOff(ctx))
	done(t)(vm.Destroy(ctx))
	for call, err := range map[string]error{"Delete": remove(ctx, d, r), "PowerCycle": d.PowerCycle(ctx, r)} {
		if provider.CodeOf(err) != provider.Exhausted || err == nil || !strings.Contains(err.Error(), replica.Self.Value) {
			t.Errorf("%s = %v", call, err)
		}
	}
	left, ok := v.machines(t)["worker-a_replica"]
	if !ok || left.Runtime.PowerState != types.VirtualMachinePowerStatePoweredOff {
		t.Fatalf("left %d, power %q", len(v.machines(t)), left.Runtime.PowerState)
	}
	done(t)(object.NewVirtualMachine(v.client(t), replica.Self).Rename(ctx, "worker-a")) // people say that it is the Machine's
	if err := remove(ctx, d, r); provider.CodeOf(err) != provider.NotFound || len(v.machines(t)) != 0 {
		t.Errorf("then Delete = %v, left %d", err, len(v.machines(t)))
	}
}

// Of a clone whose first call was never answered nothing is recorded. It is there all the same when a later step is refused, and
// the refusal must not read as one of an attempt that made nothing. Only that of the clone itself is.
func TestRefusedStepOfACloneThatNobodyRecorded(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, resolved := begun(t, d, v.spec(nil))
	r.Progress = nil
	w.fails("PowerOnVM_Task", "NoCompatibleHost")
	in, err := d.Create(t.Context(), r, resolved)
	if provider.CodeOf(err) != provider.Exhausted || len(in.Progress) == 0 {
		t.Errorf("Create = %+v, %v: it says nothing of the clone", in, err)
	}
	w.fails("CloneVM_Task", "NoCompatibleHost")
	other := provider.Ref{UID: uuid.NewUUID(), Name: "worker-b", Token: "t"}
	if in, err := d.Create(t.Context(), other, resolved); provider.CodeOf(err) != provider.Exhausted || len(in.Progress) != 0 {
		t.Errorf("Create = %+v, %v: there is no clone", in, err)
	}
}

// What somebody else did meanwhile, or changed so that it is to be read again, is no failure of a step.
func TestStepThatSomebodyElseMade(t *testing.T) {
	t.Parallel()
	for step, fault := range map[string]types.BaseMethodFault{stepStart: &types.InvalidPowerState{}, stepConfigure: &types.ConcurrentAccess{}} {
		v := newVCenter(t)
		d, _ := v.wired(t, v.account())
		r, resolved := begun(t, d, v.spec(nil))
		r.Progress = failedTask(t, v, step, fault)
		if in, err := proceed(t.Context(), d, r, resolved); err != nil || in.State != provider.StateRunning {
			t.Errorf("%s: %+v, %v", step, in, err)
		}
	}
}

// A name that is taken by what nobody can see yet is that of a clone that is being made, as of a call whose answer was lost: no
// refusal, or another attempt would begin beside it.
func TestNameOfACloneThatIsBeingMade(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	resolved, err := d.Resolve(t.Context(), v.spec(nil))
	must(t, err)
	r := provider.Ref{UID: uuid.NewUUID(), Name: "worker-a", Token: "t"}
	w.fails("CloneVM_Task", "DuplicateName")
	if _, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "is being made") {
		t.Errorf("Create = %v (%v)", err, provider.CodeOf(err))
	}
	w.set(nil)
	r.Progress = failedTask(t, v, stepClone, &types.DuplicateName{})
	if _, err := d.Create(t.Context(), r, resolved); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "is being made") {
		t.Errorf("Create = %v (%v)", err, provider.CodeOf(err))
	}
}

// A vCenter shows what it clones in its folder from the beginning, and tells nothing of it but its name. People would remove their own clone.
func TestCloneThatIsBeingMadeIsNoStranger(t *testing.T) {
	t.Parallel()
	v, d, r, _ := made(t)
	ctx := t.Context()
	c, err := d.session.connect(ctx)
	must(t, err)
	at := v.machines(t)[r.Name]
	req := request{Folder: *at.Parent}
	vm := v.service.Context.Map.Get(at.Self).(*simulator.VirtualMachine)
	v.service.Context.WithLock(vm, func() { vm.Config.Uuid, vm.Config.InstanceUuid, vm.Config.ExtraConfig = "", "", nil })
	if err := d.taken(ctx, c, r, req); provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), "is being made") || strings.Contains(err.Error(), "remove") {
		t.Errorf("%v (%v)", err, provider.CodeOf(err))
	}
	// One that is out of reach stays so until people see to it. Whether it is the Machine's nobody can know: nothing is refused for it.
	v.service.Context.WithLock(vm, func() { vm.Runtime.ConnectionState = types.VirtualMachineConnectionStateInaccessible })
	err = d.taken(ctx, c, r, req)
	for _, want := range []string{"its name is taken: " + at.Self.Value + " of that name is inaccessible", "mend its host or datastore, or remove it"} {
		if provider.CodeOf(err) != provider.Unknown || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "being made") {
			t.Errorf("%v (%v), want that %s", err, provider.CodeOf(err), want)
		}
	}
}
