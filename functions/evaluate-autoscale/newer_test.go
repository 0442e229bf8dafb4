// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
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

// newerLedger is a ledger that nobody can read today.
const newerLedger = `{"schema":2,"setUID":"set","ordinals":[0]}`

// rewritten has a newer version write the ledger of a set.
func (w *world) rewritten(t testing.TB, set string) {
	t.Helper()
	w.must(t, memory.Patch(w.Server, machine.Namespace, set, func(s *machine.MachineSet) {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[machine.AnnotationLedger] = newerLedger
	}))
}

func (w *world) state(t testing.TB) autoscaling.State {
	t.Helper()
	s, err := stateOf(snapshotOf(memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)))
	w.must(t, err)
	return s
}

// A Node that stays because of its set's ledger takes no place that another one needs to go: it is where that one's Pods go to (C58, G9).
func TestNodeThatANewerLedgerKeepsIsNoneThatGoes(t *testing.T) {
	t.Parallel()
	for newer, want := range map[string]string{"": "a", "first": "b", "second": "a"} {
		w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 1m}}")
		for set, node := range map[string]string{"first": "a", "second": "b"} {
			w.set(t, set, 1, 4, midsize(), nil)
			w.member(t, set, node, epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
			w.must(t, w.Put(running("p-"+node, node, resources("cpu", "1", "memory", "1Gi"))))
		}
		if newer != "" {
			w.rewritten(t, newer)
		}
		w.scans(t, 15)
		var goes []string
		for _, r := range w.state(t).Removals {
			goes = append(goes, r.Node)
		}
		if !slices.Equal(goes, []string{want}) {
			t.Errorf("newer: %q: %v go, want %s", newer, goes, want)
		}
	}
}

// Nothing is asked for in the place of a Node that stays because of its set's ledger (W10, G9).
func TestNodeThatANewerLedgerKeepsIsNotReplaced(t *testing.T) {
	t.Parallel()
	for newer, want := range map[string]int32{"": 1, "cheap": 1, "dear": 0} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) {
			ca.Annotations = map[string]string{autoscaling.RepackAnnotation: "migration=0.001 payback=24h"}
		}))
		w.set(t, "dear", 1, 4, midsize(machine.AnnotationPrice, "10"), nil)
		w.set(t, "cheap", 0, 4, midsize(machine.AnnotationPrice, "1"), nil)
		w.member(t, "dear", "d", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		w.must(t, w.Put(running("p", "d", resources("cpu", "3", "memory", "1Gi"))))
		if newer != "" {
			w.rewritten(t, newer)
		}
		w.scans(t, 3)
		if got := w.replicas("dear", "cheap"); !slices.Equal(got, []int32{1, want}) {
			t.Errorf("newer: %q: %d Nodes, want %d cheap", newer, got, want)
		}
	}
}

// waitsBehindANewerLedger is a Pod that waits for another Node of a set whose ledger nobody can read.
func waitsBehindANewerLedger(t *testing.T) *world {
	t.Helper()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "one", 1, 10, midsize(), nil)
	w.member(t, "one", "a", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
	w.must(t, w.Put(running("full", "a", resources("cpu", "3500m", "memory", "1Gi")), pending("p", epoch.Add(-time.Minute), resources("cpu", "3", "memory", "1Gi"))))
	w.rewritten(t, "one")
	return w
}

// grewOnce wants one Node to be asked for that Pod, after hours.
func (w *world) grewOnce(t *testing.T) {
	t.Helper()
	if got := w.replicas("one"); !slices.Equal(got, []int32{2}) {
		t.Fatalf("hours later there are %d replicas for one Pod that waits", got)
	}
}

