// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// What a refused attempt left is removed by that attempt's token alone: the call may come when another has made the Machine's
// instance (R-S3).
func TestLeftoversAreOfTheirAttempt(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"refused-midway-is-cleaned-up-first", "failed-midway-is-cleaned-up"} {
		s, _, err := scenario.Load("testdata/" + file + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		seen, _, err := scenario.Observe(Function, s)
		if err != nil {
			t.Fatal(err)
		}
		i, err := machine.ParseIntent(s.World.Machines[0])
		if err != nil {
			t.Fatal(err)
		}
		removed := 0
		for _, a := range Decide(seen).Actions() {
			if d, is := a.(plan.DeleteInstance); is {
				removed++
				if !d.Ref.Attempt || d.Ref.Token != i.Token {
					t.Errorf("%s: %+v is removed, want what carries %s", file, d.Ref, i.Token)
				}
			}
		}
		if removed != 1 {
			t.Errorf("%s: %d removals, want 1", file, removed)
		}
	}
}

// What the attempt of a Failed Machine left may stay as long as the Machine, as in another account than its spec leads to by now, or where a
// Node may run on it: no scan asks for it by itself.
func TestLeftoversOfTheFailedCostAScanNoCall(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"failed-midway-in-another-account-is-left", "failed-midway-leaves-what-runs"} {
		s, _, err := scenario.Load("testdata/" + file + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		for _, scan := range []bool{false, true} {
			if scan {
				s.World.Request = snapshot.Request{}
			}
			seen, _, err := scenario.Observe(Function, s)
			if err != nil {
				t.Fatal(err)
			}
			if l, asks := lookupOf(seen, seen.Machines[0]); !asks || l.Bulk != scan {
				t.Errorf("%s: scan %v: asked %v, lookup %+v", file, scan, asks, l)
			}
		}
	}
}

// A Machine that is deleted while what one attempt left is removed does not go by the answer to that, which says nothing of whatever else
// is the Machine's: it is recorded, which ends the claim, and the next invocation has the cloud remove all (2b.9).
func TestLeftoversAreNotAllOfAMachine(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/failed-midway-is-cleaned-up.txtar")
	if err != nil {
		t.Fatal(err)
	}
	decide := func(s scenario.Scenario) []plan.Action {
		seen, _, err := scenario.Observe(Function, s)
		if err != nil {
			t.Fatal(err)
		}
		return Decide(seen).Actions()
	}
	claimed := decide(s)
	deleted, removal := updated(t, claimed).DeepCopy(), claimed[1]
	deleted.DeletionTimestamp = new(metav1.NewTime(s.World.Now))
	deleting := deleted.DeepCopy()
	deleting.Status.Phase = new(machine.PhaseDeleting)
	m := deleting.DeepCopy()
	m.Status.Conditions = append(m.Status.Conditions, machine.True(machine.ConditionDrained, "NoNode", ""))
	w, next := s, m
	for _, m := range []*machine.Machine{deleted, deleting, m} { // the claim waits for no drain
		w = aloneIn(s, m)
		w.World.Outcomes = map[plan.Key]plan.Outcome{removal.Key(): {Result: plan.Gone, Asked: s.World.Now}}
		recorded := decide(w)
		next = updated(t, recorded)
		if i, err := machine.ParseIntent(next); err != nil || len(recorded) != 1 || !machine.HasFinalizer(next) || i.Holder != "" || len(i.Progress) > 0 {
			t.Fatalf("%v %+v, want what came of the removal on record, and nothing else", err, recorded)
		}
		again := aloneIn(w, next)
		again.World.Outcomes = w.World.Outcomes
		if rest := decide(again); len(rest) != 0 {
			t.Errorf("%+v in the same invocation", rest)
		}
	}
	all := decide(aloneIn(w, next))
	if d, is := all[0].(plan.DeleteInstance); !is || d.Ref.UID != m.UID || d.Ref.Attempt {
		t.Errorf("%+v, want a removal of all that is the Machine's", all)
	}
}

// updated returns the Machine as the first action, an update, leaves it.
func updated(t *testing.T, all []plan.Action) *machine.Machine {
	t.Helper()
	if len(all) > 0 {
		if u, is := all[0].(plan.Update); is {
			if m, is := u.New.(*machine.Machine); is {
				return m
			}
		}
	}
	t.Fatalf("%+v, want an update of a Machine", all)
	return nil
}
