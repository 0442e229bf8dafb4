// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"math/rand/v2"
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

// Of empty Nodes that are about to go as many are given back as the Pods that wait need and no other Node has room for; Pods that bring no
// Nodes need none (SPEC C6, C8, C9, R-S4).
func TestAsManyAreGivenBackAsAreNeeded(t *testing.T) {
	t.Parallel()
	waits := func(name, cpu string) *corev1.Pod { return pod("default", name, "", resources("cpu", cpu)) }
	daemon, cheap := waits("daemon", "3"), waits("cheap", "3")
	daemon.OwnerReferences[0].Kind = "DaemonSet"
	cheap.Spec.Priority = new(int32(-1000))
	young := pending("young", epoch.Add(-time.Second), resources("cpu", "3"))
	gpu := pending("gpu", epoch.Add(-12*time.Second), resources("cpu", "1", "nvidia.com/gpu", "1"))
	group := []*corev1.Pod{waits("g0", "3"), waits("g1", "3"), waits("g2", "3"), waits("g3", "3")}
	for _, p := range group {
		p.Annotations = map[string]string{sizeAnnotation: "4"}
		p.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "g"}
	}
	for _, tt := range []struct {
		name  string
		drain bool
		most  int32 // of the set, which has four
		pods  []*corev1.Pod
		stay  int
		size  int32 // of the set then
	}{
		{"one needs one", false, 9, []*corev1.Pod{waits("p", "3")}, 1, 4},
		{"two in one", false, 9, []*corev1.Pod{waits("p", "2"), waits("q", "1500m")}, 1, 4},
		{"two need two", false, 9, []*corev1.Pod{waits("p", "3"), waits("q", "3")}, 2, 4},
		{"room elsewhere", false, 9, []*corev1.Pod{waits("p", "1")}, 0, 4},
		{"too large", false, 9, []*corev1.Pod{waits("p", "5")}, 0, 4},
		{"a DaemonSet's", false, 9, []*corev1.Pod{daemon}, 0, 4},
		{"below the priority", false, 9, []*corev1.Pod{cheap}, 0, 4},
		{"very new", false, 9, []*corev1.Pod{young}, 1, 4},
		{"beside a new one that more GPUs may be waited for", false, 9, []*corev1.Pod{waits("p", "3"), gpu}, 1, 4},
		{"a group, with a new Node", false, 9, group, 3, 5},
		{"a group that is torn", false, 4, group, 0, 4},
		{"drains go on", true, 9, []*corev1.Pod{waits("p", "3")}, 0, 5},
	} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.pool(t, "s", 4, tt.most, nil, nil)
		state := autoscaling.State{}
		for _, n := range []string{"a", "b", "c", "d"} {
			if n == "d" {
				w.idler(t, "s", n)
				w.must(t, w.Put(pod("default", "p-d", n, resources("cpu", "2500m"))))
				continue
			}
			r := w.going(t, "s", n)
			r.Drain = tt.drain
			state.Removals = append(state.Removals, r)
		}
		for _, p := range tt.pods {
			w.must(t, w.Put(p))
		}
		w.remember(t, state)
		w.once(t)
		if got := w.tainted(); len(got) != 3-tt.stay {
			t.Errorf("%s: Nodes about to go %v, want %d to stay", tt.name, got, tt.stay)
		}
		if got := w.replicas("s")[0]; got != tt.size {
			t.Errorf("%s: the set has %d, want %d", tt.name, got, tt.size)
		}
	}
}

// Of Nodes that are about to go the minimum keeps no other in the place of one that a Pod came to (SPEC C58).
func TestNodeThatTookAPodLetsAnotherGo(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.pool(t, "s", 2, 9, nil, nil)
	w.remember(t, autoscaling.State{Removals: []autoscaling.Removal{w.going(t, "s", "a"), w.going(t, "s", "b")}})
	w.must(t, w.Put(pod("default", "came", "a", resources("cpu", "2500m"))))
	w.must(t, memory.Patch(w.Server, machine.Namespace, "s", func(a *autoscaling.MachineAutoscaler) { a.Spec.MinReplicas = 1 }))
	w.once(t)
	if got := w.tainted(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("Nodes about to go %v, want b alone", got)
	}
}

