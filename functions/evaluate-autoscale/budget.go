// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var budgetQuery = snapshot.One("ConfigMap", machine.Namespace, machine.ConfigMapDisrupt)

// budget is how many Machines of the whole cluster automation may disrupt. Every scale-down needs a slot, stored
// before it begins (RELIABILITY G8, 2f).
type budget struct {
	cm      *corev1.ConfigMap
	limits  machine.DisruptionLimits
	slots   machine.Disruptions // stored, with those that are wanted
	wanted  map[types.UID]bool  // by Machine that asked in this scan: it has one
	refused machine.Slot        // the last one that was not to be had
	victims map[string][]machine.Victim
	taken   bool
	err     error  // why it cannot be read, or written: then nothing is removed
	cannot  string // be read, or written
}

func (sc *scan) readBudget() *budget {
	b := &budget{cm: sc.ConfigMap(machine.Namespace, machine.ConfigMapDisrupt), wanted: map[types.UID]bool{}, victims: sc.victims()}
	if b.slots, b.err = machine.ParseDisruptions(b.cm); b.err == nil {
		b.limits, b.err = machine.ParseDisruptionLimits(b.cm, len(sc.Machines))
		b.limits = b.limits.BesideHealing()
	}
	b.cannot = "read"
	if why, refused := sc.Refused(b.store()); b.err == nil && refused { // nothing that goes with it would be done, either
		b.err, b.cannot = errors.New(why), "written"
	}
	return b
}

// take takes a slot for the Machine of a removal, if there is one to be had.
func (b *budget) take(sc *scan, r autoscaling.Removal, namespace string) bool {
	if b.err != nil {
		return false
	}
	want := machine.Slot{Namespace: namespace, Machine: r.Machine, UID: r.MachineUID, By: name}
	next, ok := b.slots.Take(want, b.limits, sc.Now, sc.over)
	if !ok {
		b.refused = want
	}
	b.taken = b.taken || ok && !b.slots.Holds(name, r.MachineUID, sc.Now)
	b.slots, b.wanted[r.MachineUID] = next, ok
	return ok
}

// noSlot tells why no slot was to be had.
func (sc *scan) noSlot() string {
	if err := sc.budget.err; err != nil { // only people can mend it
		why := "nothing is removed while configmap/" + machine.ConfigMapDisrupt + " cannot be " + sc.budget.cannot + ": " + clip(err.Error())
		sc.notes = append(sc.notes, plan.Warning(sc.budget.slots.In(sc.budget.cm), "DisruptionBudgetUnreadable", "Scale-down: "+why).From(source))
		return why
	}
	why := sc.budget.spent(sc)
	sc.notes = append(sc.notes, plan.Log(why))
	return why
}

// spent tells which of the limits left no slot: that of an hour, with until when, or else that of as many at once, until some of them are gone.
func (b *budget) spent(sc *scan) string {
	const held, allows = "Scale-down: nothing more is removed ", "configmap/" + machine.ConfigMapDisrupt + " allows scale-down "
	until, spent := b.slots.HourSpent(b.refused, b.limits, sc.Now, sc.over)
	switch {
	case !spent:
		return fmt.Sprintf("%swhile as many machines are disrupted as %sat once: %d", held, allows, b.limits.AtOnce)
	case until.IsZero():
		return held + "while " + allows + "none within an hour"
	}
	return fmt.Sprintf("%suntil %s, as many machines were disrupted as %swithin an hour: %d", held, machine.Stamp(until), allows, b.limits.PerHour)
}

// over reports that the Machine of a slot is gone, or was given back. One that is decided about in this scan was not, whatever is to be
// written of it.
func (sc *scan) over(s machine.Slot) bool {
	m := sc.machines[s.UID]
	if m == nil || sc.budget.wanted[s.UID] {
		return m == nil
	}
	return s.By == name && m.DeletionTimestamp == nil && !sc.retired[m.UID] && !sc.isVictim(m) &&
		!slices.ContainsFunc(sc.state.Removals, func(r autoscaling.Removal) bool { return r.MachineUID == s.UID })
}

// isVictim reports that a Machine was named to go before it was first asked for a slot.
func (sc *scan) isVictim(m *machine.Machine) bool {
	return slices.ContainsFunc(sc.budget.victims[m.Name], func(v machine.Victim) bool { return v.Is(m) })
}

// victims returns, by name, the Machines that are named to go: in their sets, or by changes that are still to be carried out.
func (sc *scan) victims() map[string][]machine.Victim {
	all := map[string][]machine.Victim{}
	for _, g := range sc.groups {
		victims, _ := machine.Victims(g.set) // unreadable: the set loses nobody
		if n := sc.state.Groups[g.id]; pendingResize(g, n) {
			victims = append(victims, victimsOf(*n.Resize)...)
		}
		for _, v := range victims {
			all[v.Name] = append(all[v.Name], v)
		}
	}
	return all
}

// store returns the write of the slots.
func (b *budget) store() plan.Action {
	const why = "slots for scale-downs"
	next := b.slots.In(b.cm)
	if b.cm == nil {
		return plan.Create{Object: next, Why: why}
	}
	return plan.Update{Old: b.cm, New: next, Why: why}
}
