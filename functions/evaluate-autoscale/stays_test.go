// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

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
		w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 1m}}")
		w.pool(t, "x", 1, 9, nil, nil) // of which there are two
		l, since, idle := machine.NewLedger("set-x"), metav1.NewTime(epoch.Add(-2*time.Minute)), map[types.UID]metav1.Time{}
		for k := range 2 {
			w.idler(t, "x", l.Name("x", k))
			idle[types.UID("node-"+l.Name("x", k))] = since
		}
		for k := range c.more {
			w.idler(t, "x", fmt.Sprint("z-", k))
			idle[types.UID(fmt.Sprint("node-z-", k))] = since
		}
		l.Active, l.Next = c.active, 3
		w.must(t, memory.Patch(w.Server, machine.Namespace, "x", func(s *machine.MachineSet) { s.Annotations[machine.AnnotationLedger] = l.String() }))
		w.pool(t, "s", 1, 9, nil, nil)
		w.idler(t, "s", "b")
		w.must(t, w.Put(pod("default", "p", "b", resources("cpu", "1"))))
		w.remember(t, autoscaling.State{Unneeded: idle})
		w.scans(t, 15)
		s := w.state(t)
		for node := range idle {
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
