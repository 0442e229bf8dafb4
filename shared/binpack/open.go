// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"cmp"
	"slices"
)

// solution is a way to open new bins.
type solution struct {
	patterns []Pattern
	left     []int
	price    int64
	bins     int
}

// better prefers fewer pieces without a place, then the lower price, then fewer bins.
func (s solution) better(t solution) bool {
	return cmp.Or(cmp.Compare(total(s.left), total(t.left)), cmp.Compare(s.price, t.price), cmp.Compare(s.bins, t.bins)) < 0
}

// limits returns how many bins of each type there may be.
func (p *problem) limits() []int {
	limits := make([]int, len(p.types))
	for t := range p.types {
		limits[t] = p.types[t].Limit
	}
	return limits
}

func total(left []int) (n int) {
	for _, l := range left {
		n += l
	}
	return n
}

// openWithin places the waiting pieces into new bins: again and again the pattern of most worth for its price, as many times
// as it can be repeated. What a piece is worth follows from weights on the resources; several are tried.
func (p *problem) openWithin(waiting, limits []int) solution {
	q, few := p.only(waiting)
	o := newOffers(q, few)
	return p.whole(q, o.improve(o.firstOf(few, limits), few, limits))
}

// firstOf is the best that the greedy finds.
func (o *offers) firstOf(waiting, limits []int) solution {
	best := solution{left: slices.Clone(waiting)}
	for _, w := range o.weights[:min(valuations, len(o.weights))] {
		s := o.greedy(o.values(w), waiting, limits)
		o.shrink(&s, limits)
		if s.better(best) {
			best = s
		}
	}
	return best
}

// topUp fills the room that opened bins have left with waiting pieces, and counts those down.
func (p *problem) topUp(patterns []Pattern, waiting []int) []Pattern {
	o := p.opened(patterns)
	o.fill(waiting)
	return o.patterns()
}

// opened is bins that were opened, one by one, so that what they have left can be filled.
type opened struct {
	*Space
	types []int // by bin
	p     *problem
}

func (p *problem) opened(patterns []Pattern) *opened {
	o := &opened{p: p}
	o.Space = newSpace(p.items, nil, func(i, b int) int { return p.fits(i, len(p.bins)+o.types[b]) }, p.apart)
	o.add(patterns)
	return o
}

// add opens bins that hold what patterns say.
func (o *opened) add(patterns []Pattern) {
	for _, pat := range patterns {
		for range pat.Times {
			b := o.Space.add(Bin{Free: o.p.types[pat.Type].Capacity})
			o.types = append(o.types, pat.Type)
			for _, h := range pat.Holds {
				o.put(h.Item, b, h.Count)
			}
		}
	}
}

// fill puts waiting pieces into what is left, and counts those down.
func (o *opened) fill(waiting []int) {
	for i, n := range waiting {
		if n > 0 {
			waiting[i] -= o.Put(i, n)
		}
	}
}

// patterns are the bins in the order in which they were opened.
func (o *opened) patterns() (all []Pattern) {
	for b, t := range o.types {
		last := len(all) - 1
		if last >= 0 && all[last].Type == t && slices.Equal(all[last].Holds, o.Holds(b)) {
			all[last].Times++
			continue
		}
		all = append(all, Pattern{Type: t, Times: 1, Holds: o.Holds(b)})
	}
	return all
}

// greedy opens bins until nothing waits or nothing fits.
func (o *offers) greedy(worth []float64, waiting, limits []int) solution {
	s := solution{left: slices.Clone(waiting)}
	limits = slices.Clone(limits)
	orders := o.orders(worth)
	cache := make([]candidate, len(o.types))
	for {
		best := -1
		for c := range o.types {
			if o.class[c] != c || !o.available(c, limits) {
				continue
			}
			if !cache[c].possible(s.left) {
				cache[c] = o.fill(c, worth, s.left, orders[c])
			}
			if cache[c].worth > 0 && (best < 0 || cache[c].ratio > cache[best].ratio*(1+1e-9)) {
				best = c
			}
		}
		if best < 0 {
			return s
		}
		o.take(&s, best, cache[best].holds, limits)
	}
}

