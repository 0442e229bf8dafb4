// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
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
// perhaps beside new ones. Groups that are torn apart even so use none, as long as it takes little work to find that out. Of what it finds
// only the work counts.
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
	if needed = used(); len(needed)+len(x.countedOn()) > 0 && sc.work < mostWork/4 {
		x.options = x.growing()
		x.plan(x.options)
		needed = used()
	}
	sc.work = x.work
	return needed
}
