// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// room is what removals have left while they are begun one after the other.
type room struct {
	removals, drains int
	less             map[*group]int32
	staying          size
	halted           string
	undecided        map[*group]bool                  // of which it was asked
	wanted           map[*group]map[*corev1.Node]bool // the same
}

// shrinkable returns what removals have left before any begins in this scan.
func (sc *scan) shrinkable() room {
	less, removals, drains := sc.underWay()
	return room{
		removals: maxRemovals - removals, drains: maxDrains - drains, less: less, staying: sc.staying(), halted: sc.halted(),
		undecided: map[*group]bool{}, wanted: map[*group]map[*corev1.Node]bool{},
	}
}

// chosen reports whether it is known who of a group goes before others may. That takes a look at all of it, once: of thousands of Nodes
// that wait for it each would ask.
func (r room) chosen(sc *scan, g *group) bool {
	if _, asked := r.undecided[g]; !asked {
		r.undecided[g] = sc.undecided(g)
	}
	return !r.undecided[g]
}

// stays reports that a Node stays until others are gone who were chosen: whoever deletes them may be refused that for good.
func (r room) stays(sc *scan, c candidate) bool { return r.staysOf(sc, c.group)[c.node] }

// staysOf returns the Nodes of a group that stay so. That takes a look at all of it, once.
func (r room) staysOf(sc *scan, g *group) map[*corev1.Node]bool {
	if _, asked := r.wanted[g]; !asked {
		r.wanted[g] = sc.wanted(g)
	}
	return r.wanted[g]
}

// wanted returns the Nodes that a group keeps of more than are wanted, where its ledger tells who goes: that has no more Machines than are
// wanted, and is to adopt none. Before it does any of them may be chosen, and none is known to stay.
func (sc *scan) wanted(g *group) map[*corev1.Node]bool {
	l, err := sc.Records.Ledger(g.set)
	if err != nil || !g.surplus() || sc.allotted(g) > g.target {
		return nil
	}
	all, ordinalOf := map[*corev1.Node]bool{}, l.Finder(g.set.Name)
	for _, m := range g.members {
		switch k, ok := ordinalOf(m.machine); {
		case !ok && !m.leaving:
			return nil
		case ok && l.Active.Has(k) && m.node != nil:
			all[m.node] = true
		}
	}
	return all
}

// least returns which minimum keeps a Node, its group's or the cluster's, if one does.
func (sc *scan) least(c candidate, r room) string {
	switch {
	case c.group.target-r.less[c.group] <= c.group.min:
		return fmt.Sprintf("NodeGroupMinSizeReached: %s is at its minimum of %d", c.group.id, c.group.min)
	case !sc.spare(r.staying, sc.sizeOf(c.node)):
		return "MinimalResourceLimitExceeded: " + sc.underMinimum(r.staying, sc.sizeOf(c.node))
	}
	return ""
}

// held returns why an unneeded Node is not removed now, if so.
func (sc *scan) held(c candidate, r room) string {
	least := sc.least(c, r)
	switch {
	case least != "":
		return least
	case sc.newerLedger(c.group):
		return "NewerLedger: " + newerVersion
	case !sc.due(c):
		reason := "NotUnneededLongEnough"
		if !c.ready {
			reason = "NotUnreadyLongEnough"
		}
		return fmt.Sprintf("%s%s%s, due %s", reason, unneededSince, machine.Stamp(c.since), machine.Stamp(c.since.Add(sc.patience(c))))
	case r.halted != "":
		return r.halted
	case r.removals < 1, c.drain && r.drains < 1:
		return whyOther + "as many nodes are being removed as may be at a time"
	case !r.chosen(sc, c.group):
		return whyOther + awaits(c.node, r.staysOf(sc, c.group))
	}
	return ""
}

// awaits returns what a Node waits for whose group has more Machines than are wanted, of which some are known to stay, or none.
func awaits(n *corev1.Node, wanted map[*corev1.Node]bool) string {
	switch {
	case wanted == nil:
		return nobodyChose
	case wanted[n]:
		return othersChosen
	}
	return itselfChosen
}

// underWay counts the scale-downs that still stand in their group's target, those that take one of the places at a time,
// and the drains among these.
func (sc *scan) underWay() (less map[*group]int32, removals, drains int) {
	less = map[*group]int32{}
	for _, r := range sc.state.Removals {
		if g := sc.byID[r.Group]; g != nil && !sc.begun(r) {
			less[g]++
		}
		if sc.occupies(r) {
			removals++
			drains += truth(r.Drain)
		}
	}
	return less, removals, drains
}
