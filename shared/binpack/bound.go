// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"cmp"
	"math"
	"slices"
)

// LowerBound returns a price that no packing of all the pieces can go below, however clever: what Pack could have
// saved at most. Pieces that no target admits are not counted. It proves itself by linear duality: if every piece is
// worth something, and no new bin can hold more worth than its price, then the new bins cost at least the worth of all
// pieces less the worth that fits into the bins that exist.
func LowerBound(items []Item, bins []Bin, types []Type, fits Fits) int64 {
	p := newProblem(items, bins, types, fits)
	return p.bound(newOffers(p, p.left), nil)
}

// Bound returns a price that no packing of the pieces that have a place can go below. It is LowerBound of those, found
// sooner where the result is the best there is.
func (r Result) Bound(items []Item, bins []Bin, types []Type, fits Fits) int64 {
	placed := slices.Clone(items)
	for i := range placed {
		placed[i].Count -= r.Left[i]
	}
	p := newProblem(placed, bins, types, fits)
	o := newOffers(p, p.left)
	paid := make([]int64, len(types)) // by class
	for _, pat := range r.Patterns {
		t := slices.Index(p.typeAt, pat.Type)
		paid[o.class[t]] += o.price(t) * int64(pat.Times)
	}
	return p.bound(o, paid)
}

// bound adds up the bounds of all parts; what was paid by class, if that is known, is enough.
func (p *problem) bound(o *offers, paid []int64) (sum int64) {
	for _, part := range o.parts(p.left) {
		o.addRoom(&part)
		enough := int64(math.MaxInt64)
		if paid != nil {
			enough = 0
			for _, c := range part.classes {
				enough += paid[c]
			}
		}
		sum = saturate(sum, o.boundOf(part, enough))
	}
	return sum
}

// part is a set of items with the classes of types that admit them; no other part shares one.
type part struct {
	items, classes []int
	free           [N]float64 // room in the bins that take a piece of any of the items
}

// parts divides the items that some type admits.
func (o *offers) parts(waiting []int) []part {
	root := o.roots()
	byRoot := map[int]int{}
	var parts []part
	for t := range o.types {
		k, ok := byRoot[root[t]]
		if !ok {
			k = len(parts)
			byRoot[root[t]] = k
			parts = append(parts, part{})
		}
		if o.class[t] == t {
			parts[k].classes = append(parts[k].classes, t)
		}
	}
	for i := range o.items {
		t := slices.IndexFunc(o.most, func(most []int32) bool { return most[i] > 0 })
		if t >= 0 && waiting[i] > 0 {
			k := byRoot[root[t]]
			parts[k].items = append(parts[k].items, i)
		}
	}
	return slices.DeleteFunc(parts, func(q part) bool { return len(q.items) == 0 })
}

// roots gives types that admit the same item the same number.
func (o *offers) roots() []int {
	root := make([]int, len(o.types))
	for t := range root {
		root[t] = t
	}
	for i := range o.items {
		first := -1
		for t := range o.types {
			switch {
			case o.most[t][i] == 0:
			case first < 0:
				first = top(root, t)
			default:
				root[top(root, t)] = first
			}
		}
	}
	for t := range root {
		root[t] = top(root, t)
	}
	return root
}

// addRoom adds up the bins that take a piece of any of the items.
func (o *offers) addRoom(q *part) {
	for b := range o.bins {
		if slices.ContainsFunc(q.items, func(i int) bool { return o.items[i].Size.In(o.bins[b].Free) > 0 && o.fits(i, b) > 0 }) {
			for r, v := range o.bins[b].Free {
				q.free[r] += float64(v)
			}
		}
	}
}

func top(root []int, t int) int {
	for root[t] != t {
		t = root[t]
	}
	return t
}

// boundOf is the best bound known for one part, rounded up to what its prices can add up to. The cheap proofs come
// first; nothing more is tried once one of them is enough.
func (o *offers) boundOf(q part, enough int64) int64 {
	if len(q.classes) == 0 {
		return 0
	}
	l, best := o.lot(q), 0.0
	l.kinds = l.alike()
	proofs := []func() float64{
		func() float64 { return o.countBound(q) },
		l.rateBound,
		l.columnBound,
	}
	for _, start := range o.weights {
		proofs = append(proofs, func() float64 { return l.climb(start) })
	}
	for _, proof := range proofs {
		best = max(best, proof())
		if int64(l.roundUp(best)) >= enough {
			break
		}
	}
	return int64(l.roundUp(best))
}

// roundUp returns the least that prices of the classes can add up to without being less than a bound.
func (l *lot) roundUp(bound float64) float64 {
	unit := int64(0)
	for _, t := range l.part.classes {
		unit = gcd(l.o.price(t), unit)
	}
	// Slightly less than the floating-point sum says: what is proven must hold.
	return math.Ceil(bound*(1-1e-9)/float64(unit)-1e-6) * float64(unit)
}

// rateBound is the bound that values by rates prove: by any rates at which no bin is worth more than its price.
func (l *lot) rateBound() float64 {
	need := l.need(l.waiting(l.o.left))
	for k, r := range l.axes {
		need[k] -= l.part.free[r]
	}
	w := l.rates(need, func(int) bool { return true })
	over := 1.0 // what rounding made of "no more than its price"
	for c := range l.room {
		over = max(over, w.worth(&l.room[c], len(l.axes))/l.price[c])
	}
	var sum float64
	for k := range l.axes {
		sum += need[k] * w[k] / over
	}
	return sum
}

