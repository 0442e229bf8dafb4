// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// Bounds of what is remembered about Pods that Nodes were asked for: the ConfigMap holds a megabyte, a Pod takes six bytes.
const (
	maxWaves  = 50 // of one group; the two oldest become one
	maxMarked = 50_000
)

// wave is what is remembered about Nodes that are asked for now: once they are there, the set has so many Machines, and
// these Pods have a place.
func (sc *scan) wave(to int32, served []*corev1.Pod) autoscaling.Wave {
	marks := make(autoscaling.Marks, min(len(served), maxMarked))
	for _, p := range served {
		if len(sc.counted)+len(marks) < maxMarked && !sc.assured(p) {
			marks.Add(p)
		}
	}
	return autoscaling.Wave{At: *sc.now(), To: to, Pods: marks.String()}
}

// followWaves forgets the waves that are no longer on their way: their Nodes came and have settled, are not wanted any
// more, or took too long, as those of a request that timed out did. A group that is backed off has none: its Pods look for another.
func (sc *scan) followWaves(g *group) {
	n := sc.state.Groups[g.id]
	if len(n.Waves) == 0 {
		return
	}
	here := g.target - g.awaited() - g.settling
	lost := sc.backedOff(g)
	var waves []autoscaling.Wave
	for _, w := range n.Waves {
		switch {
		case lost || w.To > g.target || !sc.Now.Before(w.At.Add(g.own.MaxNodeProvisionTime)):
		case w.To <= here:
			sc.arrived = append(sc.arrived, arrival{g, w})
		default:
			waves = append(waves, w)
		}
	}
	if len(waves) > maxWaves {
		marks := autoscaling.Marks{}
		marks.AddText(waves[0].Pods)
		marks.AddText(waves[1].Pods)
		waves = waves[1:]
		waves[0].Pods = marks.String()
	}
	sc.change(g, func(n *autoscaling.NodeGroup) { n.Waves = waves })
}

// countedOn returns the Pods that waves on their way are for.
func (sc *scan) countedOn() autoscaling.Marks {
	marks := autoscaling.Marks{}
	for _, g := range sc.groups {
		for _, w := range sc.state.Groups[g.id].Waves {
			marks.AddText(w.Pods)
		}
	}
	return marks
}

// displaced reports that Pods found no place on Nodes that exist or are to come, although they were counted on when Nodes
// were asked for that are on their way. Of the Pods of a shape they come first: those that nobody counted on yet never take
// their places.
func (sc *scan) displaced(p scheduling.Placement) (unfit bool) {
	if len(sc.counted) == 0 {
		return false
	}
	for i, shape := range p.Shapes {
		unfit = sc.countedFirst(shape.Pods) > p.Fit[i] || unfit
	}
	return unfit
}

// maxRanks bounds the priorities for which Pods that were counted on are asked to give way.
const maxRanks = 4

// beside is a placement beside Pods that keep the room that they were promised.
type beside struct {
	scheduling.Placement
	kept     map[int][]*corev1.Pod // by place
	onTheWay int                   // Pods that were counted on and are not packed anew
	packed   []*corev1.Pod
}

// beside packs Pods beside those that keep their places, and parts of those that have none.
func (sc *scan) beside(kept, parts map[int][]*corev1.Pod, onTheWay int, packed []*corev1.Pod, offers []scheduling.Offer) beside {
	b := beside{sc.fit(sc.world.With(kept).With(parts), packed, offers), kept, onTheWay, packed}
	sc.countedFirstOf(b.Placement)
	return b
}

// placeBeside finds places for the Pods that nobody counted on yet beside those that were. Where that leaves somebody
// without a place who has one once less important Pods give way, they have their turn with the others, by priority (SPEC C9):
// those that must, or all of them where that serves more or costs less.
func (sc *scan) placeBeside(offers []scheduling.Offer) scheduling.Placement {
	counted, others := divided(sc.packed, sc.counted.Has)
	kept, parts := sc.promises(counted)
	b := sc.beside(kept, parts, len(counted), others, offers)
	for _, rank := range ranksOf(b.Placement) {
		yielding, important := divided(counted, func(x *corev1.Pod) bool { return corev1helpers.PodPriority(x) < rank })
		if len(yielding) == 0 {
			break
		}
		kept, parts := sc.promises(important)
		next := sc.beside(kept, parts, len(important), slices.Concat(others, yielding), offers)
		if few, ok := sc.someGiveWay(b, rank, counted, others, offers); ok && !prefers(next.Placement, few.Placement) {
			next = few
		}
		if fewer(from(homeless(next.Placement), rank), from(homeless(b.Placement), rank)) {
			b = next
			break
		}
	}
	sc.kept, sc.onTheWay, sc.packed = b.kept, b.onTheWay, b.packed
	return b.Placement
}

