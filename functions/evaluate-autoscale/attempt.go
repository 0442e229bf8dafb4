// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// outcome is what an attempt at a plan came to, beside what it adds to every option.
type outcome struct {
	placement scheduling.Placement
	weighed   bool                  // it compared what Nodes take of the limits, not what they cost
	packed    []*corev1.Pod         // of those that wait, the ones that the placement is for
	kept      map[int][]*corev1.Pod // by place: Pods that were counted on and that the placement is beside
	onTheWay  int                   // Pods that are not packed because they are
	helped    []int                 // by shape of the placement: Pods that new Nodes are for
	planned   size                  // of the cluster with the Nodes of the plan
}

// attempt is one try at a plan. The packing looks for the cheapest Nodes and knows nothing of limits that groups share: where
// these cut it short, it looks for those that take the least of what is limited as well, and of the two plans comes true the one
// that leaves fewer important Pods over (SPEC C9, C30).
func (sc *scan) attempt(options []*option) map[*group][]*corev1.Pod {
	sc.packings, sc.weighed = 0, false
	notes := len(sc.notes)
	served, cut := sc.within(options)
	if !cut || !differ(options) {
		return served
	}
	first, over, told := sc.outcome, sc.leftOver(), slices.Clone(sc.notes[notes:])
	more, prices := make([]int32, len(options)), make([]int64, len(options))
	for i, o := range options {
		more[i], prices[i] = o.more, o.offer.Price
	}
	sc.notes = sc.notes[:notes]
	weigh(options)
	sc.weighed = true
	other, _ := sc.within(options)
	for i, o := range options {
		o.offer.Price = prices[i]
	}
	if fewer(sc.leftOver(), over) {
		return other
	}
	sc.outcome, sc.notes = first, append(sc.notes[:notes], told...)
	for i, o := range options {
		o.more = more[i]
	}
	return served
}

// within packs the Pods and takes what the limits leave of that, and reports whether they cut it short. Where they do, and
// Pods of several priorities wait, these are packed again into no more Nodes than there may be, so that nobody has a place
// that somebody more important could have had.
func (sc *scan) within(options []*option) (served map[*group][]*corev1.Pod, cut bool) {
	sc.pack(options)
	if sc.full() {
		return nil, false
	}
	notes := len(sc.notes)
	served, cut = sc.choose(options)
	if !cut || !sc.ranksPods() {
		return served, cut
	}
	sc.notes = sc.notes[:notes]
	for _, o := range options {
		o.offer.Limit = int(o.more)
	}
	sc.pack(options)
	served, _ = sc.choose(options)
	for _, o := range options {
		o.offer.Limit = o.room
	}
	return served, true
}

// pack places the Pods anew, with nothing chosen.
func (sc *scan) pack(options []*option) {
	for _, o := range options {
		o.more = 0
	}
	sc.placement = sc.place(options)
	sc.helped = make([]int, len(sc.placement.Shapes))
}

// ranksPods reports that Pods of several priorities wait.
func (sc *scan) ranksPods() bool {
	return slices.ContainsFunc(sc.waiting, func(p *corev1.Pod) bool {
		return corev1helpers.PodPriority(p) != corev1helpers.PodPriority(sc.waiting[0])
	})
}

// differ reports that options take another part of what is limited than of the money: only then do other Nodes come where they are weighed.
func differ(options []*option) bool {
	return slices.ContainsFunc(options, func(o *option) bool {
		return float64(o.offer.Price)*float64(options[0].offer.Weight) != float64(options[0].offer.Price)*float64(o.offer.Weight)
	})
}

// weigh prices options by what a Node takes of what the limits leave; their prices decide between those that take as much.
func weigh(options []*option) {
	const fine = 1000
	dearest := 1.0
	for _, o := range options {
		dearest = max(dearest, float64(o.offer.Price))
	}
	for _, o := range options {
		o.offer.Price = int64(float64(o.offer.Weight) * (fine + float64(o.offer.Price)/dearest))
	}
}

// leftOver counts, by priority, the Pods that the plan leaves without a place; of a group that it tears apart, all that are packed.
func (sc *scan) leftOver() map[int32]int {
	torn, left := sc.missing(), map[int32]int{}
	for i, shape := range sc.placement.Shapes {
		placed := sc.placement.Fit[i] + sc.helped[i]
		for k, p := range shape.Pods {
			if k >= placed || torn[podGroupOf(p)].pods > 0 {
				left[corev1helpers.PodPriority(p)]++
			}
		}
	}
	return left
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
