// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// frozen is an API server that lets nobody make or change one set, ConfigMap or Node, as by a policy.
type frozen struct {
	cluster.Cluster
	name string
}

func (f frozen) Apply(ctx context.Context, a plan.Action) error {
	var o plan.Object
	switch a := a.(type) {
	case plan.Create:
		o = a.Object
	case plan.Update:
		o = a.Old
	}
	switch o.(type) {
	case *machine.MachineSet, *corev1.ConfigMap, *corev1.Node:
		if o.GetName() == f.name {
			return &cluster.RefusedError{Err: errors.New("denied by policy")}
		}
	}
	return f.Cluster.Apply(ctx, a)
}

// freeze lets nobody make or change a set, ConfigMap or Node from now on.
func (w *world) freeze(name string) { w.through(frozen{w.As(Function.Name), name}) }

// A set whose new bounds the API server refuses does not grow, nor shrink, and its MachineAutoscaler says why. All others go on: the Pod that waits
// gets its Node of another one, and the idle Node of a third goes. Once all is said nothing more is written (SPEC B89, C33, G11).
func TestSetThatCannotBeChangedHoldsNoOtherUp(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 1m, delayAfterAdd: 0s}}")
	for _, set := range []string{"a", "b", "c"} {
		w.pool(t, set, 1, 4, nil, map[string]string{"pool": set})
		w.idler(t, set, set+"-1")
	}
	w.must(t, w.Put(pod("default", "full", "b-1", resources("cpu", "3"))))
	w.scans(t, 2)
	w.freeze("a")
	w.must(t, memory.Patch(w.Server, machine.Namespace, "a", func(ma *autoscaling.MachineAutoscaler) { ma.Spec.MaxReplicas = 6 }))
	p := pod("default", "waits", "", resources("cpu", "3500m"))
	p.Spec.NodeSelector = map[string]string{"pool": "b"}
	w.must(t, w.Put(p))
	for range 20 {
		w.scans(t, 1)
		w.victimsGo(t)
	}
	if got := w.replicas("a", "b", "c"); !slices.Equal(got, []int32{1, 2, 0}) {
		t.Errorf("replicas %v, want [1 2 0]", got)
	}
	if got := w.tainted(); len(got) > 0 {
		t.Errorf("%v are to go", got)
	}
	ma := memory.Get[*autoscaling.MachineAutoscaler](w.Server, machine.Namespace, "a")
	if c := meta.FindStatusCondition(ma.Status.Conditions, conditionApplied); c == nil || c.Reason != "FailedUpdateTarget" || !strings.Contains(c.Message, "denied by policy") {
		t.Errorf("the MachineAutoscaler says %+v", c)
	}
	if why := memory.Get[*corev1.Node](w.Server, "", "a-1").Annotations[machine.AnnotationScaleDownReason]; !strings.Contains(why, "denied by policy") {
		t.Errorf("the idle Node of the set stays because %q", why)
	}
}

// A set that is refused to grow cools nothing down, however often that is tried: an idle Node of another set goes. Where one set of those that
// were to grow together did, scale-down waits as after any growth (SPEC C33, C53).
func TestRefusedGrowthCoolsNothingDown(t *testing.T) {
	t.Parallel()
	for _, grows := range []bool{false, true} {
		w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 5m, delayAfterAdd: 1h}}")
		for _, set := range []string{"a", "b", "c"} {
			w.pool(t, set, 0, 4, nil, map[string]string{"pool": set})
		}
		w.must(t, memory.Patch(w.Server, machine.Namespace, "a", func(s *machine.MachineSet) { s.Spec.Replicas = new(int32(1)) }))
		w.idler(t, "a", "a-1")
		w.scans(t, 2)
		w.freeze("b")
		for _, set := range []string{"b", "c"} {
			if set == "c" && !grows {
				continue
			}
			p := pod("default", "waits-for-"+set, "", resources("cpu", "3500m"))
			p.Spec.NodeSelector = map[string]string{"pool": set}
			w.must(t, w.Put(p))
		}
		for range 120 {
			w.scans(t, 1)
			w.victimsGo(t)
		}
		want := []int32{0, 0, 0}
		if grows {
			want = []int32{1, 0, 1}
		}
		if got := w.replicas("a", "b", "c"); !slices.Equal(got, want) {
			t.Errorf("another set grows %v: replicas %v, want %v", grows, got, want)
		}
	}
}

