// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// goneSince is a world in which Node d is being removed since some time, beside three Nodes that are hardly used.
func goneSince(t testing.TB, ago time.Duration) *world {
	t.Helper()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.pool(t, "s", 3, 9, nil, nil)
	for _, n := range []string{"a", "b", "c", "d"} {
		w.idler(t, "s", n)
		w.must(t, w.Put(pod("default", "p-"+n, n, resources("cpu", "500m"))))
	}
	w.must(t, w.Remove("Pod", "default", "p-d", memory.Force))
	at := metav1.NewTime(epoch.Add(-ago))
	w.remember(t, autoscaling.State{
		Removals: []autoscaling.Removal{{
			Plan: "down-d", Group: "MachineSet/openshift-machine-api/s", Node: "d", NodeUID: "node-d", Machine: "d", MachineUID: "machine-d",
			At: at, Drain: true, MaxGrace: 600, Resize: "remove-d", Committed: &at,
		}},
		Unneeded: map[types.UID]metav1.Time{"node-b": metav1.NewTime(epoch.Add(-3 * time.Hour)), "node-c": metav1.NewTime(epoch.Add(-3 * time.Hour))},
	})
	return w
}

func (w *world) tainted() (nodes []string) {
	for _, n := range memory.List[*corev1.Node](w.Server) {
		if len(n.Spec.Taints) > 0 {
			nodes = append(nodes, n.Name)
		}
	}
	return nodes
}

// A Machine that hangs in its deletion takes the place of another drain for five minutes, not for ever; then it is left to
// whoever deletes it (SPEC C65, C61).
func TestMachineThatHangsInDeletionHoldsNoPlace(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		ago  time.Duration
		want int
	}{{time.Minute, 0}, {3 * time.Hour, 1}} {
		w := goneSince(t, tt.ago)
		w.must(t, memory.Patch(w.Server, machine.Namespace, "d", func(m *machine.Machine) { m.Finalizers = []string{"machine.openshift.io"} }))
		w.must(t, w.Remove("Machine", machine.Namespace, "d", memory.Background))
		w.pass(t, time.Minute)
		if got := w.tainted(); len(got) != tt.want {
			t.Errorf("a deletion that takes %s since: Nodes about to go %v, want %d", tt.ago, got, tt.want)
		}
	}
}

// A Node that outlives its Machine takes no place, and is nobody's to hold back: five minutes later it is given back.
func TestNodeThatOutlivesItsMachineHoldsNoPlace(t *testing.T) {
	t.Parallel()
	w := goneSince(t, time.Minute)
	w.must(t, memory.Patch(w.Server, "", "d", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: machine.TaintToBeDeleted, Value: "down-d", Effect: corev1.TaintEffectNoSchedule}}
	}))
	w.must(t, w.Remove("Machine", machine.Namespace, "d", memory.Force))
	w.pass(t, time.Minute)
	if got := w.tainted(); len(got) != 2 || got[1] != "d" {
		t.Errorf("Nodes about to go: %v, want d and one of the others", got)
	}
	w.pass(t, 5*time.Minute)
	state, err := stateOf(snapshotOf(memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)))
	w.must(t, err)
	for _, r := range state.Removals {
		if r.Node == "d" {
			t.Errorf("it is still remembered: %+v", r)
		}
	}
	if d := memory.Get[*corev1.Node](w.Server, "", "d"); len(d.Spec.Taints) > 0 {
		t.Errorf("it keeps %v", d.Spec.Taints)
	}
}

