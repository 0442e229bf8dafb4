// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"

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