// Scale-down waits after a growth whatever becomes of its set: a manifest that replaces it takes the plan's id off, and one that is made anew never had
// it. A growth of which somebody else came first was none (SPEC C53).
func TestGrowthCoolsDownWhateverBecomesOfItsSet(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		become func(*world, *machine.MachineSet)
		goes   bool
	}{
		{name: "nothing", become: func(*world, *machine.MachineSet) {}},
		{name: "a manifest replaces it", become: func(w *world, s *machine.MachineSet) {
			delete(s.Annotations, machine.AnnotationLastPlan)
			w.must(t, w.Put(s))
		}},
		{name: "it is made anew", become: func(w *world, s *machine.MachineSet) {
			w.must(t, w.Remove("MachineSet", s.Namespace, s.Name, memory.Background))
			delete(s.Annotations, machine.AnnotationLastPlan)
			s.UID, s.ResourceVersion, s.CreationTimestamp = "anew", "", metav1.NewTime(w.now)
			s.Spec.Replicas = new(int32(0))
			w.must(t, w.Put(s))
		}},
		{name: "it never was", goes: true, become: func(w *world, s *machine.MachineSet) {
			delete(s.Annotations, machine.AnnotationLastPlan)
			s.Spec.Replicas = new(int32(0))
			w.must(t, w.Put(s))
		}},
	} {
		w := fresh(t, "{scaleDown: {enabled: true, delayAfterAdd: 30m}}")
		w.pool(t, "s", 2, 4, nil, nil)
		w.pool(t, "big", 0, 4, nil, map[string]string{"kind": "big"})
		w.idler(t, "s", "idle")
		w.idler(t, "s", "full")
		w.must(t, w.Put(pod("default", "f", "full", resources("cpu", "3"))))
		p := pod("default", "waits", "", resources("cpu", "2"))
		p.Spec.NodeSelector = map[string]string{"kind": "big"}
		w.must(t, w.Put(p))
		w.remember(t, autoscaling.State{Unneeded: map[types.UID]metav1.Time{"node-idle": metav1.NewTime(epoch.Add(-2 * time.Hour))}})
		w.scans(t, 1)
		if got := w.replicas("big"); got[0] != 1 {
			t.Fatalf("%s: big has %v replicas", tt.name, got)
		}
		tt.become(w, memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "big").DeepCopy())
		w.must(t, w.Remove("Pod", "default", "waits", memory.Background))
		w.scans(t, 4)
		if got := w.tainted(); (len(got) > 0) != tt.goes {
			t.Errorf("%s: %v go", tt.name, got)
		}
	}
}

// A Pod that would have a Node of a set that cannot be changed gets one of another that does for it as well (SPEC C33).
func TestPodIsServedBesideASetThatCannotBeChanged(t *testing.T) {
	t.Parallel()
	for _, bounds := range []bool{true, false} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.pool(t, "a", 0, 4, nil, nil)
		w.pool(t, "b", 0, 4, nil, nil)
		w.scans(t, 2)
		w.freeze("a")
		if bounds {
			w.must(t, memory.Patch(w.Server, machine.Namespace, "a", func(ma *autoscaling.MachineAutoscaler) { ma.Spec.MaxReplicas = 6 }))
		}
		w.must(t, w.Put(pod("default", "waits", "", resources("cpu", "3"))))
		w.scans(t, 3)
		if got := w.replicas("a", "b"); !slices.Equal(got, []int32{0, 1}) {
			t.Errorf("new bounds %v: replicas %v, want [0 1]", bounds, got)
		}
	}
}