// beside makes a set of Nodes in use, that have so much left each, and of two empty ones that are about to go, beside Pods that wait.
func (w *world) beside(t testing.TB, most int32, left []int64, pods ...*corev1.Pod) {
	t.Helper()
	w.pool(t, "s", int32(len(left))+2, most, nil, nil)
	for i, milli := range left {
		n := fmt.Sprintf("n-%d", i)
		w.idler(t, "s", n)
		w.must(t, w.Put(pod("default", "on-"+n, n, resources("cpu", fmt.Sprintf("%dm", 4000-milli)))))
	}
	w.remember(t, autoscaling.State{Removals: []autoscaling.Removal{w.going(t, "s", "a"), w.going(t, "s", "b")}})
	for _, p := range pods {
		w.must(t, w.Put(p))
	}
}

// No Node is bought while one goes that is as large, however those that were given back are packed then (SPEC C9, R-S4).
func TestNothingIsBoughtWhileAsMuchGoes(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 1))
	for k := range 400 {
		left := make([]int64, 3+r.IntN(4))
		for i := range left {
			left[i] = 800 + 100*r.Int64N(16)
		}
		sizes := make([]int64, 2+r.IntN(8))
		for i := range sizes {
			sizes[i] = 600 + 100*r.Int64N(15)
		}
		if k == 0 { // the Nodes that are given back come before the others then
			left, sizes = []int64{1600, 1900, 1200}, []int64{1500, 1500, 1500, 1100, 1100, 1100}
		}
		var pods []*corev1.Pod
		for i, milli := range sizes {
			pods = append(pods, pod("default", fmt.Sprintf("p-%d", i), "", resources("cpu", fmt.Sprintf("%dm", milli))))
		}
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.beside(t, 99, left, pods...)
		w.once(t)
		if size, goes := int(w.replicas("s")[0]), w.tainted(); size > len(left)+2 && len(goes) > 0 {
			t.Errorf("room %v, Pods of %v: %d Machines are wanted while %v go", left, sizes, size, goes)
		}
	}
}

// A Pod that is to wait before it brings a Node needs one that there is: our taint may be all that keeps it from it (SPEC C8, C9).
func TestDelayedPodKeepsTheNodeThatItNeeds(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}, scaleUp: {newPodScaleUpDelay: 30s}}")
	w.beside(t, 9, []int64{1000}, pending("p", epoch.Add(-10*time.Second), resources("cpu", "3")))
	w.once(t)
	if got := w.tainted(); len(got) != 1 {
		t.Errorf("Nodes about to go %v, want one", got)
	}
}

// A group of Pods for which not even the Nodes that go are enough keeps none of them, whatever keeps the cluster from growing (W12).
func TestGroupWithoutAPlaceKeepsNoNode(t *testing.T) {
	t.Parallel()
	for _, limits := range []string{"", ", resourceLimits: {maxNodesTotal: 5}", ", resourceLimits: {maxNodesTotal: 3}"} {
		var group []*corev1.Pod
		for i := range 4 {
			p := pod("default", fmt.Sprintf("g-%d", i), "", resources("cpu", "3"))
			p.Annotations = map[string]string{groupAnnotation: "g", sizeAnnotation: "4"}
			group = append(group, p)
		}
		w := fresh(t, "{scaleDown: {enabled: true}"+limits+"}")
		w.beside(t, 5, []int64{1600, 1900, 1200}, group...)
		w.once(t)
		if got := w.tainted(); len(got) != 2 {
			t.Errorf("%q: Nodes about to go %v, want both", limits, got)
		}
	}
}