// A Machine that somebody else deleted in the middle of its removal takes neither a place nor from its set's minimum.
func TestRemovalThatSomebodyElseFinishedCountsNowhere(t *testing.T) {
	t.Parallel()
	w := goneSince(t, 3*time.Hour)
	w.remember(t, autoscaling.State{
		Removals: []autoscaling.Removal{{
			Plan: "down-d", Group: "MachineSet/openshift-machine-api/s", Node: "d", NodeUID: "node-d", Machine: "d", MachineUID: "machine-d",
			At: metav1.NewTime(epoch.Add(-time.Minute)), Drain: true, MaxGrace: 600,
		}},
		Unneeded: map[types.UID]metav1.Time{"node-b": metav1.NewTime(epoch.Add(-3 * time.Hour))},
	})
	w.must(t, memory.Patch(w.Server, machine.Namespace, "d", func(m *machine.Machine) { m.Finalizers = []string{"machine.openshift.io"} }))
	w.must(t, w.Remove("Machine", machine.Namespace, "d", memory.Background))
	w.pass(t, time.Minute)
	if got := w.tainted(); len(got) != 1 || got[0] == "d" {
		t.Errorf("Nodes about to go: %v, want one of the others", got)
	}
}

// A list that lost most of its Pods proves no Node empty: what was begun before is not committed on it (RELIABILITY G8, R-B23).
func TestNodeIsNotEmptyOnADoubtfulList(t *testing.T) {
	t.Parallel()
	w := goneSince(t, time.Minute)
	w.remember(t, autoscaling.State{
		Removals: []autoscaling.Removal{{
			Plan: "down-d", Group: "MachineSet/openshift-machine-api/s", Node: "d", NodeUID: "node-d", Machine: "d", MachineUID: "machine-d",
			At: metav1.NewTime(epoch.Add(-time.Minute)), Drain: true, MaxGrace: 600,
		}},
		Seen: autoscaling.Seen{Nodes: 4, Pods: 40},
	})
	w.must(t, memory.Patch(w.Server, machine.Namespace, "s", func(s *machine.MachineSet) { s.Spec.Replicas = new(int32(4)) }))
	w.must(t, memory.Patch(w.Server, "", "d", func(n *corev1.Node) {
		n.Spec.Unschedulable = true
		n.Spec.Taints = []corev1.Taint{{Key: machine.TaintToBeDeleted, Value: "down-d", Effect: corev1.TaintEffectNoSchedule}}
	}))
	w.pass(t, 50*time.Second)
	if got := w.replicas("s"); got[0] != 4 {
		t.Errorf("with 3 Pods of 40: %d replicas, want 4", got[0])
	}
	w.pass(t, time.Minute)
	if got := w.replicas("s"); got[0] != 3 {
		t.Errorf("once it is believed: %d replicas, want 3", got[0])
	}
}

// A Node that a minimum keeps takes no place that another one needs to go: of two that could each take the other's Pod, the one
// that may go does, however long the other has been idle (SPEC C56, C58).
func TestNodeAtTheMinimumLetsAnotherGo(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]string{
		"of its set":     "{scaleDown: {enabled: true}}",
		"of the cluster": "{scaleDown: {enabled: true}, resourceLimits: {cores: {min: 12, max: 100}}}",
	} {
		w := fresh(t, spec)
		w.pool(t, "large", 1, 3, nil, nil)
		w.pool(t, "small", 1, 3, nil, nil)
		if name == "of its set" {
			w.must(t, memory.Patch(w.Server, machine.Namespace, "large", func(ma *autoscaling.MachineAutoscaler) { ma.Spec.MinReplicas = 1 }))
		}
		w.member(t, "large", "a", epoch.Add(-9*time.Hour), resources("cpu", "12", "memory", "16Gi", "pods", "110"), nil)
		w.idler(t, "small", "b")
		w.must(t, w.Put(pod("default", "on-a", "a", resources("cpu", "1")), pod("default", "on-b", "b", resources("cpu", "1"))))
		w.remember(t, autoscaling.State{Unneeded: map[types.UID]metav1.Time{"node-a": metav1.NewTime(epoch.Add(-time.Hour))}})
		w.pass(t, 11*time.Minute)
		if got := w.tainted(); len(got) != 1 || got[0] != "b" {
			t.Errorf("the minimum %s keeps a: %v are removed", name, got)
		}
	}
}

