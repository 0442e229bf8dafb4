// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Run(t, Function)
}

func TestProperties(t *testing.T) {
	t.Parallel()
	scenario.Properties(t, Function)
}

func TestEveryMachineHasItsTurn(t *testing.T) {
	t.Parallel()
	var s snapshot.Snapshot
	for i := range 3 * maxDrains {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%03d", i), DeletionTimestamp: &metav1.Time{}, Finalizers: []string{machine.Finalizer}}}
		s.Add(m)
	}
	seen := map[string]bool{}
	for i := range 100 {
		s.Invocation = fmt.Sprint(i)
		turn := due(s)
		if len(turn) != maxDrains {
			t.Fatalf("%d machines in one scan, want %d", len(turn), maxDrains)
		}
		for _, m := range turn {
			seen[m.Name] = true
		}
	}
	if len(seen) != 3*maxDrains {
		t.Errorf("%d of %d machines had their turn in 100 scans", len(seen), 3*maxDrains)
	}
}

// As many drains as one scan takes up may be stuck for ever, as those of a zone whose budgets allow nothing: a Machine that had no Node, and
// whose Node came late, has its turn beside them all the same, and does not stay for ever with its instance (R-L4, R-B31).
func TestLateNodeHasItsTurnBesideDrainsThatAreStuck(t *testing.T) {
	t.Parallel()
	var s snapshot.Snapshot
	add := func(name string, cs ...machine.Condition) {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: name, DeletionTimestamp: &metav1.Time{}, Finalizers: []string{machine.Finalizer}}}
		m.Status.Conditions = cs
		s.Add(m)
	}
	for i := range maxDrains {
		add(fmt.Sprintf("stuck-%03d", i))
	}
	add("late", machine.True(machine.ConditionDrained, machine.ReasonNoNode, ""))
	for i := range 10 {
		s.Invocation = fmt.Sprint(i)
		if slices.ContainsFunc(due(s), func(m *machine.Machine) bool { return m.Name == "late" }) {
			return
		}
	}
	t.Error("no turn in 10 scans")
}

// Ten Pods whose eviction a webhook denies hold up nobody: others are asked for every time (R-L4).
func TestEveryPodHasItsTurn(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}
	var s snapshot.Snapshot
	s.Add(n)
	for i := range 3 * maxEvictions {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("web-%02d", i), Namespace: "default", UID: types.UID(fmt.Sprint("pod-", i))}
		s.Add(&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: n.Name}})
	}
	seen := map[string]bool{}
	for i := range 100 {
		s.Invocation = fmt.Sprint(i)
		turn := evictionOf(s, n, nil, time.Time{}).now()
		if len(turn) != maxEvictions {
			t.Fatalf("%d pods in one invocation, want %d", len(turn), maxEvictions)
		}
		for _, seq := range turn {
			if a, ok := seq.Do[0].(plan.Evict); ok {
				seen[a.Pod.Name] = true
			}
		}
	}
	if len(seen) != 3*maxEvictions {
		t.Errorf("%d of %d pods had their turn in 100 invocations", len(seen), 3*maxEvictions)
	}
}

// A scale-down has two minutes, of which each scan has its share: a full Node is empty by then, and no scan goes on for longer
// than one invocation can (RELIABILITY 2d, SPEC C64).
func TestScaleDownEmptiesAFullNodeInTime(t *testing.T) {
	t.Parallel()
	const pods, scans, rounds = 250, 10, 8
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a"}}
	left := map[string]*corev1.Pod{}
	for i := range pods {
		meta := metav1.ObjectMeta{Name: fmt.Sprintf("web-%03d", i), Namespace: "default", UID: types.UID(fmt.Sprint("pod-", i))}
		left[meta.Name] = &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: n.Name}}
	}
	for scan := range scans {
		outcomes := map[plan.Key]plan.Outcome{}
		for round := 0; ; round++ {
			if round > rounds {
				t.Fatalf("scan %d is not quiet after %d rounds", scan, rounds)
			}
			s := snapshot.Snapshot{Invocation: fmt.Sprint(scan), Outcomes: outcomes}
			s.Add(n)
			for _, p := range left {
				s.Add(p)
			}
			all := empty(s, n, autoscaling.Removal{})
			if len(all) == 0 {
				break
			}
			for _, seq := range all {
				if a, ok := seq.Do[0].(plan.Evict); ok {
					outcomes[a.Key()] = plan.Outcome{}
					delete(left, a.Pod.Name)
				}
			}
		}
	}
	if len(left) > 0 {
		t.Errorf("%d pods are left after %d scans", len(left), scans)
	}
}

