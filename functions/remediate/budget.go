// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var budgetQuery = snapshot.One("ConfigMap", machine.Namespace, machine.ConfigMapDisrupt)

// budget is how many Machines of the whole cluster automation may disrupt (RELIABILITY G8). Every remediation needs a
// slot, stored before it acts, but for what is [spent].
type budget struct {
	cm       *corev1.ConfigMap
	now      time.Time
	limits   machine.DisruptionLimits
	stored   machine.Disruptions
	wanted   machine.Disruptions // stored, with slots for what is in flight
	foreseen machine.Disruptions // wanted, with slots for what will be in flight next
	takers   []string            // Machines whose slots are wanted and not stored
	ahead    bool                // a time that is stored lies too far ahead
	over     func(machine.Slot) bool
	err      error // why it cannot be read: then nothing is remediated
}

func budgetOf(s snapshot.Snapshot, over func(machine.Slot) bool) *budget {
	b := &budget{cm: s.ConfigMap(machine.Namespace, machine.ConfigMapDisrupt), now: s.Now, over: over}
	if b.stored, b.err = machine.ParseDisruptions(b.cm); b.err == nil {
		b.stored, b.ahead = b.stored.Bounded(s.Now, func(slot machine.Slot) bool {
			m := s.Machine(slot.Namespace, slot.Machine)
			return (m == nil || m.UID != slot.UID) && over(slot) // what is in flight is not known yet
		})
		b.limits, b.err = machine.ParseDisruptionLimits(b.cm, len(s.Machines))
	}
	b.wanted, b.foreseen = b.stored, b.stored
	return b
}

// take wants a slot for t's Machine, which is in flight. It reports false if there is none to be had.
func (b *budget) take(t *target) bool {
	if spent(t) {
		return true
	}
	next, ok := b.wanted.Take(slotOf(t), b.limits, b.now, b.over)
	if ok && !b.stored.Holds(name, t.m.UID, b.now) {
		b.takers = append(b.takers, t.m.Name)
	}
	b.wanted, b.foreseen = next, next
	return ok
}

// foresee reports whether t's Machine could have a slot as well once it is in flight.
func (b *budget) foresee(t *target) (ok bool) {
	if spent(t) {
		return true
	}
	b.foreseen, ok = b.foreseen.Take(slotOf(t), b.limits, b.now, b.over)
	return ok
}

// lets reports whether t's Machine has the slot that it needs, stored.
func (b *budget) lets(t *target) bool { return spent(t) || b.stored.Holds(name, t.m.UID, b.now) }

// spent reports that a slot would spare nothing: the instance is about to be taken away, whoever has slots, and its Pods be cut off. How many
// of these go at once is for their check to say, in case that what tells of them errs. The control plane has one slot, and keeps to it (R-S10).
func spent(t *target) bool { return t.leaves && !t.controlPlane() }

// full says why there is no slot for t's Machine: of the control plane there is one, whatever the limits are; else which of them it is that
// leaves none.
func (b *budget) full(t *target) string {
	for _, s := range b.foreseen.Slots {
		if s.ControlPlane && t.controlPlane() && s.UID != t.m.UID && b.foreseen.Holds(s.By, s.UID, b.now) && !b.over(s) {
			return fmt.Sprintf(heldSlot, s.Machine)
		}
	}
	if _, spent := b.foreseen.HourSpent(slotOf(t), b.limits, b.now, b.over); spent {
		return heldHour
	}
	return heldBudget
}

// slotOf is a slot for t's Machine. Of one that goes it is as old as its deletion: who was made since is its successor (see [decision.over]).
func slotOf(t *target) machine.Slot {
	slot := machine.Slot{Namespace: t.m.Namespace, Machine: t.m.Name, UID: t.m.UID, By: name, ControlPlane: t.controlPlane()}
	if t.m.DeletionTimestamp != nil {
		slot.At = *t.m.DeletionTimestamp
	}
	return slot
}

// commit stores the slots that are wanted.
func (b *budget) commit() plan.Sequence {
	var why string
	switch {
	case len(b.takers) > 0:
		why = "slots for " + strings.Join(b.takers, ", ")
	case b.ahead && b.err == nil:
		why = "times that lie too far ahead"
	default:
		return plan.Sequence{}
	}
	next := b.wanted.In(b.cm)
	if b.cm == nil {
		return plan.Sequence{Do: []plan.Action{plan.Create{Object: next, Why: why}}}
	}
	return plan.Sequence{Do: []plan.Action{plan.Update{Old: b.cm, New: next, Why: why}}}
}
