// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// What is left out as another schedule told in another order leads nowhere where the others do not.
func TestOtherOrdersLeadNowhereElse(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]Bout{
		"claims":    {Stage: 4, Before: claims, Functions: []int{1, 1}, Switches: 2},
		"removals":  {Stage: 8, Before: removes, Functions: []int{1, 1}, Switches: 2},
		"releases":  {Stage: 8, Before: frees, Functions: []int{1, 3}, Switches: 2},
		"one fault": {Stage: 11, Before: removes, Functions: []int{1, 0}, Switches: 1, Faults: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b.World = worlds[0]
			few, fewer := b.outcomes(t)
			b.unreduced = true
			all, plays := b.outcomes(t)
			t.Logf("%d outcomes of %d schedules, %d of %d", len(few), fewer, len(all), plays)
			if fewer >= plays {
				t.Errorf("%d schedules of %d are played", fewer, plays)
			}
			for what := range all {
				if !few[what] {
					t.Errorf("only orders that are left out lead to\n%s", what)
				}
			}
		})
	}
}

// A scope that is played to its end is the same with every seed, and counts so; of one that is too large only what is played in whole.
func TestSeedsShareWhatIsWhole(t *testing.T) {
	t.Parallel()
	const most = 100
	for faults, whole := range []bool{true, false} {
		b := Bout{Stage: 8, Before: removes, Functions: []int{1, 1}, Switches: 1 + faults, Faults: faults, World: worlds[0]}
		b.Prepare()
		defer b.Close()
		var alike [2]int64
		for seed := range alike {
			var tally tally
			var ends ends
			exhaust(t, &b, rand.New(rand.NewPCG(uint64(seed), 0)), most, &tally, &ends) //nolint:gosec // to be repeated
			alike[seed] = tally.alike.Load()
			if n := tally.played.Load(); whole != (alike[seed] == n) || whole != (ends.whole.Load() == 1) || alike[seed] > n || alike[seed] == 0 {
				t.Errorf("%d faults: %d of %d are the same with every seed", faults, alike[seed], n)
			}
		}
		if alike[0] != alike[1] {
			t.Errorf("%d faults: %v are the same with every seed", faults, alike)
		}
	}
}

// A scope that goes on notices what its own functions are not to blame for: nobody links Nodes.
func TestScopesSettle(t *testing.T) {
	t.Parallel()
	idle := func(f function.Function) function.Function {
		if f.Name == "link-node" {
			f.Decide = func(snapshot.Snapshot) plan.Plan { return plan.Plan{} }
		}
		return f
	}
	for settles, want := range map[bool]string{false: "", true: "R-L"} {
		b := Bout{Config: Config{Wrap: idle}, World: worlds[0], Stage: 4, Functions: []int{1, 1}, Settles: settles}
		b.Prepare()
		defer b.Close()
		if err := b.Play(&Script{}); (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("goes on: %v: %v", settles, err)
		}
	}
}

// outcomes plays all schedules of a bout, and returns what is there when its invocations have ended, and how many schedules there were.
func (b *Bout) outcomes(t *testing.T) (all map[string]bool, plays int) {
	t.Helper()
	b.Prepare()
	defer b.Close()
	all = map[string]bool{}
	b.ended = func() { plays, all[b.outcome()] = plays+1, true }
	for s := (&Script{}); ; {
		if err := b.Play(s); err != nil {
			t.Fatal(err)
		}
		if !s.Next() {
			return all, plays
		}
	}
}

// outcome is what is there: all but times and versions.
func (b *Bout) outcome() string {
	var lines []string
	p := b.play
	for _, m := range p.machines() {
		i := p.intentOf(m)
		tried := ""
		if i != nil {
			tried = fmt.Sprint(i.Attempt, i.Outcome, i.Failures, i.Code, i.Instance)
		}
		lines = append(lines, fmt.Sprintln("machine", m.Name, m.UID, m.DeletionTimestamp != nil, m.Finalizers, machine.ProviderID(m), machine.Phase(m), m.Status.NodeRef, slices.Sorted(maps.Keys(m.Annotations)), tried))
	}
	if set := p.set(); set != nil {
		l, err := ledgerOf(set)
		lines = append(lines, fmt.Sprintln("set", *set.Spec.Replicas, l.Next, l.Active, l.Adopted, err))
	}
	for _, n := range memory.List[*corev1.Node](p.API) {
		lines = append(lines, fmt.Sprintln("node", n.Name, n.Spec.Unschedulable, len(n.Spec.Taints)))
	}
	for _, i := range p.instances() {
		lines = append(lines, fmt.Sprintln("instance", i.ID, i.UID, i.State))
	}
	slices.Sort(lines)
	return strings.Join(lines, "")
}
