// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
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

// toLoseOne is a set of two Nodes, of which one is wanted, whose ledger has some ordinals active, and since when they are idle.
func toLoseOne(t *testing.T, active machine.Ordinals) (*world, machine.Ledger, map[types.UID]metav1.Time) {
	t.Helper()
	w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 1m}}")
	w.pool(t, "x", 1, 9, nil, nil)
	l, idle := machine.NewLedger("set-x"), map[types.UID]metav1.Time{}
	for k := range 2 {
		w.idler(t, "x", l.Name("x", k))
		idle[types.UID("node-"+l.Name("x", k))] = metav1.NewTime(epoch.Add(-2 * time.Minute))
	}
	l.Active, l.Next = active, 3
	w.must(t, memory.Patch(w.Server, machine.Namespace, "x", func(s *machine.MachineSet) { s.Annotations[machine.AnnotationLedger] = l.String() }))
	return w, l, idle
}

// Where whom a set is to lose was chosen, and does not go, as a webhook refuses every deletion, its other idle Nodes go on as those of other
// sets do. Before that is known none goes, and they keep their times. What is to go, or may be chosen yet, is no place to move to (C46, C58).
func TestNodesGoThoughOthersWhoWereChosenDoNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		active      machine.Ordinals
		more        int   // Machines that the ledger does not have yet, and will
		wait, taint []int // ordinals
	}{
		"one is to go":         {active: machine.Ordinals{1}, taint: []int{1}},
		"nobody is chosen":     {active: machine.Ordinals{0, 1}, wait: []int{0, 1}},
		"both are to go":       {active: machine.Ordinals{2}}, // for one that is not made yet
		"one is to be adopted": {active: machine.Ordinals{1}, more: 1, wait: []int{1}},
	} {
		w, l, idle := toLoseOne(t, c.active)
		for k := range c.more {
			w.idler(t, "x", fmt.Sprint("z-", k))
			idle[types.UID(fmt.Sprint("node-z-", k))] = metav1.NewTime(epoch.Add(-2 * time.Minute))
		}
		w.pool(t, "s", 1, 9, nil, nil)
		w.idler(t, "s", "b")
		w.must(t, w.Put(pod("default", "p", "b", resources("cpu", "1"))))
		w.remember(t, autoscaling.State{Unneeded: idle})
		w.scans(t, 58) // in which nobody evicts, nor deletes
		var want []string
		for _, k := range c.taint {
			want = append(want, l.Name("x", k))
		}
		if got := w.tainted(); !slices.Equal(got, want) {
			t.Errorf("%s: %v go, want %v", name, got, want)
		}
		for _, k := range c.wait {
			uid := types.UID("node-" + l.Name("x", k))
			if since, got := idle[uid], w.state(t).Unneeded[uid]; !since.Equal(&got) {
				t.Errorf("%s: the Node of ordinal %d is unneeded since %v, want %v", name, k, got, since)
			}
		}
	}
}

// Whoever asks why a Node of such a set is not removed is told whether scale-machineset has yet to choose or whoever deletes is refused (C66, W2).
func TestNodesThatStaySayWhomTheyWaitFor(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		active machine.Ordinals
		want   []string // of the Nodes of ordinals 0 and 1
	}{
		"one is to go":     {machine.Ordinals{1}, []string{"its machine was chosen to go", ""}},
		"nobody is chosen": {machine.Ordinals{0, 1}, []string{"others, who are not chosen yet", "others, who are not chosen yet"}},
	} {
		w, l, idle := toLoseOne(t, c.active)
		w.remember(t, autoscaling.State{Unneeded: idle})
		w.scans(t, 15)
		for k, want := range c.want {
			if why := memory.Get[*corev1.Node](w.Server, "", l.Name("x", k)).Annotations[machine.AnnotationScaleDownReason]; !strings.Contains(why, want) {
				t.Errorf("%s: the Node of ordinal %d stays because %q, want %q", name, k, why, want)
			}
		}
	}
}

