// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"slices"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
)

// giveBackNeeded takes the removals of empty Nodes back on which Pods that wait have a place, and elsewhere have none: others would be made
// for them while these go. As many are given back as it takes: a Node without which no more Pods are left over goes. Drains go on, and
// so does the Node that a cheaper one replaces.
func (sc *scan) giveBackNeeded() {
	var open []string
	for _, r := range sc.state.Removals {
		if !r.Drain && !sc.begun(r) && !sc.replaced(sc.nodes[r.NodeUID]) {
			open = append(open, r.Plan)
		}
	}
	if len(open) == 0 {
		return
	}
	left := sc.leftWith(nil)
	if left == 0 {
		return
	}
	least := sc.leftWith(open)
	if least >= left { // none of them is of use, whichever it is
		return
	}
	for _, name := range slices.Clone(open) {
		rest := slices.DeleteFunc(slices.Clone(open), func(x string) bool { return x == name })
		if sc.leftWith(rest) <= least {
			open = rest
		}
	}
	needed := func(r autoscaling.Removal) bool { return slices.Contains(open, r.Plan) }
	for _, r := range sc.state.Removals {
		if needed(r) {
			sc.takeBack(r, sc.nodes[r.NodeUID], "pods that wait have a place there")
		}
	}
	sc.state.Removals = slices.DeleteFunc(sc.state.Removals, needed)
}

// leftWith returns how many Pods that wait would be left over without new Nodes if these removals were taken back. Pods that bring no
// Nodes, and those that are so new that more are awaited, are none. Nothing of what it finds is kept.
func (sc *scan) leftWith(open []string) (left int) {
	x := *sc
	x.state.Groups = maps.Clone(sc.state.Groups)
	x.state.Removals = slices.DeleteFunc(slices.Clone(sc.state.Removals), func(r autoscaling.Removal) bool { return slices.Contains(open, r.Plan) })
	x.waiting = append(x.waitingPods(), x.headroom()...)
	if len(x.waiting) == 0 || !x.asking && x.allYoung() {
		return 0
	}
	x.look()
	x.plan(nil)
	for _, n := range x.leftOver() {
		left += n
	}
	for _, b := range x.broken {
		left += len(b.pods)
	}
	return left
}