// going is a world of eight Nodes of one set, of which as many as said do not answer, while Node a is being drained and is empty.
func going(t testing.TB, silent int) *world {
	t.Helper()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.pool(t, "s", 8, 9, nil, nil)
	for i, n := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		w.idler(t, "s", n)
		if i >= 8-silent {
			w.must(t, memory.Patch(w.Server, "", n, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionUnknown }))
		}
	}
	w.must(t, memory.Patch(w.Server, "", "a", func(n *corev1.Node) {
		n.Spec.Unschedulable, n.Annotations = true, map[string]string{machine.AnnotationCordonedBy: "down-a"}
		n.Spec.Taints = []corev1.Taint{{Key: machine.TaintToBeDeleted, Value: "down-a", Effect: corev1.TaintEffectNoSchedule}}
	}))
	w.remember(t, autoscaling.State{Seen: autoscaling.Seen{Nodes: 8}, Removals: []autoscaling.Removal{{
		Plan: "down-a", Group: "MachineSet/openshift-machine-api/s", Node: "a", NodeUID: "node-a", Machine: "a", MachineUID: "machine-a",
		At: metav1.NewTime(epoch.Add(-time.Minute)), Drain: true, MaxGrace: 600,
	}}})
	return w
}

// A Node whose Machine its set has let go meanwhile is not taken off the target of the set: another would go instead of it (SPEC C46, R-S4).
func TestNodeOfAMachineThatWasLetGoStays(t *testing.T) {
	t.Parallel()
	w := going(t, 0)
	w.must(t, memory.Patch(w.Server, machine.Namespace, "a", func(m *machine.Machine) { m.OwnerReferences = nil }))
	w.once(t)
	victims, err := machine.Victims(memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "s"))
	w.must(t, err)
	if got := w.replicas("s")[0]; got != 8 || len(victims) > 0 || len(w.tainted()) > 0 {
		t.Errorf("%d replicas, victims %v, Nodes with a taint %v", got, victims, w.tainted())
	}
}

// A Machine of another namespace that names a set as its owner is none of the set's: what that wants is not there yet (SPEC C46).
func TestMachineOfAnotherNamespaceIsNoMember(t *testing.T) {
	t.Parallel()
	w := going(t, 0)
	m := memory.Get[*machine.Machine](w.Server, machine.Namespace, "b").DeepCopy()
	m.Namespace, m.UID, m.ResourceVersion = "other", "machine-of-another", ""
	w.must(t, w.Put(m))
	w.once(t)
	groups := w.decided(t, nil).groups
	if len(groups) == 0 {
		t.Fatal("there is no group")
	}
	if g := groups[0]; len(g.members) != 8 {
		t.Errorf("%s has %d Machines, want 8", g.id, len(g.members))
	}
}

// A taint that somebody took off is written anew, and has stood since then: what was known of the one before says nothing (SPEC C63, R-B24).
func TestTaintWrittenAnewSettlesAnew(t *testing.T) {
	t.Parallel()
	w := going(t, 0)
	w.must(t, memory.Patch(w.Server, "", "a", func(n *corev1.Node) { n.Spec.Taints = nil }))
	w.once(t)
	for _, tt := range []struct {
		after time.Duration
		want  int32
	}{{time.Second, 8}, {settleTime - 2*time.Second, 8}, {time.Second, 7}} {
		w.now = w.now.Add(tt.after)
		w.once(t)
		if got := w.replicas("s")[0]; got != tt.want {
			t.Errorf("%s after the scan before: %d replicas, want %d", tt.after, got, tt.want)
		}
	}
}