// A set of which one Machine was chosen to go and does not, as a webhook refuses that for good, grows all the same: whom it loses is known.
// What runs there needs a place elsewhere, as where a Machine hangs in its deletion. Before anybody is chosen the set does not grow, nor where
// nobody knows who is: the ledger is another set's, or from before a Machine that is there, or the Machine is none of those that are deleted (C46).
func TestSetGrowsWhoseMachineDoesNotGo(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		active machine.Ordinals
		edit   func(*machine.Ledger, *machine.MachineSet, *machine.Machine) // the Machine is that of ordinal 0
		want   int32
	}{
		"one is to go":     {machine.Ordinals{1}, nil, 3},
		"nobody is chosen": {machine.Ordinals{0, 1}, nil, 1},
		"another set's ledger": {machine.Ordinals{1}, func(l *machine.Ledger, s *machine.MachineSet, _ *machine.Machine) {
			s.UID, l.Adopted = "restored", map[int]machine.Member{0: {Name: l.Name("x", 0), UID: types.UID("machine-" + l.Name("x", 0))}}
		}, 1},
		"ledger of long ago": {machine.Ordinals{}, func(l *machine.Ledger, _ *machine.MachineSet, _ *machine.Machine) { l.Next = 1 }, 1},
		"one is to be let go": {machine.Ordinals{1}, func(_ *machine.Ledger, _ *machine.MachineSet, m *machine.Machine) {
			delete(m.Labels, "set")
		}, 1},
		"one was adopted anew": {machine.Ordinals{1}, func(_ *machine.Ledger, _ *machine.MachineSet, m *machine.Machine) {
			m.Labels[machine.LabelOrdinal] = "7"
		}, 1},
	} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.pool(t, "x", 1, 9, nil, nil) // of which there are two
		l := machine.NewLedger("set-x")
		l.Active, l.Next = c.active, 2
		for k := range 2 {
			n := l.Name("x", k)
			w.idler(t, "x", n)
			w.must(t, w.Put(pod("default", n, n, resources("cpu", "3500m"))))
			w.must(t, memory.Patch(w.Server, machine.Namespace, n, func(m *machine.Machine) { m.Labels[machine.LabelOrdinal] = fmt.Sprint(k) }))
		}
		w.must(t, w.Put(pod("default", "p", "", resources("cpu", "3"))))
		set, m := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "x"), memory.Get[*machine.Machine](w.Server, machine.Namespace, l.Name("x", 0))
		if c.edit != nil {
			c.edit(&l, set, m)
		}
		set.Annotations[machine.AnnotationLedger] = l.String()
		if set.UID != "set-x" {
			m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, machineSetKind)}
			w.must(t, memory.Patch(w.Server, machine.Namespace, l.Name("x", 1), func(o *machine.Machine) { o.OwnerReferences = m.OwnerReferences }))
		}
		w.must(t, w.Put(set, m))
		w.scans(t, 6)
		if got := w.replicas("x"); !slices.Equal(got, []int32{c.want}) {
			t.Errorf("%s: a minute later %v replicas are there for one Pod that waits, want %d", name, got, c.want)
		}
	}
}

// Who was chosen and does not go is paid for: its Node counts in the limits of the cluster (C25, C30).
func TestNodeWhoseMachineDoesNotGoCountsInTheLimits(t *testing.T) {
	t.Parallel()
	for most, want := range map[int]int32{2: 1, 3: 2} {
		w := fresh(t, fmt.Sprintf("{resourceLimits: {maxNodesTotal: %d}}", most))
		w.pool(t, "x", 1, 9, nil, nil)
		l := machine.NewLedger("set-x")
		l.Active, l.Next = machine.Ordinals{1}, 2
		for k := range 2 {
			w.idler(t, "x", l.Name("x", k))
		}
		w.must(t, memory.Patch(w.Server, machine.Namespace, "x", func(s *machine.MachineSet) { s.Annotations[machine.AnnotationLedger] = l.String() }))
		w.must(t, w.Put(pod("default", "q", l.Name("x", 1), resources("cpu", "3500m")), pod("default", "p", "", resources("cpu", "3"))))
		w.scans(t, 6)
		if got := w.replicas("x"); !slices.Equal(got, []int32{want}) {
			t.Errorf("of at most %d Nodes two are there, and %v replicas, want %d", most, got, want)
		}
	}
}

// A Node that was emptied, and whose Machine was chosen meanwhile as people lowered the target, is not taken off the target once more. Whoever
// deletes it is refused: it is given back in the end, and neither emptied nor taken off again, whatever it runs (C46, C52).
func TestEmptiedNodeWhoseMachineWasChosenCountsOnce(t *testing.T) {
	t.Parallel()
	w, l, idle := toLoseOne(t, machine.Ordinals{1})
	chosen, stays := l.Name("x", 0), l.Name("x", 1)
	w.must(t, w.Put(pod("default", "p", stays, resources("cpu", "3500m"))))
	r := w.leaving(t, "x", chosen)
	r.At = metav1.NewTime(epoch.Add(-time.Minute))
	w.remember(t, autoscaling.State{Unneeded: idle, Removals: []autoscaling.Removal{r}})
	w.scans(t, 6)
	if got := w.tainted(); !slices.Equal(got, []string{chosen}) {
		t.Errorf("a minute later %v are tainted, want %s", got, chosen)
	}
	w.scans(t, 354)
	if got, left := w.tainted(), w.state(t).Removals; len(got)+len(left) > 0 {
		t.Errorf("an hour later %v are tainted, %v go", got, left)
	}
	if got := w.replicas("x"); !slices.Equal(got, []int32{1}) {
		t.Errorf("there are %v replicas, want 1", got)
	}
}

// An emptied Node whose set waits for no choice goes, however long ago it was emptied, as where nobody scanned for hours (C61, C65).
func TestEmptiedNodeOfLongAgoGoes(t *testing.T) {
	t.Parallel()
	for _, ago := range []time.Duration{time.Minute, 3 * time.Hour} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.pool(t, "s", 2, 9, nil, nil)
		w.idler(t, "s", "a")
		w.idler(t, "s", "b")
		w.must(t, w.Put(pod("default", "p", "a", resources("cpu", "3500m"))))
		r := w.leaving(t, "s", "b")
		r.At = metav1.NewTime(epoch.Add(-ago))
		w.remember(t, autoscaling.State{Removals: []autoscaling.Removal{r}})
		w.scans(t, 3)
		if got, left := w.replicas("s"), w.tainted(); !slices.Equal(got, []int32{1}) || !slices.Equal(left, []string{"b"}) {
			t.Errorf("emptied %v ago: %d replicas, %v are tainted", ago, got, left)
		}
	}
}