// A drain that waits says so once, however many Pods may not be evicted and whoever forbids it: its own write would wake it
// again at once (R-S14, B27).
func TestBlockedDrainIsQuiet(t *testing.T) {
	t.Parallel()
	spent, denied := plan.Outcome{Result: plan.Blocked, Message: "too few are healthy"}, plan.Outcome{Result: plan.Refused, Message: "denied by a webhook"}
	for _, c := range []struct {
		pods, free, twice int // free are the last ones, of no budget; twice every so-manieth, of several
		answer            plan.Outcome
	}{
		{pods: 1, answer: spent},
		{pods: maxEvictions, answer: spent},
		{pods: maxEvictions + 1, answer: spent},
		{pods: 3 * maxEvictions, answer: spent},
		{pods: 3 * maxEvictions, answer: denied},
		{pods: 3 * maxEvictions, free: 1, answer: spent},
		{pods: 3 * maxEvictions, free: maxEvictions + 2, answer: denied},
		{pods: 3 * maxEvictions, free: maxEvictions + 2, twice: 3, answer: denied},
	} {
		t.Run(fmt.Sprintf("%+v", c), func(t *testing.T) {
			t.Parallel()
			s, _, err := scenario.Load("testdata/budget-blocks.txtar")
			if err != nil {
				t.Fatal(err)
			}
			s.World.Pods = nil
			again := s.World.DisruptionBudgets[0].DeepCopy()
			again.Name, again.Spec.Selector.MatchLabels = "again", map[string]string{"twice": ""}
			s.World.Add(again)
			for i := range c.pods {
				labels := map[string]string{"app": "web"}
				if c.twice > 0 && i%c.twice == 1 {
					labels["twice"] = ""
				}
				if i >= c.pods-c.free {
					labels = nil
				}
				meta := metav1.ObjectMeta{Name: fmt.Sprintf("web-%02d", i), Namespace: "default", UID: types.UID(fmt.Sprint("pod-", i)), Labels: labels}
				s.World.Add(&corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{NodeName: "node-a"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
			}
			writes := 0
			for i := range 20 {
				s.World.Invocation = fmt.Sprint(i)
				writes += blocked(t, &s, c.answer)
			}
			if writes != 1 {
				t.Errorf("%d status writes in 20 invocations in which nothing changed, want 1", writes)
			}
		})
	}
}

// blocked plays one invocation in which every eviction is answered alike, and returns how often it wrote the status.
func blocked(t *testing.T, s *scenario.Scenario, answer plan.Outcome) int {
	t.Helper()
	writes := 0
	s.World.Outcomes = map[plan.Key]plan.Outcome{}
	for {
		seen, _, err := scenario.Observe(Function, *s)
		if err != nil {
			t.Fatal(err)
		}
		p := Decide(seen)
		if p.Quiet() {
			return writes
		}
		for _, a := range p.Actions() {
			switch a := a.(type) {
			case plan.Evict:
				s.World.Outcomes[a.Key()] = answer
			case plan.UpdateStatus:
				next, ok := a.New.DeepCopyObject().(*machine.Machine)
				if !ok {
					t.Fatal(a)
				}
				writes++
				next.ResourceVersion += "1"
				s.World.Machines = []*machine.Machine{next}
			case plan.Approve, plan.Create, plan.CreateInstance, plan.Delete, plan.DeleteInstance, plan.PowerCycle, plan.Update, plan.UpdateInstance:
				t.Fatal(a)
			}
		}
	}
}

// A Pod whose eviction was accepted is waited for, also where nobody says by when it ends, as KubeVirt's, which moves before it goes.
func TestPodThatLeavesWithoutATime(t *testing.T) {
	t.Parallel()
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}
	if got := (eviction{leaving: []*corev1.Pod{p}}).progress(); got != waitsForPods {
		t.Errorf("it %q, want %q", got, waitsForPods)
	}
}

// A Pod comes back to a Node that takes none: since its drain began, and its turn came, and since the cluster saw the cordon, which people
// may have taken off in between (RELIABILITY 2e).
func TestSinceWhenANodeTakesNoPods(t *testing.T) {
	t.Parallel()
	began := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	waits := func(reason string) machine.Condition {
		c := machine.False(machine.ConditionDrained, "Info", reason, "")
		c.LastTransitionTime = metav1.NewTime(began)
		return c
	}
	done := machine.True(machine.ConditionDrained, "Drained", "")
	done.LastTransitionTime = metav1.NewTime(began)
	for name, tt := range map[string]struct {
		says    []machine.Condition
		taint   time.Time
		deleted time.Time
		want    time.Time
	}{
		"not begun":                     {nil, time.Time{}, began, time.Time{}},
		"not begun, cordoned by people": {nil, began, began, time.Time{}},
		"in the queue":                  {[]machine.Condition{waits(reasonQueued)}, began, began, time.Time{}},
		"drained before":                {[]machine.Condition{done}, began, began, time.Time{}},
		"begun":                         {[]machine.Condition{waits("Draining")}, time.Time{}, began, began},
		"begun, cordoned before":        {[]machine.Condition{waits("Draining")}, began.Add(-time.Minute), began, began},
		"begun, cordoned anew":          {[]machine.Condition{waits("Draining")}, began.Add(time.Minute), began, began.Add(time.Minute)},
		"begun in a time that a backup brought back": {[]machine.Condition{waits("Draining")}, began, began.Add(time.Hour), began.Add(time.Hour)},
	} {
		m, n := &machine.Machine{}, &corev1.Node{}
		m.Status.Conditions, m.DeletionTimestamp = tt.says, new(metav1.NewTime(tt.deleted))
		n.Spec.Taints = []corev1.Taint{{Key: "another", TimeAdded: new(metav1.NewTime(began.Add(time.Hour)))}, {Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
		if !tt.taint.IsZero() {
			n.Spec.Taints[1].TimeAdded = new(metav1.NewTime(tt.taint))
		}
		if got := closedSince(m, n); !got.Equal(tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
		n.Spec.Taints = n.Spec.Taints[:1]
		if got := closedSince(m, n); !got.IsZero() {
			t.Errorf("%s, and nobody has seen the cordon: %v", name, got)
		}
	}
}
