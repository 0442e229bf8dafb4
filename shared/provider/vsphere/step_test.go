// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What a task that failed means for its step: nothing where somebody else did the same or wrote in between, which is looked at anew; but a clone
// is refused by whatever is not its name, and only a start that found it on is done.
func TestWhatAFailedTaskMeans(t *testing.T) {
	t.Parallel()
	d := &driver{}
	for _, c := range []struct {
		step  string
		fault types.BaseMethodFault
		over  bool
	}{
		{stepStart, &types.InvalidPowerState{}, true},
		{stepStart, &types.ConcurrentAccess{}, true},
		{stepNote, &types.ConcurrentAccess{}, true},
		{stepConfigure, &types.InvalidPowerState{}, false},
		{stepClone, &types.InvalidPowerState{}, false},
		{stepStart, &types.DuplicateName{}, false},
		{stepStart, &types.ResourceInUse{}, false},
		{stepClone, &types.ResourceInUse{}, false},
	} {
		err := d.failure(t.Context(), nil, provider.Ref{Name: "m"}, request{}, c.step, &types.LocalizedMethodFault{Fault: c.fault})
		if (err == nil) != c.over {
			t.Errorf("%s, %s: %v", c.step, name(c.fault), err)
		}
	}
}

// A task that waits or runs is not over; one that the vCenter has forgotten is.
func TestTaskIsOver(t *testing.T) {
	t.Parallel()
	for state, want := range map[types.TaskInfoState]bool{
		types.TaskInfoStateQueued: false, types.TaskInfoStateRunning: false, types.TaskInfoStateSuccess: true, types.TaskInfoStateError: true,
	} {
		if ended(&types.TaskInfo{State: state}) != want {
			t.Errorf("%s: %v", state, !want)
		}
	}
	if !ended(nil) {
		t.Error("what is forgotten is waited for")
	}
}

// No step begins in a call that could not tell of it any more: a clone that nobody recorded would be left to the horizon.
func TestCallThatEndsBeginsNothing(t *testing.T) {
	t.Parallel()
	for left, want := range map[time.Duration]bool{margin - time.Second: true, margin + time.Minute: false} {
		ctx, cancel := context.WithTimeout(t.Context(), left)
		if hurried(ctx) != want {
			t.Errorf("%s before its end it hurries: %v", left, !want)
		}
		cancel()
	}
	if hurried(t.Context()) {
		t.Error("without an end it hurries")
	}
}

// What the vCenter tells of an instance is read as it is: a setting that nobody can read is none, is told, and hides no other; what was taken
// away is not told. That the id is not told is no word on who it is.
func TestWhatAVCenterTells(t *testing.T) {
	t.Parallel()
	said := func(name string, value any) types.DynamicProperty {
		return types.DynamicProperty{Name: name, Val: value}
	}
	setting := func(key, value string) types.DynamicProperty {
		return said(keyed(key), types.OptionValue{Key: key, Value: value})
	}
	m := read(types.ObjectContent{Obj: reference{Type: "VirtualMachine", Value: "vm-1"}, PropSet: []types.DynamicProperty{
		said("name", "m"), said("config.uuid", "4200ABCD"), said("config.instanceUuid", "ABCD"), said("config.changeVersion", "7"), said("config.template", true),
		said("config.tools.pendingCustomization", "c"), setting(keyMark, `{"cluster":"prod","uid":"u","token":"t"}`), setting(keyConfigured, "x"),
		setting(keyLaunched, `{"disks":["d"]}`), setting(keyTags, `["a"]`),
	}})
	want := clone{
		Ref: reference{Type: "VirtualMachine", Value: "vm-1"}, Name: "m", UUID: "4200abcd", InstanceUUID: "abcd", Version: "7", Template: true, Customizing: "c",
		Mark: mark{Cluster: "prod", UID: "u", Token: "t"}, Configured: "x", Launched: &launched{Disks: []string{"d"}}, Tags: []string{"a"},
	}
	if !reflect.DeepEqual(m, want) || m.blind("m") != nil {
		t.Errorf("%+v, want %+v, %v", m, want, m.blind("m"))
	}
	m = read(types.ObjectContent{PropSet: []types.DynamicProperty{setting(keyMark, `{"cluster":"prod","uid":7}`), setting(keyLaunched, "lost"), setting(keyTags, ""), setting(keyConfigured, "")}})
	if m.Mark != (mark{}) || m.Launched == nil || m.Launched.Disks != nil || len(m.Unreadable) != 2 || m.Tags != nil || m.Configured != "" {
		t.Errorf("damaged: %+v", m)
	}
	for _, fault := range []types.BaseMethodFault{nil, &types.NoPermission{}, &types.NotFound{}} {
		o := types.ObjectContent{}
		if fault != nil {
			o.MissingSet = []types.MissingProperty{{Path: "name", Fault: types.LocalizedMethodFault{Fault: &types.NotFound{}}}, {Path: "config.uuid", Fault: types.LocalizedMethodFault{Fault: fault}}}
		}
		if m := read(o); provider.CodeOf(m.blind("m")) != provider.Unknown || fault != nil && m.Withheld != name(fault) {
			t.Errorf("%T: %v, withheld by %q", fault, m.blind("m"), m.Withheld)
		}
	}
}

// Whose clone could not be looked for is not without one: no other is begun. And what was begun is not said to be nothing, though no clone is
// seen: else another attempt begins beside it (R-S1).
func TestLookThatFailedMakesNoClone(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, resolved := begun(t, d, v.spec(nil))
	before := w.count("CloneVM_Task")
	w.fails("FindAllByUuid", "HostCommunication")
	if in, err := d.Create(t.Context(), r, resolved); err == nil || w.count("CloneVM_Task") != before {
		t.Errorf("Create = %+v, %v, %d more clones", in, err, w.count("CloneVM_Task")-before)
	}
	w.fails("CloneVM_Task", "NoCompatibleHost")
	other := provider.Ref{UID: uuid.NewUUID(), Name: "worker-b", Token: "t", Progress: []byte(`{"tagged":true}`)}
	if in, err := d.Create(t.Context(), other, resolved); provider.CodeOf(err) != provider.Exhausted || len(in.Progress) == 0 {
		t.Errorf("Create = %+v, %v: it says nothing of what was begun", in, err)
	}
}