// columnBound is the bound that the worth of items in the program of columns proves: it is the best that any worth
// proves where few items wait and every search comes to its end. What no search could rule out is allowed for.
func (l *lot) columnBound() float64 {
	left := l.waiting(l.o.left)
	if len(left) > fewItems {
		return 0
	}
	m := l.newMaster(left, func(int) bool { return true }, columnSteps)
	if m == nil {
		return 0
	}
	m.solve()
	over := m.over(10 * searchSteps)
	w := l.rates(l.need(left), func(int) bool { return true })
	sum, dearest := 0.0, 0.0 // dearest: what a rate's worth of room can hold at most
	for i, v := range m.worth {
		if v > 0 {
			sum += v * float64(left[i])
			dearest = max(dearest, v/w.worth(&l.size[i], len(l.axes)))
		}
	}
	free := l.compact(Vector{})
	for k, r := range l.axes {
		free[k] = int64(math.Ceil(l.part.free[r]))
	}
	if free != (Vector{}) {
		sum -= dearest * w.worth(&free, len(l.axes))
	}
	if math.IsNaN(sum) {
		return 0
	}
	return sum / over
}

// climb improves weights step by step; every step's bound is proven by itself.
func (l *lot) climb(w weights) float64 {
	best := l.weightBound(w)
	for step := 0.2; step > 0.01; step /= 2 {
		for moved := true; moved; {
			moved = false
			for r := range w {
				if !slices.ContainsFunc(l.kinds, func(k kind) bool { return k.capacity[r] > 0 }) {
					continue // its weight goes to the others whatever it is
				}
				for _, d := range []float64{step, -step} {
					v := w
					v[r] = max(0, v[r]+d)
					if b := l.weightBound(v); b > best+1e-6*math.Abs(best) {
						best, w, moved = b, v, true
					}
				}
			}
		}
	}
	return best
}

// weightBound is the bound that values under weights prove: a piece is worth the least that a class which takes it sells the
// resources for that it needs, when a bin's price is divided among its resources by weight.
func (l *lot) weightBound(w weights) (sum float64) {
	least := l.scratch.worth[:0]
	for range l.size {
		least = append(least, math.Inf(1))
	}
	l.scratch.worth = least
	var most rates // the highest price of a unit of each resource
	for _, k := range l.kinds {
		unit := l.unitPrices(k, w)
		for r := range most {
			most[r] = max(most[r], unit[r])
		}
		for _, i := range k.admits {
			least[i] = min(least[i], unit.worth(&l.size[i], len(l.axes)))
		}
	}
	for k, i := range l.part.items {
		sum += least[k] * float64(l.o.left[i])
	}
	for k, r := range l.axes {
		sum -= most[k] * l.part.free[r]
	}
	return sum
}

// kind is classes that differ in nothing but in what they admit.
type kind struct {
	capacity Vector
	price    float64
	admits   []int // items that one of them admits
}

// alike returns the kinds of the classes.
func (l *lot) alike() (kinds []kind) {
	for c, t := range l.part.classes {
		k := slices.IndexFunc(kinds, func(k kind) bool { return k.price == l.price[c] && k.capacity == l.o.types[t].Capacity })
		if k < 0 {
			k = len(kinds)
			kinds = append(kinds, kind{capacity: l.o.types[t].Capacity, price: l.price[c]})
		}
		for i, n := range l.most[c] {
			if n > 0 {
				kinds[k].admits = append(kinds[k].admits, i)
			}
		}
	}
	for k := range kinds {
		slices.Sort(kinds[k].admits)
		kinds[k].admits = slices.Compact(kinds[k].admits)
	}
	return kinds
}

// unitPrices divides the price of a kind's bin among its resources by weight, and returns what a unit of each costs then. The
// weights of resources that it does not have go to the others.
func (l *lot) unitPrices(of kind, w weights) (unit rates) {
	all := 0.0
	for r, c := range of.capacity {
		if c > 0 {
			all += w[r]
		}
	}
	for k, r := range l.axes {
		if c := of.capacity[r]; c > 0 && w[r] > 0 {
			unit[k] = of.price * w[r] / all / float64(c)
		}
	}
	return unit
}

// countBound is the bound that a single item proves: by how many of its pieces a bin can hold at most. It is the one
// that counts where few pieces share a bin, and exact where there is one item and one price.
func (o *offers) countBound(q part) float64 {
	best := 0.0
	for _, i := range q.items {
		n := o.left[i]
		for b := range o.bins {
			if fit := o.items[i].Size.In(o.bins[b].Free); fit > 0 {
				n -= max(0, min(fit, o.fits(i, b)))
			}
		}
		best = max(best, o.cheapest(q, i, n))
	}
	return best
}

// cheapest is the least price of n pieces of one item, as if bins could be bought in parts where prices differ.
func (o *offers) cheapest(q part, i, n int) float64 {
	if n <= 0 {
		return 0
	}
	one, kinds, least := math.Inf(1), 0, 0.0
	for _, t := range q.classes {
		if m := o.most[t][i]; m > 0 {
			one = min(one, float64(o.price(t))/float64(m))
			kinds++
			least = math.Ceil(float64(n)/float64(m)) * float64(o.price(t))
		}
	}
	if kinds == 1 {
		return least
	}
	return one * float64(n)
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return cmp.Or(a, 1)
}
