// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// Whatever stands on a set and on its Machine, in the ledger, the victims or the ordinal: it is decided about, since a panic would be that
// of a scan, in which all sets are (R-L4); what is written can be read, and nothing is deleted by a ledger that cannot.
func FuzzLedger(f *testing.F) {
	s, _, err := scenario.Load("testdata/failures-below-none-are-no-ledger.txtar")
	if err != nil {
		f.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil || len(seen.MachineSets) != 1 || len(seen.Machines) != 1 {
		f.Fatalf("%d sets, %d Machines, error %v", len(seen.MachineSets), len(seen.Machines), err)
	}
	f.Add(seen.MachineSets[0].Annotations[machine.AnnotationLedger], "", "1", int32(2))
	f.Add(`{"schema":1,"setUID":"set-1","next":2,"active":"1","failures":9223372036854775807,"nextCreateAt":"9999-12-31T23:59:59Z"}`, `[{"name":"worker-hx5fp","uid":"m-1","plan":"p"}]`, "-1", int32(0))
	f.Add(`{"schema":1,"setUID":"set-1","next":1000000000,"active":"","adopted":{"1":{"name":"worker-hx5fp","uid":"m-1"}}}`, `[`, "9223372036854775807", int32(-1))
	f.Add(`{"schema":1,"setUID":"set-1","next":0,"active":"","failures":1,"nextCreateAt":"0001-01-01T00:00:00Z"}`, `[{"name":"","uid":"","plan":""}]`, "", int32(2147483647))
	f.Add(`{"schema":1,"setUID":"other","next":2,"active":"0-1","rebuilt":"x"}`, `{}`, "0", int32(1))
	f.Fuzz(func(t *testing.T, ledger, victims, ordinal string, replicas int32) {
		if replicas > 1000 {
			return // creations of so many take their time
		}
		world := seen.Clone()
		set, m := seen.MachineSets[0].DeepCopy(), seen.Machines[0].DeepCopy()
		set.Spec.Replicas = &replicas
		set.Annotations[machine.AnnotationLedger], m.Labels[machine.LabelOrdinal] = ledger, ordinal
		if victims != "" {
			set.Annotations[machine.AnnotationVictims] = victims
		}
		world.MachineSets, world.Machines = []*machine.MachineSet{set}, []*machine.Machine{m}
		was, unread := machine.ParseLedger(ledger)
		for _, a := range Decide(world).Actions() {
			if _, is := a.(plan.Delete); is && unread != nil {
				t.Errorf("%s, though %v", a.Key(), unread)
			}
			u, is := a.(plan.Update)
			if !is || was.Next > 1<<29 { // whoever uses up all ordinals has the ledger rebuilt
				continue
			}
			if n, is := u.New.(*machine.MachineSet); is && n.Annotations[machine.AnnotationLedger] != ledger {
				if _, err := machine.ParseLedger(n.Annotations[machine.AnnotationLedger]); err != nil {
					t.Errorf("of %q it writes %q: %v", ledger, n.Annotations[machine.AnnotationLedger], err)
				}
			}
		}
	})
}
