// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// comes makes a Node of the set for every replica that has none; only each Machine's own Pods differ from what it offers.
func (w *world) comes(t testing.TB, set string, capacity corev1.ResourceList, labels map[string]string) {
	t.Helper()
	for n := len(memory.List[*machine.Machine](w.Server)); n < int(w.replicas(set)[0]); n++ {
		w.born++
		w.member(t, set, fmt.Sprintf("%s-%03d", set, w.born), w.now, capacity, labels)
	}
}

// An instance offers less than its annotations say. A Pod that asks for more than a Node has, and less than the
// annotations, brings one Node, and once that has shown what it offers no other one, even after it has gone (SPEC C13, C15).
func TestSetAtZeroRemembersWhatItsNodesOffer(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "s", 0, 4, map[string]string{machine.CapacityCPU: "4", machine.CapacityMemory: "8Gi"}, nil)
	w.must(t, w.Put(pending("fat", epoch.Add(-time.Minute), resources("cpu", "1", "memory", "7800Mi"))))
	for range 6 * 180 {
		w.once(t)
		w.comes(t, "s", resources("cpu", "4", "memory", "7Gi", "pods", "110"), nil)
		w.victimsGo(t)
		w.now = w.now.Add(10 * time.Second)
	}
	if got := w.replicas("s"); w.born != 1 || got[0] != 0 {
		t.Errorf("in three hours %d Nodes came for a Pod that none of them can hold; %d are there", w.born, got)
	}
}

// A set whose only Node is taken away, by scale-down or by somebody who deletes the Machine, remembers its zone; one that
// makes other Machines now does not (SPEC C13, W6).
func TestSetAtZeroRemembersItsZone(t *testing.T) {
	t.Parallel()
	for _, by := range []string{"scale-down", "a person", "a person who changes the set"} {
		w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 1m, delayAfterAdd: 0s}}")
		w.set(t, "s", 1, 4, midsize(), nil)
		w.member(t, "s", "s-1", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), map[string]string{corev1.LabelTopologyZone: "a"})
		want := int32(1)
		if by != "scale-down" {
			w.must(t, memory.Patch(w.Server, machine.Namespace, "s", func(s *machine.MachineSet) { s.Spec.Replicas = new(int32(0)) }))
			w.must(t, memory.Patch(w.Server, machine.Namespace, "s-1", func(m *machine.Machine) { m.Finalizers = []string{"machine.openshift.io"} }))
			w.must(t, w.Remove("Machine", machine.Namespace, "s-1", memory.Background))
			w.scans(t, 1)
			w.must(t, memory.Patch(w.Server, machine.Namespace, "s-1", func(m *machine.Machine) { m.Finalizers = nil }))
			w.must(t, w.Remove("Node", "", "s-1", memory.Background))
		}
		if by == "a person who changes the set" {
			want = 0
			w.must(t, memory.Patch(w.Server, machine.Namespace, "s", func(s *machine.MachineSet) {
				s.Spec.Template.Spec.Labels = map[string]string{"another": "template"}
			}))
		}
		for range 30 {
			w.scans(t, 1)
			w.victimsGo(t)
		}
		if got := w.replicas("s"); got[0] != 0 || len(memory.List[*corev1.Node](w.Server)) != 0 {
			t.Fatalf("%s: not at zero: %d", by, got)
		}
		p := pending("db", w.now.Add(-time.Minute), resources("cpu", "1"))
		p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: "a"}
		w.must(t, w.Put(p))
		if got := w.once(t); w.replicas("s")[0] != want {
			t.Errorf("%s: the Nodes were in zone a, and a Pod wants zone a: %d Nodes wanted\n%s", by, w.replicas("s"), got)
		}
	}
}