// Where so many Nodes are not ready that no removal begins, or nothing at all is scaled, one that was begun is taken back: its Node
// is needed more than ever (RELIABILITY 2d, SPEC C3).
func TestOutageTakesRemovalsBack(t *testing.T) {
	t.Parallel()
	for silent, want := range map[int]int32{2: 7, 3: 8, 5: 8} {
		w := going(t, silent)
		w.pass(t, 30*time.Second)
		if got := w.replicas("s"); got[0] != want {
			t.Errorf("%d of 8 Nodes are silent: %d replicas, want %d", silent, got[0], want)
		}
		if want < 8 {
			continue
		}
		if a := memory.Get[*corev1.Node](w.Server, "", "a"); len(a.Spec.Taints) > 0 || a.Spec.Unschedulable {
			t.Errorf("%d of 8 Nodes are silent: Node a keeps %v %v", silent, a.Spec.Taints, a.Spec.Unschedulable)
		}
		if !slices.ContainsFunc(w.Events(), func(e corev1.Event) bool {
			return e.Reason == "ScaleDownFailed" && e.InvolvedObject.Kind == "Node" && strings.HasSuffix(e.Message, "a third of the nodes are unready")
		}) {
			t.Errorf("%d of 8 Nodes are silent: nobody is told why Node a stays", silent)
		}
		w.pass(t, 6*time.Minute) // until its reason is told
		before := len(w.ours())
		if w.pass(t, time.Minute); len(w.ours()) > before {
			t.Errorf("%d of 8 Nodes are silent: it is not at rest: %v", silent, w.ours()[before:])
		}
	}
}

// A Pod that is leaving when its Node is chosen ends no removal, even if it could not be moved: it goes by itself (SPEC C68, C70).
func TestLeavingPodEndsNoRemoval(t *testing.T) {
	t.Parallel()
	w := going(t, 0)
	p := pod("default", "leaving", "a", resources("cpu", "500m"))
	p.Spec.Volumes = []corev1.Volume{{Name: "scratch", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	p.Finalizers = []string{"example.com/wait"}
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(epoch.Add(9*time.Minute))), new(int64(600))
	w.must(t, w.Put(p))
	w.pass(t, 5*time.Minute)
	if got := w.tainted(); len(got) == 0 || got[0] != "a" || w.replicas("s")[0] != 8 {
		t.Errorf("while it leaves: Nodes with a taint %v, replicas %v", got, w.replicas("s"))
	}
	w.must(t, memory.Patch(w.Server, "default", "leaving", func(p *corev1.Pod) { p.Finalizers = nil }))
	w.must(t, w.Remove("Pod", "default", "leaving", memory.Force))
	w.pass(t, time.Minute)
	if got := w.replicas("s"); got[0] != 7 {
		t.Errorf("once it is gone: replicas %v", got)
	}
}

// leavingLate is a Pod on Node a that was deleted with a day to end.
func leavingLate() *corev1.Pod {
	p := pod("default", "leaving", "a", resources("cpu", "500m"))
	p.Finalizers = []string{"example.com/ends"}
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = new(metav1.NewTime(epoch.Add(24*time.Hour))), new(int64(24*60*60))
	return p
}

// A Node whose last Pod was given a day to end by who deleted it does not keep the only place of a drain for so long: others go, and it
// when the Pod is about to end (SPEC C61, C64).
func TestPodThatTakesADayToEndHoldsNoPlace(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.pool(t, "s", 3, 9, nil, nil)
	for _, n := range []string{"a", "b", "c"} {
		w.idler(t, "s", n)
	}
	w.must(t, w.Put(pod("default", "p-b", "b", resources("cpu", "900m")), pod("default", "p-c", "c", resources("cpu", "2500m")), leavingLate()))
	w.pass(t, 11*time.Minute)
	if got := w.tainted(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("Nodes about to go: %v, want b", got)
	}
	if why := memory.Get[*corev1.Node](w.Server, "", "a").Annotations[machine.AnnotationScaleDownReason]; !strings.Contains(why, "2026-01-02T12:00:00Z") {
		t.Errorf("Node a says %q", why)
	}
	w.must(t, w.Remove("Pod", "default", "p-b", memory.Force))
	w.pass(t, time.Minute)
	w.must(t, w.Remove("Node", "", "b", memory.Background))
	w.must(t, w.Remove("Machine", machine.Namespace, "b", memory.Force))
	w.now = epoch.Add(24*time.Hour - 11*time.Minute)
	if w.pass(t, 11*time.Minute); !slices.Equal(w.tainted(), []string{"a"}) {
		t.Errorf("once it is about to end: %v, want a", w.tainted())
	}
}

// So it is where the Pod is deleted while its Node is drained: the Node is given back.
func TestPodDeletedForADayEndsTheDrain(t *testing.T) {
	t.Parallel()
	w := going(t, 0)
	w.must(t, w.Put(leavingLate()))
	if w.once(t); len(w.tainted()) > 0 {
		t.Errorf("Nodes about to go: %v", w.tainted())
	}
}

// A Pod that tolerates every taint comes back to the Node that it was evicted from, for there is most room: it holds no Node, and is evicted
// once more for its Machine. One that must not be moved, and came as well, does (SPEC C63, C64).
func TestPodThatComesBackHoldsNoNode(t *testing.T) {
	t.Parallel()
	for safe, want := range map[string]int32{"": 7, "false": 8} {
		w := going(t, 0)
		p := pod("default", "back", "a", resources("cpu", "500m"))
		p.CreationTimestamp = metav1.NewTime(epoch.Add(-30 * time.Second))
		p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		p.Annotations = map[string]string{safeAnnotation: safe}
		w.must(t, w.Put(p))
		w.once(t)
		if got := w.replicas("s"); got[0] != want {
			t.Errorf("with a Pod that came back and says %q: replicas %v, want %d", safe, got, want)
		}
	}
}

// A limit that cannot be read is told as such, to whoever looks at the Node and at the limit.
func TestUnreadableBudgetIsTold(t *testing.T) {
	t.Parallel()
	w := idle(t)
	w.must(t, w.Put(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapDisrupt}, Data: map[string]string{machine.DisruptionAtMax: "ten"},
	}))
	w.pass(t, 13*time.Minute)
	if why := memory.Get[*corev1.Node](w.Server, "", "b").Annotations[machine.AnnotationScaleDownReason]; !strings.Contains(why, "cannot be read") || !strings.Contains(why, machine.DisruptionAtMax) {
		t.Errorf("Node b says %q", why)
	}
	if !slices.ContainsFunc(w.Events(), func(e corev1.Event) bool {
		return e.Type == corev1.EventTypeWarning && e.Reason == "DisruptionBudgetUnreadable" && e.InvolvedObject.Name == machine.ConfigMapDisrupt
	}) {
		t.Error("nobody is warned")
	}
	before := len(w.ours())
	if w.pass(t, time.Minute); len(w.ours()) > before {
		t.Errorf("it is not at rest: %v", w.ours()[before:])
	}
}

