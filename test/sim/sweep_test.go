// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	scalemachineset "github.com/machine-functions/machine-functions/functions/scale-machineset"
	sweepinstances "github.com/machine-functions/machine-functions/functions/sweep-instances"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// What was listed before the cloud was asked is not the last word: a Machine, or its Node, that comes back while the cloud
// answers keeps an instance that was long found to have no owner. Machines and Nodes are listed once more before anything goes
// (RELIABILITY 2b.10(i), R-B23). Without either, the same sweep removes it: so much is held by the first case.
func TestWhatComesWhileTheCloudAnswersKeepsItsInstance(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		comes func(*testing.T, *World, *machine.Machine, provider.Instance)
		want  int
	}{
		"nothing": {func(*testing.T, *World, *machine.Machine, provider.Instance) {}, 0},
		"its machine": {func(t *testing.T, w *World, m *machine.Machine, _ provider.Instance) {
			t.Helper()
			if err := w.API.Put(m.DeepCopy()); err != nil {
				t.Error(err)
			}
		}, 1},
		"a machine that records it, out of a backup": {func(t *testing.T, w *World, m *machine.Machine, _ provider.Instance) {
			t.Helper()
			restored := m.DeepCopy()
			restored.UID = "another"
			if err := w.API.Put(restored); err != nil {
				t.Error(err)
			}
		}, 1},
		"a node that is ready": {func(t *testing.T, w *World, _ *machine.Machine, in provider.Instance) {
			t.Helper()
			n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "back"}, Spec: corev1.NodeSpec{ProviderID: in.ProviderID}}
			n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
			if err := w.API.Put(n); err != nil {
				t.Error(err)
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, m := orphaned(t)
			in := w.Cloud.Instances()[0]
			sweep(t, w) // the first sighting
			w.Pass(5 * time.Minute)
			var came atomic.Bool
			w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
				if c.Op == cloud.OpList && c.After && !came.Swap(true) {
					tt.comes(t, w, m, in)
				}
				return nil
			}
			sweep(t, w)
			if got := len(w.Cloud.Instances()); got != tt.want || !came.Load() {
				t.Errorf("%d instances are left, want %d", got, tt.want)
			}
		})
	}
}

// Storage is set back to before the first Machine had its instance, and before the second was made. The first finds its instance again, and
// no call follows; what the second had is removed even so, as its account is on record (2b.10, R-S2, docs/restoring.md).
func TestAccountOfAnInstanceThatIsFoundAgainIsSwept(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	if err := w.API.Put(Set("worker", 1)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Runner(scalemachineset.Function).Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
	restore := w.API.Backup()
	settle(t, w, 12)
	if err := w.API.Scale(machine.Namespace, "worker", 2); err != nil {
		t.Fatal(err)
	}
	settle(t, w, 12)
	if n := len(w.Cloud.Instances()); n != 2 {
		t.Fatalf("%d instances", n)
	}
	w.Pass(5 * time.Minute)
	restore()
	for range 120 { // an hour in which no Node registers: one that is Ready is for people
		w.Pass(30 * time.Second)
		for _, f := range w.Functions {
			if _, err := w.Runner(f).Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
		}
		sweep(t, w)
	}
	left, machines := w.Cloud.Instances(), memory.List[*machine.Machine](w.API)
	if len(machines) != 1 || len(left) != 1 || machine.ProviderID(machines[0]) != left[0].ProviderID {
		t.Errorf("%d Machines, %d instances are left", len(machines), len(left))
	}
}

func sweep(t *testing.T, w *World) {
	t.Helper()
	if _, err := w.Runner(sweepinstances.Function).Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
}

// orphaned returns a world with one instance whose Machine and Node were lost, and the Machine.
func orphaned(t *testing.T) (*World, *machine.Machine) {
	t.Helper()
	w := machineLayer()
	if err := w.API.Put(Set("worker", 1)); err != nil {
		t.Fatal(err)
	}
	settle(t, w, 12)
	sweep(t, w) // the account is on record
	m := memory.List[*machine.Machine](w.API)[0]
	lost := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	lost(memory.Patch(w.API, m.Namespace, m.Name, func(m *machine.Machine) { m.Finalizers = nil }))
	lost(w.API.Remove("MachineSet", machine.Namespace, "worker", memory.Orphan))
	lost(w.API.Remove("Machine", m.Namespace, m.Name, memory.Background))
	lost(w.API.Remove("Node", "", memory.List[*corev1.Node](w.API)[0].Name, memory.Background))
	if len(memory.List[*machine.Machine](w.API)) != 0 || len(w.Cloud.Instances()) != 1 {
		t.Fatal(state(w))
	}
	return w, m
}