// growsAgain has that Node come, and wants another for the next Pod.
func (w *world) growsAgain(t *testing.T) {
	t.Helper()
	w.member(t, "one", "b", w.now, resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
	w.must(t, w.Remove("Pod", "default", "p", memory.Force))
	w.must(t, w.Put(running("p", "b", resources("cpu", "3", "memory", "1Gi")), pending("q", w.now, resources("cpu", "3", "memory", "1Gi"))))
	w.scans(t, 360)
	if got := w.replicas("one"); !slices.Equal(got, []int32{3}) {
		t.Errorf("the Node came, another Pod waits, and there are %d replicas", got)
	}
}

// Where Nodes do not come, and nobody can read the ledger that says why, no more are asked for: nothing of what was asked for in vain could be
// taken back, and all of it comes once its version is there again (G9, R-S4).
func TestNewerLedgerGrowsNoMoreWhereNothingComes(t *testing.T) {
	t.Parallel()
	w := waitsBehindANewerLedger(t)
	w.scans(t, 3*360)
	w.grewOnce(t)
	w.growsAgain(t)
}

// Where people lowered a target, and nobody chooses who goes for that, as scale-machineset is not there or may not delete whom it chose, an
// emptied Node of the set is not kept for ever, nor emptied again; nor does it take the place of other drains (C46, C61, C65).
func TestEmptiedNodeThatNobodyChoosesForHoldsNoPlace(t *testing.T) {
	t.Parallel()
	for ago, want := range map[time.Duration][]string{time.Minute: {"x1"}, 3 * time.Hour: nil} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.pool(t, "s", 2, 9, nil, nil)
		for _, n := range []string{"a", "b"} {
			w.idler(t, "s", n)
			w.must(t, w.Put(pod("default", "p-"+n, n, resources("cpu", "500m"))))
		}
		w.pool(t, "x", 1, 9, nil, nil) // of which there are two
		w.idler(t, "x", "x1")
		w.idler(t, "x", "x2")
		at := metav1.NewTime(epoch.Add(-ago))
		w.remember(t, autoscaling.State{
			Removals: []autoscaling.Removal{{Plan: "down-x1", Group: "MachineSet/openshift-machine-api/x", Node: "x1", NodeUID: "node-x1", Machine: "x1", MachineUID: "machine-x1", At: at, Drain: true, MaxGrace: 600}},
			Unneeded: map[types.UID]metav1.Time{"node-b": metav1.NewTime(epoch.Add(-3 * time.Hour)), "node-x2": metav1.NewTime(epoch.Add(-3 * time.Hour))},
		})
		w.once(t)
		if got := w.tainted(); !slices.Equal(got, want) {
			t.Errorf("emptied %v ago: %v are tainted, want %v", ago, got, want)
		}
		if want != nil {
			continue
		}
		w.now = w.now.Add(4 * time.Minute)
		w.once(t)
		if got := w.tainted(); !slices.Equal(got, []string{"b"}) {
			t.Errorf("once the cluster has cooled down %v are tainted, want b", got)
		}
	}
}

// Nor where the newer version makes the Machines, and nothing comes of these: nobody else takes them back, and each more is paid for (G9).
func TestNewerLedgerGrowsNoMoreWhereMachinesBringNothing(t *testing.T) {
	t.Parallel()
	w := waitsBehindANewerLedger(t)
	for range 12 * 60 { // longer than failures are remembered elsewhere
		w.scans(t, 1)
		w.now = w.now.Add(50 * time.Second)
		set := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "one")
		for n := len(memory.List[*machine.Machine](w.Server)); n < int(*set.Spec.Replicas); n++ {
			m := &machine.Machine{}
			m.Namespace, m.Name = machine.Namespace, fmt.Sprintf("none-%d", n)
			m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, machineSetKind)}
			w.must(t, w.Put(m))
		}
	}
	w.grewOnce(t)
	w.must(t, w.Remove("Machine", machine.Namespace, "none-1", memory.Force))
	w.growsAgain(t)
}

