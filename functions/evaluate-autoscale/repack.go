// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

const (
	// repackTries is how many Nodes one scan looks at; which ones changes with every minute.
	repackTries = 3
	// repackSlack is how much longer a replacement may take than its Nodes and the old one's time.
	repackSlack = 10 * time.Minute
)

// repack replaces a Node by cheaper ones, or empties it although it is used, where that pays (SPEC W10, W13, D32): off
// unless the settings say what moving a Pod costs. It does so one Node at a time, while nothing else goes on. First the
// cheaper Nodes are asked for; the old one goes as any unneeded Node, once its Pods have a place.
//
//	nothing else goes on ─▶ cheaper Nodes asked for, Node noted ─▶ its Pods fit elsewhere for unneededTime ─▶ removed
//	                                  └── not within maxNodeProvisionTime and unneededTime ──▶ failed: no other one for three hours
func (sc *scan) repack(candidates, going []candidate) {
	rule, on := sc.repacking()
	if !on || sc.state.Repack != nil || sc.busy() {
		return
	}
	costs := sc.trueCosts()
	if costs.unit != perHour || len(candidates) == 0 {
		return
	}
	slices.SortStableFunc(candidates, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(sc.priceOf(b.group), sc.priceOf(a.group)), cmp.Compare(a.node.Name, b.node.Name))
	})
	less := map[*group]int32{}
	for _, c := range going {
		less[c.group]++
	}
	first := int(sc.Now.Unix()/60) * repackTries
	for i := range min(repackTries, len(candidates)) {
		c := candidates[(first+i)%len(candidates)]
		if sc.priced(c) && c.group.target-less[c.group] > c.group.min && sc.movable(c) && sc.replace(c, going, rule, costs) {
			return
		}
	}
}

// repacking returns what the settings say of it.
func (sc *scan) repacking() (autoscaling.Repacking, bool) {
	ca := clusterAutoscaler(sc.Snapshot)
	if ca == nil || ca.Annotations[autoscaling.RepackAnnotation] == "" {
		return autoscaling.Repacking{}, false
	}
	r, err := autoscaling.ParseRepacking(ca.Annotations[autoscaling.RepackAnnotation])
	if err != nil {
		sc.notes = append(sc.notes, plan.Warning(ca, "RepackInvalid", err.Error()).From(caSource))
	}
	return r, err == nil
}

// busy reports that something goes on that a replacement would disturb.
func (sc *scan) busy() bool {
	pending := slices.ContainsFunc(sc.groups, func(g *group) bool {
		return pendingResize(g, sc.state.Groups[g.id]) || g.awaited() > 0 || g.surplus()
	})
	return pending || slices.ContainsFunc(sc.state.Removals, sc.occupies) || sc.halted() != "" || sc.hopes()
}

// hopes reports whether a Pod waits that has a place, or that an empty Node of some set would take once there may be another. What no Node is
// made for waits for people, who may take weeks, and is in nobody's way.
func (sc *scan) hopes() bool {
	if len(sc.broken)+sc.onTheWay > 0 {
		return true
	}
	for i, shape := range sc.placement.Shapes {
		takes := func(g *group) bool { return !g.known || sc.placement.WhyNot(i, g.template) == "" }
		if slices.ContainsFunc(shape.Pods, waits) && (sc.placement.Fit[i]+sc.placement.Helped[i] > 0 || slices.ContainsFunc(sc.groups, takes)) {
			return true
		}
	}
	return false
}

// movable reports whether the Pods of a Node may be moved at all, so that it can go.
func (sc *scan) movable(c candidate) bool {
	return !sc.newerLedger(c.group) && sc.stuck(c) == "" && sc.budgets().short(sc, sc.evicted(c)) == "" && c.ready
}

// priced reports whether a Node costs what the next one of its group does: none does that came before its set was given another type.
func (sc *scan) priced(c candidate) bool {
	i := slices.IndexFunc(c.group.members, func(m member) bool { return m.node == c.node })
	return i < 0 || sc.templates().Stands(c.group.set, scheduling.Node{Node: c.node, Machine: c.group.members[i].machine})
}

// priceOf is what the next Node of a group costs per hour; 0 if nobody says.
func (sc *scan) priceOf(g *group) int64 {
	if p := tablePrice(g, sc.asked); p > 0 { // a question knows better than anybody
		return p
	}
	return priceOf(g, sc.prices)
}

