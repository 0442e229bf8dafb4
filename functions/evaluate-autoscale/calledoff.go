// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// noteUnharmed notes a removal that is taken back before it disrupted anybody: of an empty Node nothing is evicted, and its Machine is on its way
// out for nobody. One that drained its Node keeps its slot, as what was evicted counts for its hour.
func (sc *scan) noteUnharmed(r autoscaling.Removal) {
	if !r.Drain && !sc.begun(r) {
		sc.unharmed = append(sc.unharmed, r)
	}
}

// giveSlotsBack returns the write that gives the slots of removals back which disrupted nobody, or nothing: else each would hold healing up for its
// half hour (RELIABILITY G8). It follows the write of the state that takes them back, never before: nothing is removed without a slot. Where this
// scan takes slots as well, which it writes once, or somebody dies in between, they stay for that half hour.
func (sc *scan) giveSlotsBack() []plan.Action {
	if len(sc.unharmed) == 0 {
		return nil
	}
	if sc.budget == nil {
		sc.budget = sc.readBudget()
	}
	b := sc.budget
	if b.cm == nil || b.err != nil || b.taken {
		return nil
	}
	next := b.slots.Without(func(s machine.Slot) bool {
		return s.By == name && slices.ContainsFunc(sc.unharmed, func(r autoscaling.Removal) bool { return takenFor(s, r) })
	})
	if len(next.Slots) == len(b.slots.Slots) {
		return nil
	}
	return []plan.Action{plan.Update{Old: b.cm, New: next.In(b.cm), Why: "slots of scale-downs that were called off"}}
}

// takenFor reports that a slot was taken when a removal was decided. One that is older was of an earlier removal of the Node, which may have
// disrupted somebody.
func takenFor(s machine.Slot, r autoscaling.Removal) bool {
	return s.UID == r.MachineUID && planIDAt(s.At.Time, down, string(r.NodeUID)) == r.Plan
}