// candidate is the best pattern known for one type, while enough pieces wait for it.
type candidate struct {
	holds        []Held
	worth, ratio float64
	known        bool
}

func (c candidate) possible(left []int) bool {
	return c.known && !slices.ContainsFunc(c.holds, func(h Held) bool { return left[h.Item] < h.Count })
}

func (o *offers) available(class int, limits []int) bool {
	return slices.ContainsFunc(o.members[class], func(t int) bool { return limits[t] > 0 })
}

// take opens bins of a class that hold the pattern, as many as it can be repeated within the limits.
func (o *offers) take(s *solution, class int, holds []Held, limits []int) {
	times := Any
	for _, h := range holds {
		times = min(times, s.left[h.Item]/h.Count)
	}
	for _, t := range o.members[class] {
		n := min(times, limits[t])
		if n <= 0 {
			continue
		}
		limits[t] -= n
		times -= n
		s.bins += n
		s.price = saturate(s.price, Vector{o.price(t)}.Times(n)[0])
		for _, h := range holds {
			s.left[h.Item] -= n * h.Count
		}
		s.patterns = append(s.patterns, Pattern{Type: t, Times: n, Holds: holds})
	}
}

// fill returns the best pattern for one type that any of the orders gives. It takes items of which no piece is left off the orders.
func (o *offers) fill(t int, worth []float64, left []int, orders [][]int32) candidate {
	best := candidate{known: true}
	kept, holds := o.scratch[0][:0], o.scratch[1]
	for k, order := range orders {
		free := o.types[t].Capacity
		var v float64
		waiting := order[:0]
		holds = holds[:0]
		for at, i := range order {
			*o.work++
			if left[i] == 0 {
				continue
			}
			waiting = append(waiting, i)
			size := &o.items[i].Size
			n := size.upTo(min(left[i], int(o.most[t][i])), &free)
			if n == 0 || apartFromAny(holds, o.apart[i]) {
				continue
			}
			for r := range free {
				free[r] -= int64(n) * size[r]
			}
			v += float64(n) * worth[i]
			holds = append(holds, Held{Item: int(i), Count: n})
			if o.least[t].upTo(1, &free) == 0 { // full
				waiting = append(waiting, order[at+1:]...)
				break
			}
		}
		orders[k] = waiting
		if v > best.worth*(1+1e-9) {
			best.worth, kept, holds = v, holds, kept
		}
	}
	o.scratch, best.holds = [2][]Held{kept, holds}, slices.Clone(kept)
	best.ratio = best.worth / float64(o.price(t))
	return best
}

// apartFromAny is apartFrom for holds in any order.
func apartFromAny(holds []Held, apart []int32) bool {
	return len(apart) > 0 && apartFrom(holds, apart)
}

// shrink moves patterns to the cheapest type that holds them too.
func (o *offers) shrink(s *solution, limits []int) {
	limits = slices.Clone(limits)
	for _, pat := range s.patterns {
		limits[pat.Type] -= pat.Times
	}
	for k := range s.patterns {
		pat := &s.patterns[k]
		best := pat.Type
		for t := range o.types {
			if o.price(t) < o.price(best) && limits[t] >= pat.Times && o.holds(t, pat.Holds) {
				best = t
			}
		}
		if best != pat.Type {
			limits[pat.Type] += pat.Times
			limits[best] -= pat.Times
			s.price -= int64(pat.Times) * (o.price(pat.Type) - o.price(best))
			pat.Type = best
		}
	}
}

// holds reports whether a bin of type t can hold the pieces.
func (o *offers) holds(t int, pieces []Held) bool {
	free := o.types[t].Capacity
	for _, h := range pieces {
		if h.Count > int(o.most[t][h.Item]) || o.items[h.Item].Size.In(free) < h.Count {
			return false
		}
		free = free.Minus(o.items[h.Item].Size.Times(h.Count))
	}
	return true
}
