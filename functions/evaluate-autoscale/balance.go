// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// similar returns the options among which Nodes are balanced that one was chosen for: that one, with every similar one that
// the expanders like as well, if the settings want balance (SPEC C28, C37–C40).
func (sc *scan) similar(options []*option, chosen int) []int {
	all := []int{chosen}
	if !sc.settings.BalanceSimilarNodeGroups {
		return all
	}
	best := options[chosen]
	for i, o := range options {
		if i != chosen && slices.Equal(o.score, best.score) && sc.alike(best.group, o.group) {
			all = append(all, i)
		}
	}
	return all
}

// taking returns those of similar options that take the Pods of an opening, the one that was chosen first.
func (sc *scan) taking(options []*option, similar []int, opening scheduling.Opening) (all []*option) {
	for _, i := range similar {
		if i == opening.Offer || sc.placement.Movable(opening, i) {
			all = append(all, options[i])
		}
	}
	return all
}

// alike reports whether two groups are similar (SPEC C37, C38).
func (sc *scan) alike(a, b *group) bool {
	if !a.known || !b.known {
		return false
	}
	ignored := slices.Concat(scheduling.IgnoredLabels, sc.settings.BalancingIgnoredLabels)
	if sc.settings.IgnorePlatformLabels {
		ignored = append(ignored, scheduling.PlatformLabels...)
	}
	return sc.world.Similar(a.template, b.template, ignored)
}

// costsAlike returns whether two groups cost the same, as far as anybody asks for prices. They have no say where one of the two
// has none, or any group that could grow in this scan, as on the way up.
func (sc *scan) costsAlike() func(a, b *group) bool {
	sc.readPrices()
	unpriced := func(o *option) bool { return sc.priceOf(o.group) == 0 }
	if !slices.Contains(sc.settings.Expanders, autoscaling.Price) || slices.ContainsFunc(sc.options, unpriced) {
		return func(*group, *group) bool { return true }
	}
	return func(a, b *group) bool {
		x, y := sc.priceOf(a), sc.priceOf(b)
		return x == y || x == 0 || y == 0
	}
}

// prioritiesAlike returns whether two groups have the same priority, as far as anybody asks for priorities and they can be read.
func (sc *scan) prioritiesAlike() func(a, b *group) bool {
	ranks := map[*group]int64{}
	if cm := sc.ConfigMap(machine.Namespace, machine.ConfigMapPriority); cm != nil && slices.Contains(sc.settings.Expanders, autoscaling.Priority) {
		priorities, _ := parsePriorities(cm.Data[prioritiesKey]) // what cannot be read is told when the cluster grows
		for _, g := range sc.groups {
			ranks[g] = rankOf(g.id, priorities)
		}
	}
	return func(a, b *group) bool { return ranks[a] == ranks[b] }
}

// working returns how many Nodes of a group take Pods and are not to go.
func (sc *scan) working() func(*group) int32 {
	less := map[*group]int32{}
	for _, r := range sc.state.Removals {
		if n := sc.nodes[r.NodeUID]; n != nil && sc.ready(n) && !sc.begun(r) {
			less[sc.byID[r.Group]]++
		}
	}
	return func(g *group) int32 { return g.ready - less[g] }
}

// evenOut brings to the front of the Nodes that may go the one whose group is the largest among the groups similar to
// that of the first that the expanders like as well: what balance brought, balance takes (SPEC D29). The largest is what has most Nodes that
// take Pods, however many are wanted: a zone that lost most of its Nodes does not lose the last one. It changes nothing between two Nodes
// of which only one is empty, takes Pods, or is sick, and takes none that has to stay for a reason of its own.
func (sc *scan) evenOut(rest []candidate, r room) {
	if !sc.settings.BalanceSimilarNodeGroups {
		return
	}
	first, best, size, costsAlike, prioritiesAlike := rest[0], 0, sc.working(), sc.costsAlike(), sc.prioritiesAlike()
	like := func(c candidate) bool {
		return c.drain == first.drain && c.ready == first.ready && c.sick == first.sick
	}
	liked := func(a, b *group) bool { return prioritiesAlike(a, b) && costsAlike(a, b) }
	for i, c := range rest {
		if size(c.group) > size(rest[best].group) && like(c) && sc.alike(first.group, c.group) && liked(first.group, c.group) && sc.held(c, r) == "" {
			best = i
		}
	}
	rest[0], rest[best] = rest[best], rest[0]
}
