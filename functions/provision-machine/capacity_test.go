// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// What the scan found out about a set it does not write again, nor has its cloud asked anew: a cluster in order costs a cloud what its
// list of types does (R-L4, E4). Of what a person wrote it does not ask at all.
func TestCapacityIsWrittenOnce(t *testing.T) {
	t.Parallel()
	for name, asks := range map[string]int{"capacity-of-a-former-spec-is-found-by-the-scan": 1, "capacity-by-hand-stays-if-unknown": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, err := scenario.Load("testdata/" + name + ".txtar")
			if err != nil {
				t.Fatal(err)
			}
			for scan, want := range []int{1, asks} {
				seen, asked, err := scenario.Observe(Function, s)
				if err != nil {
					t.Fatal(err)
				}
				lookups := 0
				for _, sc := range asked {
					lookups += len(sc.Lookups)
				}
				p := Decide(seen)
				if lookups != want || len(p.Actions()) != 1-scan {
					t.Fatalf("scan %d asks %d times, want %d, and does %v", scan, lookups, want, p)
				}
				if scan == 0 {
					s.World.MachineSets = []*machine.MachineSet{p.Actions()[0].(plan.Update).New.(*machine.MachineSet)}
				}
			}
		})
	}
}