// A drain whose last Pod takes ten minutes to end, as the settings allow, goes on although people lowered the target a moment ago: it is
// not yet the choice that it waits for (C46, C64).
func TestDrainOfPodsThatTakeLongOutlastsAChoice(t *testing.T) {
	t.Parallel()
	for ago, want := range map[time.Duration][]string{11 * time.Minute: {"x1"}, 20 * time.Minute: nil} {
		for _, drain := range []bool{true, false} {
			w := fresh(t, "{scaleDown: {enabled: true}}")
			w.pool(t, "x", 1, 9, nil, nil) // of which there are two
			w.idler(t, "x", "x1")
			w.idler(t, "x", "x2")
			if drain {
				p := pod("default", "p", "x1", resources("cpu", "500m"))
				p.DeletionTimestamp, p.Finalizers = new(metav1.NewTime(epoch.Add(-time.Second))), []string{"example.com/ends"}
				w.must(t, w.Put(p))
			}
			w.remember(t, autoscaling.State{Removals: []autoscaling.Removal{{
				Plan: "down-x1", Group: "MachineSet/openshift-machine-api/x", Node: "x1", NodeUID: "node-x1", Machine: "x1", MachineUID: "machine-x1",
				At: metav1.NewTime(epoch.Add(-ago)), Drain: drain, MaxGrace: 600,
			}}})
			w.once(t)
			if !drain {
				want = nil
			}
			if got := w.tainted(); !slices.Equal(got, want) {
				t.Errorf("begun %v ago, drain %v: %v are tainted, want %v", ago, drain, got, want)
			}
		}
	}
}
