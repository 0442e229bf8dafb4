// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// giveBackNeeded takes the removals of empty Nodes back on which Pods that wait have a place, and elsewhere have none: others would be made
// for them while these go, however new the Pods are. Drains go on, and so does the Node that a cheaper one replaces. Who is given back is
// packed in another order then, so that it is asked again who is needed beside.
func (sc *scan) giveBackNeeded() {
	for {
		going := map[types.UID]bool{}
		for _, r := range sc.state.Removals {
			if !r.Drain && !sc.begun(r) && !sc.replaced(sc.nodes[r.NodeUID]) {
				going[r.NodeUID] = true
			}
		}
		needed := sc.neededOf(going)
		if len(needed) == 0 {
			return
		}
		sc.giveBack(needed, "pods that wait have a place there")
	}
}

// neededOf returns which of some Nodes that are about to go a plan uses that may use them, after all others that exist: for groups of Pods
// perhaps beside new ones, and Pods that depend on where others are. Groups that are torn apart even so use none, as long as it takes little
// work to find that out. Of what it finds only the work counts.
func (sc *scan) neededOf(going map[types.UID]bool) (needed map[types.UID]bool) {
	if len(going) == 0 {
		return nil
	}
	x := *sc
	x.state.Groups, x.going, x.trying = maps.Clone(sc.state.Groups), going, true
	x.state.Removals = slices.DeleteFunc(slices.Clone(sc.state.Removals), func(r autoscaling.Removal) bool { return going[r.NodeUID] })
	if len(x.waitingPods())+len(x.headroom()) == 0 {
		return nil
	}
	x.look()
	used := func() map[types.UID]bool {
		nodes := map[types.UID]bool{}
		for _, on := range x.placement.On {
			nodes[x.places[on.Node].node.UID] = true
		}
		for place := range x.kept {
			nodes[x.places[place].node.UID] = true
		}
		maps.DeleteFunc(nodes, func(uid types.UID, _ bool) bool { return !going[uid] })
		return nodes
	}
	x.placement = x.fit(x.world, x.waiting, nil) // which knows nothing of Pods that were counted on and keep their room
	left, tied := leftOver(x.placement), slices.ContainsFunc(x.waiting, depends)
	if needed = used(); (len(needed)+len(x.countedOn()) > 0 || tied && left > 0) && sc.work < mostWork/4 {
		x.options = x.growing()
		x.plan(x.options)
		needed = used()
	}
	if tied && len(needed) == 0 && len(x.broken) == 0 {
		needed = x.holdingDown(going, left)
	}
	sc.work = x.work
	return needed
}

// depends reports whether where a Pod may be depends on where others are, so that a Node without any holds it down or lets it in.
func depends(p *corev1.Pod) bool {
	return len(p.Spec.TopologySpreadConstraints) > 0 || p.Spec.Affinity != nil && p.Spec.Affinity.PodAffinity != nil
}

// holdingDown returns a Node of which no plan has use, but without which more Pods are left over: it counts for what they spread over
// and takes none, which holds the other Nodes down. Of several it is the one that leaves the fewest over, the first of these.
func (sc *scan) holdingDown(going map[types.UID]bool, left int) map[types.UID]bool {
	without := func(stays types.UID) int {
		nodes := slices.Clone(sc.seen)
		for i, p := range sc.places {
			nodes[i].Closed = nodes[i].Closed || going[p.node.UID] && p.node.UID != stays
		}
		return leftOver(sc.fit(scheduling.NewWorld(nodes, sc.waiting, sc.facts()), sc.waiting, nil))
	}
	if without("") <= left {
		return nil
	}
	best, fewest := types.UID(""), 0
	for _, p := range sc.places {
		if !going[p.node.UID] || best != "" && sc.work >= mostWork/4 {
			continue
		}
		if n := without(p.node.UID); best == "" || n < fewest {
			best, fewest = p.node.UID, n
		}
	}
	return map[types.UID]bool{best: true}
}

// leftOver counts the Pods without a place.
func leftOver(p scheduling.Placement) (n int) {
	for _, left := range p.Left {
		n += left
	}
	return n
}
