// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// mostRanked bounds the priorities that are planned for alone by what a packing costs: beyond so many shapes of Pods, times options, it
// is one.
const mostRanked = 8000

// byRank sees to it that less important Pods cost nobody a place: where limits cut a plan, what is left of it was chosen for them as
// well. For the highest priorities that somebody is left over of, these Pods and more important ones are planned for alone. Where that
// leaves fewer of them over, they have the Nodes that they have alone, and the others what the limits leave beside these.
func (sc *scan) byRank(options []*option, served map[*group][]*corev1.Pod, known map[int32]tried) map[*group][]*corev1.Pod {
	best := sc.tried(options, served)
	most := max(1, min(maxRanks, mostRanked/max(1, len(sc.placement.Shapes)*len(options))))
	until := sc.work + mostWork/4
	for _, rank := range sc.ranksAbove() {
		over := from(best.over, rank)
		if len(over) == 0 {
			continue
		}
		if _, is := known[rank]; !is && (len(known) >= most || sc.work >= until) {
			break
		}
		alone := sc.alone(options, rank, known)
		if !fewer(alone.over, over) {
			continue
		}
		if t := sc.beyond(options, alone); fewer(t.over, best.over) {
			best = t
		}
	}
	return sc.comeTo(options, best)
}

// ranksAbove returns the priorities of Pods that wait, the highest first, without the lowest.
func (sc *scan) ranksAbove() (ranks []int32) {
	for _, p := range sc.waiting {
		ranks = append(ranks, corev1helpers.PodPriority(p))
	}
	slices.Sort(ranks)
	ranks = slices.Compact(ranks)
	slices.Reverse(ranks)
	return ranks[:len(ranks)-1]
}

// alone plans for the Pods of a priority and above as if no others waited, once in an attempt.
func (sc *scan) alone(options []*option, rank int32, known map[int32]tried) tried {
	if t, is := known[rank]; is {
		return t
	}
	all, saves := sc.waiting, sc.saves
	sc.waiting, _ = divided(all, func(p *corev1.Pod) bool { return corev1helpers.PodPriority(p) >= rank })
	sc.saves = false
	served := sc.ranking(options, known)
	known[rank] = sc.tried(options, served)
	sc.waiting, sc.saves = all, saves
	return known[rank]
}

// beyond plans for all Pods with as many Nodes of each option as a plan for some has, and what the limits leave beside these.
func (sc *scan) beyond(options []*option, some tried) tried {
	sc.pack(options)
	rest, total := slices.Clone(some.more), sc.total()
	for i, o := range options {
		o.more = rest[i]
		total = total.plus(sc.sizeOf(o.template.Node), int64(o.more))
	}
	for _, x := range sc.openings(options) {
		o := options[x.Offer]
		had := min(rest[x.Offer], int32(x.Count))
		rest[x.Offer] -= had
		one := sc.sizeOf(o.template.Node)
		count, _, _ := sc.room(total, one)
		more := min(int64(x.Count)-int64(had), count, int64(o.room)-int64(o.more))
		o.more += int32(more)
		total = total.plus(one, more)
	}
	served := sc.again(options)
	sc.saves = sc.saves || some.saves
	return sc.tried(options, served)
}

// from returns what is counted of a priority and above.
func from(counts map[int32]int, rank int32) map[int32]int {
	counts = maps.Clone(counts)
	maps.DeleteFunc(counts, func(r int32, _ int) bool { return r < rank })
	return counts
}

// fewer reports whether of two plans the first leaves fewer important Pods over.
func fewer(a, b map[int32]int) bool {
	ranks := slices.Concat(slices.Collect(maps.Keys(a)), slices.Collect(maps.Keys(b)))
	slices.Sort(ranks)
	for _, rank := range slices.Backward(ranks) {
		if a[rank] != b[rank] {
			return a[rank] < b[rank]
		}
	}
	return false
}