// replace asks for the Nodes that the Pods of a Node would need if it went, if they are cheaper by enough, and notes
// that it is to go. Nodes that go anyway are gone: to keep one costs what it costs.
func (sc *scan) replace(c candidate, going []candidate, rule autoscaling.Repacking, costs costs) bool {
	nodes, pods, kept := sc.without(c, going)
	own := sc.priceOf(c.group)
	offers := make([]scheduling.Offer, len(sc.options))
	for i, o := range sc.options {
		offers[i] = o.offer
		if offers[i].Price = costs.each[i]; offers[i].Price >= own {
			offers[i].Limit = 0
		}
	}
	p := scheduling.NewWorld(nodes, pods, sc.facts()).Place(pods, offers)
	price, used := p.Price(), map[int]bool{}
	for _, on := range p.On {
		if !used[on.Node] {
			price += kept[on.Node]
		}
		used[on.Node] = true
	}
	rest := slices.DeleteFunc(slices.Clone(going), func(x candidate) bool { return used[x.place] })
	saving := float64(own-price) / costs.per
	if sum(p.Left) > 0 || !rule.Worth(saving, len(c.own)) || !sc.affords(p.Openings, c, rest) {
		return false
	}
	sc.state.Repack = &autoscaling.Repack{Node: c.node.Name, NodeUID: c.node.UID, At: *sc.now()}
	text := fmt.Sprintf("Repacking: node %s is to go, which saves %.4g per hour for %d pods to move", c.node.Name, saving, len(c.own))
	sc.notes = append(sc.notes, plan.Log(text), plan.Normal(c.node, "Repack", text).From(source))
	id := sc.planID("repack", string(c.node.UID))
	for _, o := range p.Openings {
		sc.options[o.Offer].more += int32(o.Count)
	}
	for _, o := range sc.options {
		if o.more > 0 {
			sc.grow(o, id, nil)
		}
	}
	return true
}

// without returns the Nodes and the Pods that need a place if a Node goes, and those go that would anyway. Of these, one that
// is cheaper may be kept: by place, what it costs.
func (sc *scan) without(c candidate, going []candidate) (nodes []scheduling.Node, pods []*corev1.Pod, kept map[int]int64) {
	nodes, kept = slices.Clone(sc.seen), map[int]int64{}
	for n, pods := range sc.reserved {
		nodes[n].Pods, nodes[n].Briefs = slices.Concat(nodes[n].Pods, pods), nil
	}
	for _, x := range append([]candidate{c}, going...) {
		empty(&nodes[x.place], x.pods)
		pods = append(pods, x.pods...)
		if each := sc.priceOf(x.group); each > 0 && each < sc.priceOf(c.group) && sc.priced(x) {
			kept[x.place] = each
		} else {
			nodes[x.place].Closed = true
		}
	}
	return nodes, pods, kept
}

// empty takes Pods off a Node.
func empty(n *scheduling.Node, pods []*corev1.Pod) {
	gone := make(map[*corev1.Pod]bool, len(pods))
	for _, p := range pods {
		gone[p] = true
	}
	n.Pods, n.Briefs = slices.DeleteFunc(slices.Clone(n.Pods), func(p *corev1.Pod) bool { return gone[p] }), nil
}

// affords reports whether the limits of the cluster, which sets share, leave room for new Nodes beside the one that they
// replace, and its minimums let that go once they are there and the rest of what goes is gone (SPEC C30, C41).
func (sc *scan) affords(openings []scheduling.Opening, c candidate, rest []candidate) bool {
	total, staying := sc.total(), sc.staying()
	for _, x := range rest {
		staying = staying.plus(sc.sizeOf(x.node), -1)
	}
	for _, o := range openings {
		one := sc.sizeOf(sc.options[o.Offer].template.Node)
		if count, _, _ := sc.room(total, one); count < int64(o.Count) {
			return false
		}
		total, staying = total.plus(one, int64(o.Count)), staying.plus(one, int64(o.Count))
	}
	return sc.spare(staying, sc.sizeOf(c.node))
}

// followRepack forgets a replacement that came true, or came to nothing.
func (sc *scan) followRepack() {
	r := sc.state.Repack
	if r == nil {
		return
	}
	_, on := sc.repacking()
	own := sc.ofGroup(sc.of[r.NodeUID])
	over := sc.Now.After(r.At.Add(own.MaxNodeProvisionTime + own.UnneededTime + repackSlack))
	removing := removalOf(sc.state.Removals, r.NodeUID) != nil
	switch {
	case !on, sc.nodes[r.NodeUID] == nil && !r.Failed, r.Failed && sc.Now.After(r.At.Add(failureMemory)):
		sc.state.Repack = nil
	case over && !removing && !r.Failed:
		failed := *r
		failed.Failed = true
		sc.state.Repack = &failed
		sc.notes = append(sc.notes, plan.Log("Repacking: node "+r.Node+" could not be replaced in time"))
	}
}

// dearness is what a Node of a group costs while a Node is being replaced, else 0: so long the dearest go first, and the
// cheapest are what Pods move to.
func (sc *scan) dearness(g *group) int64 {
	if sc.state.Repack == nil || sc.state.Repack.Failed {
		return 0
	}
	sc.readPrices()
	return sc.priceOf(g)
}

// replaced reports whether a Node is to be replaced: then it may go although it is used.
func (sc *scan) replaced(n *corev1.Node) bool {
	return sc.state.Repack != nil && sc.state.Repack.NodeUID == n.UID && !sc.state.Repack.Failed
}
