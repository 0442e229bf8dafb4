// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// outcome is what an attempt at a plan came to, beside what it adds to every option.
type outcome struct {
	placement scheduling.Placement
	packed    []*corev1.Pod         // of those that wait, the ones that the placement is for
	kept      map[int][]*corev1.Pod // by place: Pods that were counted on and that the placement is beside
	onTheWay  int                   // Pods that are not packed because they are
	helped    []int                 // by shape of the placement: Pods that new Nodes are for
	planned   size                  // of the cluster with the Nodes of the plan
}

// tried is a plan that could come true.
type tried struct {
	outcome
	served map[*group][]*corev1.Pod
	more   []int32       // by option
	over   map[int32]int // Pods left over, by priority
	saves  bool          // it is of Nodes that take little of what is limited
}

// attempt is one try at a plan. The packing looks for the cheapest Nodes and knows nothing of limits that groups share: where
// these cut it short, it looks for those that take the least of what is limited as well, and of the two plans the one is kept
// that leaves fewer important Pods over (SPEC C9, C30). Once that is the sparing one, so are all further plans of the scan.
func (sc *scan) attempt(options []*option) map[*group][]*corev1.Pod {
	return sc.ranking(options, map[int32]tried{})
}

// ranking makes a plan, and sees to it that important Pods are served first where limits cut it short. What is known of plans for
// these alone is added to.
func (sc *scan) ranking(options []*option, known map[int32]tried) map[*group][]*corev1.Pod {
	served, cut := sc.cheapOrSparing(options)
	if !cut || !sc.ranksPods() {
		return served
	}
	return sc.preferring(options, sc.byRank(options, served, known))
}

// preferring exchanges Nodes of a plan for those of sets with a higher priority that have room left, and keeps that unless it leaves more
// important Pods over: what limits cut away is not to be what people prefer (SPEC B113). All are exchanged at once. In the plan that comes
// true what is still there of each set is exchanged for Nodes of each higher one then, the lowest priority first: as many as it can do
// without.
func (sc *scan) preferring(options []*option, served map[*group][]*corev1.Pod) map[*group][]*corev1.Pod {
	if !sc.ranked {
		return served
	}
	best, torn, until := sc.tried(options, served), len(sc.torn()), sc.work+mostWork/4
	try := func() {
		served := sc.again(options)
		if fewer(best.over, sc.leftOver()) || len(sc.torn()) > torn {
			sc.comeTo(options, best)
		} else {
			best = sc.tried(options, served)
		}
	}
	sorted := slices.SortedStableFunc(slices.Values(options), func(a, b *option) int { return cmp.Compare(a.rank, b.rank) })
	moved := false
	for l, low := range slices.Backward(sorted) {
		moved = exchange(low, sorted[:l], low.more) || moved
	}
	if !moved {
		return served
	}
	try()
	if sc.trying { // its work is that of the tries
		return sc.comeTo(options, best)
	}
	for l, low := range slices.Backward(sorted) {
		for h := range l {
			for n := low.more; n > 0 && sc.work < until && exchange(low, sorted[h:h+1], n); n = min(n-max(1, n/2), low.more) {
				try()
			}
		}
	}
	return sc.comeTo(options, best)
}

// exchange gives options of a higher priority so many of an option's Nodes, as far as they have room, and reports whether that is any.
func exchange(low *option, higher []*option, most int32) (is bool) {
	for _, high := range higher {
		if n := min(most, low.more, int32(high.room)-high.more); high.rank < low.rank && n > 0 {
			low.more, high.more, most, is = low.more-n, high.more+n, most-n, true
		}
	}
	return is
}

// cheapOrSparing makes a plan of the cheapest Nodes, or of those that take little of what is limited, and reports whether the limits
// cut it short.
func (sc *scan) cheapOrSparing(options []*option) (served map[*group][]*corev1.Pod, cut bool) {
	if sc.saves {
		return sc.sparing(options)
	}
	served, cut = sc.within(options)
	if !cut || !differ(options) {
		return served, cut
	}
	cheap := sc.tried(options, served)
	served, _ = sc.sparing(options)
	if sc.saves = fewer(sc.leftOver(), cheap.over); sc.saves {
		return served, true
	}
	return sc.comeTo(options, cheap), true
}

// sparing makes a plan of Nodes that take little of what is limited, whatever they cost: each priority of groups of its own Nodes.
func (sc *scan) sparing(options []*option) (served map[*group][]*corev1.Pod, cut bool) {
	prices := weigh(options)
	served, cut = sc.within(options)
	for i, o := range options {
		o.offer.Price = prices[i]
	}
	return served, cut
}

// tried returns the plan that was just made.
func (sc *scan) tried(options []*option, served map[*group][]*corev1.Pod) tried {
	t := tried{outcome: sc.outcome, served: served, over: sc.leftOver(), saves: sc.saves}
	for _, o := range options {
		t.more = append(t.more, o.more)
	}
	return t
}