// Nor does anybody wait for a set that cannot be changed where that is to be lifted to its minimum, or to lose a Machine that failed (SPEC C36, C49).
func TestPodIsServedBesideASetThatCannotBeLiftedNorLowered(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, w *world){
		"lifted": func(t *testing.T, w *world) {
			t.Helper()
			w.must(t, memory.Patch(w.Server, machine.Namespace, "a", func(ma *autoscaling.MachineAutoscaler) { ma.Spec.MinReplicas = 2 }))
			w.must(t, memory.Patch(w.Server, machine.Namespace, "a", func(s *machine.MachineSet) { s.Annotations[machine.AnnotationMinSize] = "2" }))
			w.freeze("a")
		},
		"lowered": func(t *testing.T, w *world) {
			t.Helper()
			w.freeze("a")
			w.must(t, memory.Patch(w.Server, machine.Namespace, "a-1", func(m *machine.Machine) {
				m.Status.Phase, m.Status.NodeRef = new(machine.PhaseFailed), nil
			}))
			w.must(t, w.Remove("Node", "", "a-1", memory.Background))
		},
	} {
		w := fresh(t, "{scaleDown: {enabled: true}, enforceNodeGroupMinSize: Enabled}")
		w.pool(t, "a", 1, 4, nil, map[string]string{"pool": "a"})
		w.idler(t, "a", "a-1")
		w.pool(t, "b", 0, 4, nil, map[string]string{"pool": "b"})
		w.scans(t, 2)
		change(t, w)
		w.must(t, memory.Patch(w.Server, machine.Namespace, "a", func(ma *autoscaling.MachineAutoscaler) { ma.Spec.MaxReplicas = 6 }))
		p := pod("default", "waits", "", resources("cpu", "3"))
		p.Spec.NodeSelector = map[string]string{"pool": "b"}
		w.must(t, w.Put(p))
		w.scans(t, 3)
		if got := w.replicas("a", "b"); !slices.Equal(got, []int32{1, 1}) {
			t.Errorf("%s: replicas %v, want [1 1]", name, got)
		}
	}
}

// Where the budget of disruptions cannot be written nothing goes, which is told; but a Pod that waits gets its Node (RELIABILITY G8).
func TestBudgetThatCannotBeWrittenHoldsNoPodUp(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 1m}}")
	w.pool(t, "a", 1, 4, nil, map[string]string{"pool": "a"})
	w.idler(t, "a", "a-1")
	w.must(t, memory.Patch(w.Server, machine.Namespace, "a-1", func(m *machine.Machine) {
		m.Status.Phase, m.Status.NodeRef, m.Spec.ProviderID = new(machine.PhaseFailed), nil, new("memory:///a-1")
	}))
	w.must(t, w.Remove("Node", "", "a-1", memory.Background))
	w.pool(t, "b", 0, 4, nil, map[string]string{"pool": "b"})
	p := pod("default", "waits", "", resources("cpu", "3"))
	p.Spec.NodeSelector = map[string]string{"pool": "b"}
	w.must(t, w.Put(p))
	w.freeze(machine.ConfigMapDisrupt)
	w.scans(t, 3)
	if got := w.replicas("a", "b"); !slices.Equal(got, []int32{1, 1}) {
		t.Errorf("replicas %v, want [1 1]", got)
	}
	told := slices.ContainsFunc(w.Events(), func(e corev1.Event) bool {
		return e.InvolvedObject.Name == machine.ConfigMapDisrupt && strings.Contains(e.Message, "cannot be written: denied by policy")
	})
	if !told {
		t.Error("nobody was told")
	}
}

