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

// Where whom a set is to lose was chosen, and does not go, as a webhook refuses every deletion, its other idle Nodes have to stay, and take
// no place for ever that another set's Node needs to go. While it is a matter of moments, as whenever people lower a target, they keep
// their times. What is to go, or may be chosen yet, is no place to move to (C46, C58).
func TestNodesThatStayAsOthersDoNotGoTakeNoPlace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		active machine.Ordinals
		more   int // Machines that the ledger does not have yet, and will
		want   []string
	}{
		"one is to go":         {machine.Ordinals{1}, 0, []string{"b"}},
		"nobody is chosen":     {machine.Ordinals{0, 1}, 0, nil},
		"both are to go":       {machine.Ordinals{2}, 0, nil}, // for one that is not made yet
		"one is to be adopted": {machine.Ordinals{1}, 1, nil},
	} {
		w, _, idle := toLoseOne(t, c.active)
		for k := range c.more {
			w.idler(t, "x", fmt.Sprint("z-", k))
			idle[types.UID(fmt.Sprint("node-z-", k))] = metav1.NewTime(epoch.Add(-2 * time.Minute))
		}
		w.pool(t, "s", 1, 9, nil, nil)
		w.idler(t, "s", "b")
		w.must(t, w.Put(pod("default", "p", "b", resources("cpu", "1"))))
		w.remember(t, autoscaling.State{Unneeded: idle})
		w.scans(t, 15)
		s := w.state(t)
		for node, since := range idle {
			if got := s.Unneeded[node]; len(s.Removals) > 0 || !since.Equal(&got) {
				t.Errorf("%s: a moment later %v go, unneeded are %v", name, w.tainted(), s.Unneeded)
			}
		}
		w.scans(t, 43) // in which nobody evicts
		if got := w.tainted(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v go, want %v", name, got, c.want)
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
		"one is to go":     {machine.Ordinals{1}, []string{"its machine was chosen to go", "others, who were chosen and are not gone yet"}},
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
