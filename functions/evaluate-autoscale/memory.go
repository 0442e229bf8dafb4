// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"math"
	"slices"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// What a set's Nodes are like is kept on the set, for the time when it has none: what its annotations say of an instance
// is more than a Node offers, and knows no zone (SPEC C13, C15). It is written along with every change of replicas, and by
// itself when the last Node that says so is about to go: before anybody puts on it what is of its end alone.

// memoryOf returns what is to be remembered of a group's Nodes; the empty text if none of them says. One that stays says
// it rather than one that goes, and of these the one with the fewest taints of its own.
func (sc *scan) memoryOf(g *group) (text string, stays bool) {
	t, least := sc.templates(), math.MaxInt
	for _, m := range g.members {
		if m.node == nil {
			continue
		}
		end, own := sc.endAhead(m), t.OwnTaints(g.set, m.node)
		if end != "" && stays || (end == "") == stays && own >= least {
			continue
		}
		says := t.Remember(g.set, scheduling.Node{Node: m.node, Pods: sc.running[m.node.Name], Machine: m.machine}, end)
		if says == "" {
			continue
		}
		if text, stays, least = says, end == "", own; stays && own == 0 {
			break
		}
	}
	return text, stays
}

// endAhead names what a member's Node goes by: its removal, or its Machine, which goes for another reason. It is empty for one that
// stays.
func (sc *scan) endAhead(m member) string {
	if m.node == nil {
		return ""
	}
	if r := removalOf(sc.state.Removals, m.node.UID); r != nil {
		return r.Plan
	}
	if m.leaving {
		return string(m.machine.UID)
	}
	return ""
}

// remembering returns the set of a group as it is once what its Nodes are like was written on it, if that is what the next
// one has to be made from.
func (sc *scan) remembering(g *group, members []scheduling.Node) *machine.MachineSet {
	t := sc.templates()
	if len(g.members) == 0 || slices.ContainsFunc(members, func(n scheduling.Node) bool { return t.Good(g.set, n) }) {
		return g.set
	}
	next := *g.set
	next.Annotations = maps.Clone(g.set.Annotations)
	sc.withMemory(g, &next)
	return &next
}

// withMemory puts what is remembered of a group's Nodes onto a copy of its set.
func (sc *scan) withMemory(g *group, set *machine.MachineSet) {
	text, _ := sc.memoryOf(g)
	if text == "" {
		return
	}
	if set.Annotations == nil {
		set.Annotations = map[string]string{}
	}
	set.Annotations[machine.AnnotationLastNode] = text
}

// keepMemory remembers the last Nodes of groups that lose them.
func (sc *scan) keepMemory() {
	for _, g := range sc.groups {
		if !slices.ContainsFunc(g.members, func(m member) bool { return sc.endAhead(m) != "" }) || pendingResize(g, sc.state.Groups[g.id]) {
			continue
		}
		if _, _, differs := sc.backoffOf(g); differs {
			continue // one change of a set at a time
		}
		text, stays := sc.memoryOf(g)
		if stays || text == "" || text == g.set.Annotations[machine.AnnotationLastNode] {
			continue
		}
		next := g.set.DeepCopy()
		sc.withMemory(g, next)
		sc.once(plan.Update{Old: g.set, New: next, Why: "what its nodes are like"})
	}
}