// A Node whose set may not become smaller is given back as soon as that is known, and told of: else it would stay drained, and take nobody. It is
// tried again as any whose removal failed (SPEC C63).
func TestNodeWhoseSetMayNotShrinkIsGivenBack(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 1m, delayAfterAdd: 0s, delayAfterFailure: 3m}}")
	w.pool(t, "a", 2, 4, nil, nil)
	w.idler(t, "a", "a-1")
	w.idler(t, "a", "a-2")
	w.must(t, w.Put(pod("default", "stays", "a-2", resources("cpu", "3"))))
	w.scans(t, 2)
	w.freeze("a")
	begun, with := 0, 0
	for range 60 {
		before := len(w.tainted())
		w.scans(t, 1)
		with += len(w.tainted())
		begun += truth(before == 0 && len(w.tainted()) > 0)
	}
	if begun < 2 || begun > 3 || with > 3*begun {
		t.Errorf("in ten minutes the Node was to go %d times, for %d scans", begun, with)
	}
	if n := memory.Get[*corev1.Node](w.Server, "", "a-1"); w.replicas("a")[0] != 2 || n == nil {
		t.Errorf("%d Nodes are wanted", w.replicas("a")[0])
	}
	told := slices.ContainsFunc(w.Events(), func(e corev1.Event) bool {
		return e.Reason == "ScaleDownFailed" && e.InvolvedObject.Name == "a-1" && strings.Contains(e.Message, "denied by policy")
	})
	if !told {
		t.Error("nobody was told")
	}
}

// A Node that cannot be tainted, or given back, stays, and is told of; those that come after it by name go all the same (SPEC C63).
func TestNodeThatCannotBeChangedKeepsNoOther(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, down string
		tainted    bool // and uncordoned by somebody
	}{
		{"after a while", "unneededTime: 1m, delayAfterFailure: 1m", false},
		{"at once", "unneededTime: 0s, delayAfterFailure: 0s", false},
		{"tainted", "unneededTime: 1m, delayAfterFailure: 1m", true},
	} {
		w := fresh(t, "{scaleDown: {enabled: true, delayAfterAdd: 0s, "+tt.down+"}}")
		w.pool(t, "a", 1, 4, nil, nil)
		w.idler(t, "a", "a-1")
		for tt.tainted && len(w.tainted()) == 0 {
			w.scans(t, 1)
		}
		if tt.tainted {
			w.must(t, memory.Patch(w.Server, "", "a-1", func(n *corev1.Node) { n.Spec.Unschedulable = false }))
		}
		w.freeze("a-1")
		w.pool(t, "b", 1, 4, nil, nil)
		w.idler(t, "b", "b-1")
		for range 40 {
			w.scans(t, 1)
			w.victimsGo(t)
		}
		if got := w.replicas("a", "b"); !slices.Equal(got, []int32{1, 0}) {
			t.Errorf("%s: replicas %v, want [1 0]", tt.name, got)
		}
		told := slices.ContainsFunc(w.Events(), func(e corev1.Event) bool {
			return e.Reason == "ScaleDownFailed" && e.InvolvedObject.Name == machine.ConfigMapStatus && strings.Contains(e.Message, "denied by policy")
		})
		if !told {
			t.Errorf("%s: nobody was told", tt.name)
		}
	}
}

// Where the state cannot be made, nothing is scaled, and the ClusterAutoscaler says so: Pods that wait would learn it nowhere (SPEC C77).
func TestStateThatCannotBeMadeIsTold(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.pool(t, "a", 0, 4, nil, nil)
	w.must(t, w.Put(pod("default", "waits", "", resources("cpu", "3"))))
	w.freeze(machine.ConfigMapStatus)
	w.scans(t, 3)
	told := slices.ContainsFunc(w.Events(), func(e corev1.Event) bool {
		return e.InvolvedObject.Name == autoscaling.Name && e.Type == corev1.EventTypeWarning && strings.Contains(e.Message, "nothing is scaled") && strings.Contains(e.Message, "denied by policy")
	})
	if got := w.replicas("a")[0]; got != 0 || !told {
		t.Errorf("%d Nodes are wanted, told: %v, of %d events", got, told, len(w.Events()))
	}
}
