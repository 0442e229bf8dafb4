// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// What the scan found out about a set it does not ask for again: a cluster in order costs a cloud nothing (R-L4, E4).
func TestCapacityIsAskedForOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"capacity-of-a-former-spec-is-found-by-the-scan", "capacity-by-hand-stays-if-unknown"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, err := scenario.Load("testdata/" + name + ".txtar")
			if err != nil {
				t.Fatal(err)
			}
			for scan := range 2 {
				seen, asked, err := scenario.Observe(Function, s)
				if err != nil {
					t.Fatal(err)
				}
				lookups := 0
				for _, sc := range asked {
					lookups += len(sc.Lookups)
				}
				p := Decide(seen)
				if lookups != 1-scan || len(p.Actions()) != 1-scan {
					t.Fatalf("scan %d asks %d times, and does %v", scan, lookups, p)
				}
				if scan == 0 {
					s.World.MachineSets = []*machine.MachineSet{p.Actions()[0].(plan.Update).New.(*machine.MachineSet)}
				}
			}
		})
	}
}