// comeTo makes a plan that was tried the one that comes true.
func (sc *scan) comeTo(options []*option, t tried) map[*group][]*corev1.Pod {
	sc.outcome, sc.saves = t.outcome, t.saves
	for i, o := range options {
		o.more = t.more[i]
	}
	return t.served
}

// cheapen makes a sparing plan cheaper: it leaves no more Pods over, with as many of the Nodes that the cheapest plan has more of as the
// limits allow.
func (sc *scan) cheapen(options []*option, served map[*group][]*corev1.Pod) map[*group][]*corev1.Pod {
	if !sc.saves {
		return served
	}
	sparing := sc.tried(options, served)
	best := sparing
	serves := func() (t tried, enough bool) {
		served, _ := sc.within(options)
		t = sc.tried(options, served)
		enough = !fewer(sparing.over, t.over) && len(sc.torn()) == 0
		if enough && (fewer(t.over, best.over) || t.price(options) < best.price(options)) {
			best = t
		}
		return t, enough
	}
	cheap, enough := serves()
	span := int32(0)
	for i := range options {
		span = max(span, cheap.more[i]-sparing.more[i])
	}
	until := sc.work + mostWork/2
	for low, high := int32(0), span; !enough && high-low > 1+span/32 && sc.work < until; {
		middle := (low + high) / 2
		for i, o := range options {
			if d := cheap.more[i] - sparing.more[i]; d > 0 || sparing.more[i] == 0 {
				o.offer.Limit = int(sparing.more[i]) + int(d)*int(middle)/int(span)
			}
		}
		if _, is := serves(); is {
			low = middle
		} else {
			high = middle
		}
	}
	for _, o := range options {
		o.offer.Limit = o.room
	}
	return sc.comeTo(options, best)
}

// price is what the Nodes of a plan cost together, in what the expanders count.
func (t tried) price(options []*option) (sum int64) {
	for i, o := range options {
		sum += int64(t.more[i]) * o.offer.Price
	}
	return sum
}

// within packs the Pods and takes what the limits leave of that, and reports whether they cut it short. Where they do, and
// Pods of several priorities wait, these are packed again into no more Nodes than there may be, so that nobody has a place
// that somebody more important could have had.
func (sc *scan) within(options []*option) (served map[*group][]*corev1.Pod, cut bool) {
	sc.pack(options)
	if sc.full() {
		return nil, false
	}
	served, cut = sc.choose(options)
	if !cut || !sc.ranksPods() {
		return served, cut
	}
	first := sc.tried(options, served)
	served = sc.again(options)
	if fewer(first.over, sc.leftOver()) {
		return sc.comeTo(options, first), true
	}
	return served, true
}

// again packs the Pods into no more Nodes of each option than were chosen.
func (sc *scan) again(options []*option) map[*group][]*corev1.Pod {
	for _, o := range options {
		o.offer.Limit = int(o.more)
	}
	sc.pack(options)
	served, _ := sc.choose(options)
	for _, o := range options {
		o.offer.Limit = o.room
	}
	return served
}

// pack places the Pods anew, with nothing chosen.
func (sc *scan) pack(options []*option) {
	for _, o := range options {
		o.more = 0
	}
	sc.placement = sc.place(options)
	sc.helped = make([]int, len(sc.placement.Shapes))
}

// ranksPods reports that Pods of several priorities wait. It is of no use to a try where nobody stands for himself: who is left out
// to the benefit of another tears his group apart.
func (sc *scan) ranksPods() bool {
	if sc.trying && !slices.ContainsFunc(sc.packed, func(p *corev1.Pod) bool { return podGroupOf(p) == "" || sc.spares[podGroupOf(p)] > 0 }) {
		return false
	}
	return slices.ContainsFunc(sc.waiting, func(p *corev1.Pod) bool {
		return corev1helpers.PodPriority(p) != corev1helpers.PodPriority(sc.waiting[0])
	})
}

// differ reports that options of a rank take another part of what is limited than of the money: only then do other Nodes come where they are
// weighed.
func differ(options []*option) bool {
	first := map[int64]scheduling.Offer{}
	return slices.ContainsFunc(options, func(o *option) bool {
		of, is := first[o.rank]
		if !is {
			first[o.rank], of = o.offer, o.offer
		}
		return float64(o.offer.Price)*float64(of.Weight) != float64(of.Price)*float64(o.offer.Weight)
	})
}

// weigh prices options by what a Node takes of what the limits leave, and returns the prices that they had; these decide between options
// that take as much. A priority decides before that, as it does before prices (SPEC B113).
func weigh(options []*option) (prices []int64) {
	const fine = 1000
	dearest := map[int64]float64{}
	for _, o := range options {
		prices = append(prices, o.offer.Price)
		dearest[o.rank] = max(dearest[o.rank], float64(o.offer.Price), 1)
	}
	rank, weights := make([]int64, len(options)), make([]int64, len(options))
	for i, o := range options {
		rank[i], weights[i] = o.rank, int64(float64(o.offer.Weight)*(fine+float64(o.offer.Price)/dearest[o.rank]))
	}
	combine(options, rank, weights, make([]int64, len(options)))
	return prices
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