// Room that others were promised on a Node that is on its way is none: who comes meanwhile needs the Nodes that go (SPEC C9, RELIABILITY 2d).
func TestNodesGoBackToWhoIsPromisedNoRoom(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "big", 0, 5, map[string]string{machine.CapacityCPU: "12", machine.CapacityMemory: "64Gi"}, nil)
	w.pool(t, "s", 2, 9, nil, nil)
	waits := func(name string, rank int32, cpu string) {
		p := pending(name, w.now.Add(-5*time.Second), resources("cpu", cpu))
		p.Spec.Priority = &rank
		w.must(t, w.Put(p))
	}
	for _, n := range []string{"a", "b"} {
		w.idler(t, "s", n)
		w.must(t, w.Put(pod("default", "on-"+n, n, resources("cpu", "3900m"))))
	}
	waits("large", 0, "9")
	waits("early", 10, "2800m")
	w.scans(t, 1)
	state, err := stateOf(snapshotOf(memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)))
	w.must(t, err)
	for _, n := range []string{"a", "b"} {
		w.must(t, w.Remove("Pod", "default", "on-"+n, memory.Force))
		state.Removals = append(state.Removals, w.leaving(t, "s", n))
	}
	w.remember(t, state)
	waits("late-0", 10, "2500m")
	waits("late-1", 20, "3")
	w.once(t)
	if got, goes := w.replicas("big", "s"), w.tainted(); !slices.Equal(got, []int32{1, 2}) || len(goes) > 0 {
		t.Errorf("big and s have %v, want 1 and 2; Nodes about to go %v, want none", got, goes)
	}
}

// going makes a Node of a set that is empty and about to go.
func (w *world) going(t testing.TB, set, name string) autoscaling.Removal {
	t.Helper()
	w.idler(t, set, name)
	return w.leaving(t, set, name)
}

// leaving taints a Node of a set, which is about to go.
func (w *world) leaving(t testing.TB, set, name string) autoscaling.Removal {
	t.Helper()
	w.must(t, memory.Patch(w.Server, "", name, func(x *corev1.Node) {
		x.Spec.Taints = []corev1.Taint{{Key: machine.TaintToBeDeleted, Value: "down-" + name, Effect: corev1.TaintEffectNoSchedule}}
	}))
	return autoscaling.Removal{
		Plan: "down-" + name, Group: "MachineSet/openshift-machine-api/" + set, Node: name, NodeUID: types.UID("node-" + name), Machine: name,
		MachineUID: types.UID("machine-" + name), At: metav1.NewTime(w.now.Add(-3 * time.Second)), MaxGrace: 600,
	}
}

// The Node that a cheaper one replaces goes on its way, also when its Pods are gone by themselves: a Pod that waits gets another one,
// or what was asked for in its place would come for nobody (SPEC W10, W13).
func TestReplacedNodeIsNotGivenBack(t *testing.T) {
	t.Parallel()
	for replaced, want := range map[types.UID]int{"node-a": 1, "node-d": 0} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) {
			ca.Annotations = map[string]string{autoscaling.RepackAnnotation: "migration=0.001 payback=24h"}
		}))
		w.pool(t, "s", 2, 9, nil, nil)
		w.idler(t, "s", "d")
		w.must(t, w.Put(pod("default", "p-d", "d", resources("cpu", "2500m")), pod("default", "p", "", resources("cpu", "3"))))
		w.remember(t, autoscaling.State{
			Removals: []autoscaling.Removal{w.going(t, "s", "a")},
			Repack:   &autoscaling.Repack{Node: "x", NodeUID: replaced, At: metav1.NewTime(w.now.Add(-time.Minute))},
		})
		w.once(t)
		if got := w.tainted(); len(got) != want {
			t.Errorf("while %s is being replaced: Nodes about to go %v, want %d", replaced, got, want)
		}
		if got := w.replicas("s")[0]; got != int32(2+want) {
			t.Errorf("while %s is being replaced: the set has %d, want %d", replaced, got, 2+want)
		}
	}
}
