// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// allFailed is a set of so many Machines that failed, with instances or before they had one, all of which its ledger has.
func allFailed(t testing.TB, n int, made bool) *world {
	t.Helper()
	w := fresh(t, "{}")
	w.pool(t, "x", int32(n), int32(n), nil, nil) //nolint:gosec // thousands
	set, l := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "x"), machine.NewLedger("set-x")
	for k := range n {
		m := &machine.Machine{}
		m.Namespace, m.Name, m.CreationTimestamp = machine.Namespace, l.Name("x", k), metav1.NewTime(epoch.Add(-time.Minute))
		m.UID, m.Labels = types.UID("machine-"+m.Name), map[string]string{machine.LabelOrdinal: fmt.Sprint(k)}
		maps.Copy(m.Labels, set.Spec.Selector.MatchLabels)
		m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, machineSetKind)}
		m.Status.Phase = new(machine.PhaseFailed)
		if made {
			m.Spec.ProviderID = new("memory:///" + m.Name)
		}
		w.must(t, w.Put(m))
		l.Active, l.Next = append(l.Active, k), k+1
	}
	w.must(t, memory.Patch(w.Server, machine.Namespace, "x", func(s *machine.MachineSet) {
		s.Annotations[machine.AnnotationLedger] = l.String()
	}))
	return w
}

// However many Machines of a set failed, no more are given up at once than the cluster's budget allows, of which a quarter is kept for those that are
// ill, whether they have instances, and so take slots, or not (G8).
func TestNoMoreAreGivenUpAtOnceThanTheBudgetAllows(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		w := allFailed(t, 100, made)
		w.scans(t, 3)
		victims, err := machine.Victims(memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "x"))
		w.must(t, err)
		if got := w.replicas("x")[0]; len(victims) != 8 || got != 92 {
			t.Errorf("with instances %v: of a hundred Machines that failed %d are given up at once, %d replicas are left", made, len(victims), got)
		}
	}
}

// A Machine that is given up before it had an instance disrupts nobody: it takes no slot of the budget, which a set whose cloud has no room would use up
// for the hour; one that has an instance takes one (G8).
func TestWhoHasNoInstanceTakesNoSlot(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		w := allFailed(t, 4, made)
		w.scans(t, 3)
		d, err := machine.ParseDisruptions(memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapDisrupt))
		w.must(t, err)
		if got := w.replicas("x")[0]; got != 0 || len(d.Slots) > 0 != made {
			t.Errorf("with instances %v: %d replicas are left, %d slots taken", made, got, len(d.Slots))
		}
	}
}

// However many Machines of a set were never made, those that are named not to come at once have room in the set's annotations.
func TestThoseThatWereNeverMadeHaveRoom(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.pool(t, "x", 3000, 3000, nil, nil)
	l := machine.NewLedger("set-x")
	for k := range 3000 {
		l.Active, l.Next = append(l.Active, k), k+1
	}
	w.must(t, memory.Patch(w.Server, machine.Namespace, "x", func(s *machine.MachineSet) {
		s.Annotations[machine.AnnotationLedger] = l.String()
	}))
	cm := &corev1.ConfigMap{Data: map[string]string{autoscaling.StateKey: `{"schema":1,"groups":{"MachineSet/openshift-machine-api/x":{"request":{"at":"2020-01-01T00:00:00Z"}}}}`}}
	cm.Namespace, cm.Name = machine.Namespace, machine.ConfigMapStatus
	w.must(t, w.Put(cm))
	w.scans(t, 2)
	text := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "x").Annotations[machine.AnnotationVictims]
	if got := w.replicas("x")[0]; got >= 3000 || text == "" || len(text) > 100_000 {
		t.Errorf("%d replicas are left, who goes takes %d bytes", got, len(text))
	}
}

// Nor are more given up while those are there yet that the ledger has chosen for it, as whoever deletes them is refused that; for half an hour, as
// long as a slot would count: they may be there for ever.
func TestNoMoreAreGivenUpWhileOthersDoNotGo(t *testing.T) {
	t.Parallel()
	for _, made := range []bool{false, true} {
		w := allFailed(t, 100, made)
		w.scans(t, 3)
		w.must(t, memory.Patch(w.Server, machine.Namespace, "x", func(s *machine.MachineSet) {
			l, err := machine.ParseLedger(s.Annotations[machine.AnnotationLedger])
			w.must(t, err)
			victims, err := machine.Victims(s)
			w.must(t, err)
			l.Active = slices.DeleteFunc(l.Active, func(k int) bool {
				return slices.ContainsFunc(victims, func(v machine.Victim) bool { return v.Name == l.Name("x", k) })
			})
			s.Annotations[machine.AnnotationLedger] = l.String()
			delete(s.Annotations, machine.AnnotationVictims)
		}))
		w.scans(t, 6)
		w.now = w.now.Add(25 * time.Minute)
		w.scans(t, 6)
		if got := w.replicas("x")[0]; got != 92 {
			t.Errorf("with instances %v: of a hundred Machines that failed eight were chosen and do not go, and %d replicas are left", made, got)
		}
		w.now = w.now.Add(5 * time.Minute)
		w.scans(t, 6)
		if got := w.replicas("x")[0]; got != 84 {
			t.Errorf("with instances %v: they were chosen half an hour ago, and %d replicas are left", made, got)
		}
	}
}

// A scan in which thousands of Machines have failed takes no minutes: whom the budget lets go is found out in one look at who goes already.
func BenchmarkGivenUp(b *testing.B) {
	for _, n := range []int{500, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for range b.N {
				b.StopTimer()
				w := allFailed(b, n, false)
				b.StartTimer()
				w.scans(b, 2)
			}
		})
	}
}

// Machines that failed before they had a Node say nothing of the Nodes that their set has: it is backed off for them, and grows after that, although at its
// minimum nobody gives them up (C4, C46). With those that failed under their Nodes it is sick.
func TestSetWhoseMachinesNeverCameGrows(t *testing.T) {
	t.Parallel()
	for _, came := range []bool{false, true} {
		w := fresh(t, "{}")
		w.pool(t, "s", 4, 20, nil, nil)
		w.must(t, memory.Patch(w.Server, machine.Namespace, "s", func(ma *autoscaling.MachineAutoscaler) { ma.Spec.MinReplicas = 4 }))
		w.scans(t, 2)
		set := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "s")
		for k := range 4 {
			m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: fmt.Sprint("f", k), Labels: set.Spec.Template.Labels, CreationTimestamp: metav1.NewTime(epoch.Add(-time.Hour))}}
			m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, machineSetKind)}
			m.Status.Phase = new(machine.PhaseFailed)
			if came {
				m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: m.Name, UID: types.UID(m.Name)}
			}
			w.must(t, w.Put(m))
		}
		w.must(t, w.Put(pod("default", "waits", "", resources("cpu", "3"))))
		w.pass(t, 20*time.Minute)
		if grew := w.replicas("s")[0] > 4; grew == came {
			t.Errorf("its Machines had Nodes %v: it grew %v", came, grew)
		}
	}
}