// What is put on a set's last Node once that is to go, as people who look after it may, is no word about the next one: a Pod that wants
// none of it brings one. So it is where an earlier removal of the Node was taken back, after which it was changed for good (SPEC C13).
func TestNodeThatGoesIsNoModel(t *testing.T) {
	t.Parallel()
	for with, change := range map[string]func(*corev1.Node){
		"nothing": func(*corev1.Node) {},
		"a taint": func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "maintenance", Value: "true", Effect: corev1.TaintEffectNoSchedule})
		},
		"a label": func(n *corev1.Node) { n.Labels["decommission"] = "true" },
	} {
		w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 1m, delayAfterAdd: 0s, delayAfterFailure: 10s}}")
		w.set(t, "s", 1, 4, midsize(), nil)
		w.member(t, "s", "s-1", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), map[string]string{corev1.LabelTopologyZone: "a"})
		goes := func() bool {
			return slices.ContainsFunc(memory.List[*corev1.Node](w.Server), func(n *corev1.Node) bool {
				return slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == machine.TaintToBeDeleted })
			})
		}
		until := func(what string, done func() bool) {
			for range 60 {
				if done() {
					return
				}
				w.scans(t, 1)
			}
			t.Fatalf("%s: %s: never", with, what)
		}
		until("to go", goes)
		w.must(t, memory.Patch(w.Server, "", "s-1", func(n *corev1.Node) {
			n.Annotations = map[string]string{disabledAnnotation: "true"}
		}))
		until("taken back", func() bool { return !goes() })
		w.must(t, memory.Patch(w.Server, "", "s-1", func(n *corev1.Node) {
			n.Annotations, n.Labels["pool"] = nil, "blue"
		}))
		until("to go again", goes)
		w.must(t, memory.Patch(w.Server, "", "s-1", change))
		until("at zero", func() bool {
			w.victimsGo(t)
			return w.replicas("s")[0] == 0 && len(memory.List[*corev1.Node](w.Server)) == 0
		})
		p := pending("db", w.now.Add(-time.Minute), resources("cpu", "1"))
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{
				{Key: "decommission", Operator: corev1.NodeSelectorOpDoesNotExist}, {Key: "pool", Operator: corev1.NodeSelectorOpIn, Values: []string{"blue"}},
			}}},
		}}}
		w.must(t, w.Put(p))
		if got := w.once(t); w.replicas("s")[0] != 1 {
			t.Errorf("%s: the set stays at zero\n%s", with, got)
		}
	}
}

// What people put on a set's Nodes while these are still there, to see one empty, is of that Node alone: it says nothing about the next one, be
// it that the Node comes first of several when the set is resized, or the last one, of a set that was at zero before (SPEC C13, C14).
func TestTaintOfOneNodeIsNotRemembered(t *testing.T) {
	t.Parallel()
	capacity := resources("cpu", "4", "memory", "16Gi", "pods", "110")
	maintain := func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "maintenance", Value: "true", Effect: corev1.TaintEffectNoSchedule})
	}
	operated := func(n *corev1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "operated", Effect: corev1.TaintEffectNoSchedule})
	}
	for _, tt := range []struct {
		name string
		by   func(t *testing.T, w *world)
		want int32
	}{
		{"on the first of two", func(t *testing.T, w *world) {
			t.Helper()
			w.must(t, memory.Patch(w.Server, "", "s-1", maintain))
		}, 1},
		{"on both", func(t *testing.T, w *world) {
			t.Helper()
			w.must(t, memory.Patch(w.Server, "", "s-1", operated))
			w.must(t, memory.Patch(w.Server, "", "s-2", operated))
		}, 0},
		{"on the last", func(t *testing.T, w *world) {
			t.Helper()
			w.comesToNothing(t)
			w.must(t, memory.Patch(w.Server, machine.Namespace, "s", func(s *machine.MachineSet) { s.Spec.Replicas = new(int32(1)) }))
			w.member(t, "s", "s-3", w.now, capacity, nil)
			w.must(t, memory.Patch(w.Server, "", "s-3", maintain))
		}, 1},
	} {
		w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 2m, delayAfterAdd: 0s, delayAfterFailure: 10s}}")
		w.set(t, "s", 2, 4, midsize(), nil)
		for _, name := range []string{"s-1", "s-2"} {
			w.member(t, "s", name, epoch.Add(-time.Hour), capacity, nil)
		}
		tt.by(t, w)
		w.comesToNothing(t)
		w.must(t, w.Put(pending("web", w.now.Add(-time.Minute), resources("cpu", "1"))))
		if got := w.once(t); w.replicas("s")[0] != tt.want {
			t.Errorf("%s: %d Nodes are wanted, want %d\n%s", tt.name, w.replicas("s")[0], tt.want, got)
		}
	}
}

// comesToNothing lets scale-down take all Nodes.
func (w *world) comesToNothing(t *testing.T) {
	t.Helper()
	for range 100 {
		w.scans(t, 1)
		w.victimsGo(t)
		if len(memory.List[*corev1.Node](w.Server)) == 0 {
			return
		}
	}
	t.Fatal("some Node stays")
}
