// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// room is what removals have left while they are begun one after the other.
type room struct {
	removals, drains int
	less             map[*group]int32
	staying          size
	halted           string
	undecided        map[*group]bool // of which it was asked
}

// shrinkable returns what removals have left before any begins in this scan.
func (sc *scan) shrinkable() room {
	less, removals, drains := sc.underWay()
	return room{
		removals: maxRemovals - removals, drains: maxDrains - drains, less: less, staying: sc.staying(), halted: sc.halted(),
		undecided: map[*group]bool{},
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
	case sc.forbidden(c.node) != "":
		return whyOther + unchangeable + sc.forbidden(c.node)
	case sc.unwritable(c.group) != "":
		return whyOther + sc.unwritable(c.group)
	case sc.Now.Before(sc.due(c)):
		reason := "NotUnneededLongEnough"
		if !c.ready {
			reason = "NotUnreadyLongEnough"
		}
		return fmt.Sprintf("%s%s%s, due %s", reason, unneededSince, machine.Stamp(c.since), machine.Stamp(sc.due(c)))
	case r.halted != "":
		return r.halted
	case r.removals < 1, c.drain && r.drains < 1:
		return whyOther + "as many nodes are being removed as may be at a time"
	case !r.chosen(sc, c.group):
		return whyOther + nobodyChose
	}
	return ""
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
