// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
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
	return withoutSlots(b.cm, b.slots, sc.unharmed)
}

// slotsOf is giveSlotsBack where nothing is scaled any more, of removals that are called off with all others.
func slotsOf(s snapshot.Snapshot, off []autoscaling.Removal) []plan.Action {
	cm := s.ConfigMap(machine.Namespace, machine.ConfigMapDisrupt)
	slots, err := machine.ParseDisruptions(cm)
	unharmed := slices.DeleteFunc(slices.Clone(off), func(r autoscaling.Removal) bool { return r.Drain || r.Committed != nil || leaves(s, r) })
	if cm == nil || err != nil {
		return nil
	}
	return withoutSlots(cm, slots, unharmed)
}

// leaves reports that the Machine of a removal is gone, or on its way out: its set is gone or names it, or the ledger has chosen it.
func leaves(s snapshot.Snapshot, r autoscaling.Removal) bool {
	m, set := machineOf(s, r), setOf(s, r)
	if m == nil || set == nil {
		return true
	}
	victims, _ := machine.Victims(set) // unreadable: the set loses nobody
	l, err := s.Records.Ledger(set)
	k, has := l.OrdinalOf(set.Name, m)
	return namedIn(victims)(m) || err == nil && l.SetUID == set.UID && has && !l.Active.Has(k)
}

// withoutSlots returns the write that takes off the slots of some removals, or nothing.
func withoutSlots(cm *corev1.ConfigMap, slots machine.Disruptions, of []autoscaling.Removal) []plan.Action {
	next := slots.Without(func(s machine.Slot) bool {
		return s.By == name && slices.ContainsFunc(of, func(r autoscaling.Removal) bool { return takenFor(s, r) })
	})
	if len(next.Slots) == len(slots.Slots) {
		return nil
	}
	return []plan.Action{plan.Update{Old: cm, New: next.In(cm), Why: "slots of scale-downs that were called off"}}
}

// takenFor reports that a slot was taken when a removal was decided. One that is older was of an earlier removal of the Node, which may have
// disrupted somebody.
func takenFor(s machine.Slot, r autoscaling.Removal) bool {
	return s.UID == r.MachineUID && planIDAt(s.At.Time, down, string(r.NodeUID)) == r.Plan
}