// Only where a newer version wrote the ledger is no more asked for beside what came in vain, and is that remembered for longer: elsewhere it is
// taken back, or people look at it, and the set grows once the backoff is over. Nor is what is on its way in vain, nor what people wished to
// be forgotten (C51, W15, G9).
func TestNothingElseIsInVainForEver(t *testing.T) {
	t.Parallel()
	at := func(ago time.Duration) *metav1.Time { return new(metav1.NewTime(epoch.Add(-ago))) }
	in := []types.UID{"machine-b"}
	for name, c := range map[string]struct {
		state          autoscaling.NodeGroup
		age            time.Duration // of a Machine without a Node; 0: there is none
		pods           int
		want           int32 // replicas, of two with that Machine
		newer          int32
		forgets, later bool // the failure: whatever wrote the ledger
	}{
		"failed an hour ago": {autoscaling.NodeGroup{Failures: 1, LastFailure: at(time.Hour), BackoffUntil: at(50 * time.Minute), FailedUIDs: in}, 2 * time.Hour, 1, 3, 2, false, false},
		"failed long ago":    {autoscaling.NodeGroup{Failures: 1, LastFailure: at(4 * time.Hour), BackoffUntil: at(3 * time.Hour), FailedUIDs: in}, 5 * time.Hour, 1, 3, 2, true, false},
		"gone since":         {autoscaling.NodeGroup{Failures: 1, LastFailure: at(4 * time.Hour), BackoffUntil: at(3 * time.Hour)}, 0, 1, 2, 2, true, true},
		"to be tried again":  {autoscaling.NodeGroup{FailedUIDs: in}, 2 * time.Hour, 1, 3, 3, true, true},
		"one is on its way":  {autoscaling.NodeGroup{Request: &autoscaling.Request{At: *at(time.Minute)}}, time.Minute, 2, 3, 3, true, true},
		"one took too long":  {autoscaling.NodeGroup{Request: &autoscaling.Request{At: *at(time.Hour), TimedOut: true}, Failures: 1, LastFailure: at(45 * time.Minute), FailedUIDs: in}, time.Hour, 1, 3, 2, false, false},
	} {
		for _, newer := range []bool{false, true} {
			w := fresh(t, "{}")
			w.set(t, "one", 1, 10, midsize(), nil)
			w.member(t, "one", "a", epoch.Add(-9*time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
			w.must(t, w.Put(running("full", "a", resources("cpu", "3500m", "memory", "1Gi"))))
			if c.age > 0 {
				w.member(t, "one", "b", epoch.Add(-c.age), nil, nil)
				w.must(t, w.Remove("Node", "", "b", memory.Force))
				w.must(t, memory.Patch(w.Server, machine.Namespace, "one", func(s *machine.MachineSet) { s.Spec.Replicas = new(int32(2)) }))
				w.must(t, memory.Patch(w.Server, machine.Namespace, "b", func(m *machine.Machine) {
					m.Status.NodeRef, m.Annotations = nil, map[string]string{machine.AnnotationPreserve: ""}
				}))
			}
			for i := range c.pods {
				w.must(t, w.Put(pending(fmt.Sprint("p-", i), epoch.Add(-time.Minute), resources("cpu", "3", "memory", "1Gi"))))
			}
			want, forgets := c.want, true
			if newer {
				w.rewritten(t, "one")
				want, forgets = c.newer, c.later
			}
			const group = "MachineSet/openshift-machine-api/one"
			w.remember(t, autoscaling.State{Groups: map[string]autoscaling.NodeGroup{group: c.state}})
			w.once(t)
			if got := w.replicas("one"); !slices.Equal(got, []int32{want}) {
				t.Errorf("%s, newer %v: %v replicas, want %d", name, newer, got, want)
			}
			if got := w.state(t).Groups[group].LastFailure == nil; got != (forgets && c.forgets) {
				t.Errorf("%s, newer %v: the failure is forgotten: %v", name, newer, got)
			}
		}
	}
}

// A wish to try again is taken off once nothing is left of what it ends, and not before (W15).
func TestWishStaysAsLongAsAnythingFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		n    autoscaling.NodeGroup
		want bool
	}{
		"nothing":            {autoscaling.NodeGroup{}, false},
		"a failure":          {autoscaling.NodeGroup{LastFailure: new(metav1.NewTime(epoch))}, true},
		"of no use":          {autoscaling.NodeGroup{Useless: []autoscaling.Useless{{}}}, true},
		"what is on its way": {autoscaling.NodeGroup{Request: &autoscaling.Request{}}, false},
		"what took too long": {autoscaling.NodeGroup{Request: &autoscaling.Request{TimedOut: true}}, true},
	} {
		if got := fails(c.n); got != c.want {
			t.Errorf("%s: %v fails", name, got)
		}
	}
}