// someGiveWay packs anew, of the Pods that were counted on, those alone that lose their places to Pods of a rank that have none;
// it reports whether all of them are below it.
func (sc *scan) someGiveWay(b beside, rank int32, counted, others []*corev1.Pod, offers []scheduling.Offer) (few beside, ok bool) {
	var homeless []*corev1.Pod
	for i, shape := range b.Shapes {
		if corev1helpers.PodPriority(shape.Pods[0]) >= rank {
			homeless = append(homeless, shape.Pods[len(shape.Pods)-b.Left[i]:]...)
		}
	}
	together := sc.fit(sc.world, slices.Concat(counted, homeless), offers)
	sc.countedFirstOf(together)
	kept := placed(together)
	for at, pods := range kept {
		kept[at] = slices.DeleteFunc(pods, func(x *corev1.Pod) bool { return !sc.counted.Has(x) })
	}
	had, has := inAny(b.kept), inAny(kept)
	yielding, _ := divided(counted, func(x *corev1.Pod) bool { return had[x] && !has[x] }) // who had none waits for its Node all the same
	if slices.ContainsFunc(yielding, func(x *corev1.Pod) bool { return corev1helpers.PodPriority(x) >= rank }) {
		return few, false
	}
	return sc.beside(kept, nil, len(counted)-len(yielding), slices.Concat(others, yielding), offers), true
}

// inAny returns the Pods that are in any of the places.
func inAny(places map[int][]*corev1.Pod) map[*corev1.Pod]bool {
	all := map[*corev1.Pod]bool{}
	for _, pods := range places {
		for _, p := range pods {
			all[p] = true
		}
	}
	return all
}

// prefers reports whether a placement serves more important Pods than another one; or as many, and costs less.
func prefers(a, b scheduling.Placement) bool {
	x, y := homeless(a), homeless(b)
	return fewer(x, y) || !fewer(y, x) && a.Price() < b.Price()
}

// divided returns the Pods of which something holds, and the others.
func divided(pods []*corev1.Pod, holds func(*corev1.Pod) bool) (those, others []*corev1.Pod) {
	for _, p := range pods {
		if holds(p) {
			those = append(those, p)
		} else {
			others = append(others, p)
		}
	}
	return those, others
}

// withdraw makes waves no longer speak of Pods that gave way and got nothing in return: what they were promised is somebody
// else's, on whom Nodes are counted that there may be no more of, so that they would seem to fit for as long as these take.
func (sc *scan) withdraw() {
	gone := autoscaling.Marks{}
	add := func(pods []*corev1.Pod) {
		for _, p := range pods {
			if sc.counted.Has(p) && !sc.assured(p) {
				gone.Add(p)
			}
		}
	}
	for i, shape := range sc.placement.Shapes {
		add(shape.Pods[sc.placement.Fit[i]+sc.helped[i]:])
	}
	for _, b := range sc.broken { // left out of a packing in which all who were counted on may have what they were promised
		for _, p := range b.pods {
			if sc.counted.Has(p) {
				gone.Add(p)
			}
		}
	}
	if len(gone) == 0 {
		return
	}
	for _, g := range sc.groups {
		sc.change(g, func(n *autoscaling.NodeGroup) {
			n.Waves = slices.Clone(n.Waves)
			for i, w := range n.Waves {
				n.Waves[i].Pods = without(w.Pods, gone)
			}
		})
	}
}

// assured reports that a Pod that is packed was counted on, and has the place that it was promised.
func (sc *scan) assured(p *corev1.Pod) bool { return sc.kept == nil && sc.counted.Has(p) }

// without returns marks without some of them.
func without(text string, gone autoscaling.Marks) string {
	marks := autoscaling.Marks{}
	marks.AddText(text)
	maps.DeleteFunc(marks, func(m uint32, _ bool) bool { return gone[m] })
	return marks.String()
}

// ranksOf returns the highest priorities of Pods that a placement leaves without a place, the highest first.
func ranksOf(p scheduling.Placement) []int32 {
	ranks := slices.Sorted(maps.Keys(homeless(p)))
	slices.Reverse(ranks)
	return ranks[:min(len(ranks), maxRanks)]
}

// homeless counts, by priority, the Pods that a placement leaves without a place.
func homeless(p scheduling.Placement) map[int32]int {
	left := map[int32]int{}
	for i, shape := range p.Shapes {
		if p.Left[i] > 0 {
			left[corev1helpers.PodPriority(shape.Pods[0])] += p.Left[i]
		}
	}
	return left
}

// placed returns, by place, the Pods that a placement has there.
func placed(p scheduling.Placement) map[int][]*corev1.Pod {
	all, next := map[int][]*corev1.Pod{}, make([]int, len(p.Shapes))
	for _, put := range p.On {
		from := next[put.Shape]
		next[put.Shape] += put.Count
		all[put.Node] = append(all[put.Node], p.Shapes[put.Shape].Pods[from:next[put.Shape]]...)
	}
	return all
}

// taken returns, by place, the Pods that count on room there and do not run there.
func (sc *scan) taken() map[int][]*corev1.Pod {
	all := placed(sc.placement)
	for n, pods := range sc.kept {
		all[n] = slices.Concat(pods, all[n])
	}
	return all
}

// countedFirst brings the Pods that were counted on to the front, and returns how many they are.
func (sc *scan) countedFirst(pods []*corev1.Pod) (first int) {
	var rest []*corev1.Pod
	for _, p := range pods {
		if sc.counted.Has(p) {
			pods[first] = p
			first++
		} else {
			rest = append(rest, p)
		}
	}
	copy(pods[first:], rest)
	return first
}

// countedFirstOf does so with every shape of a placement.
func (sc *scan) countedFirstOf(p scheduling.Placement) {
	for _, shape := range p.Shapes {
		sc.countedFirst(shape.Pods)
	}
}
