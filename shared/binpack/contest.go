// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"cmp"
	"math"
	"slices"
)

// How often a part is packed anew: of few items, and of many, where once takes long.
const (
	roundsOfFew  = 4
	roundsOfMany = 2
)

// contest is a part of which pieces are left over, because there may be no more bins of the types that take them. Others
// may have taken these bins although they have a choice, so that the part is packed anew in stages: who was left over
// goes first, and into the types last that somebody was left over for. Who is left over then comes before him the next time.
type contest struct {
	*offers
	waiting, limits []int // of the part alone
	urgent          []int // by item: how often pieces were left over
	wanted          []int // by type: how often pieces were left over that it takes
	joint           int32 // priorities from this one up are packed as one
}

// relieve packs the parts anew of which pieces are left over.
func (p *problem) relieve(s solution) solution {
	rounds := roundsOfFew
	if p.brief {
		rounds = 1
	}
	p.brief = true
	o := newOffers(p, p.left)
	return o.byPart(s, p.left, func(q part, was solution) solution {
		if total(was.left) == 0 {
			return was
		}
		return o.contest(q).resolve(q, was, rounds)
	})
}

func (o *offers) contest(q part) *contest {
	c := &contest{offers: o, waiting: make([]int, len(o.items)), limits: make([]int, len(o.types)), urgent: make([]int, len(o.items)), wanted: make([]int, len(o.types)), joint: math.MaxInt32}
	for _, i := range q.items {
		c.waiting[i] = o.left[i]
	}
	for _, class := range q.classes {
		for _, t := range o.members[class] {
			c.limits[t] = o.types[t].Limit
		}
	}
	return c
}

// resolve returns the best solution of the part that it finds; was knows of no priorities.
func (c *contest) resolve(q part, was solution, rounds int) solution {
	best := was
	if slices.ContainsFunc(q.items, func(i int) bool { return c.items[i].Priority != c.items[q.items[0]].Priority }) {
		best = c.together(q, was, rounds)
	}
	if len(q.items) > fewItems {
		rounds = min(rounds, roundsOfMany)
	}
	for last := best; rounds > 0 && c.disputed(best); rounds-- {
		for i, n := range last.left {
			if n == 0 {
				continue
			}
			c.urgent[i]++
			for t := range c.types {
				if c.most[t][i] > 0 {
					c.wanted[t]++
				}
			}
		}
		if last = c.open(); c.prefers(last, best) {
			best = last
		}
	}
	return best
}

// together packs one priority after the other. The bins of the highest may leave less to the next ones than others would that serve
// both: where pieces of one are left over, it is tried to pack it together with those above it. What comes of that counts where nobody
// has the room of somebody more important.
func (c *contest) together(q part, was solution, tries int) solution {
	best := c.open()
	if len(q.items) > fewItems {
		tries = 0
	}
	consider := func(s solution) {
		if c.prefers(s, best) && !c.opened(s.patterns).passedOver(s.left) {
			best = s
		}
	}
	for k, i := range q.items[1:] {
		rank := c.items[i].Priority
		left := slices.ContainsFunc(q.items, func(j int) bool { return c.items[j].Priority >= rank && best.left[j] > 0 })
		if rank == c.items[q.items[k]].Priority || !left {
			continue
		}
		if tries--; tries < 0 {
			break
		}
		c.joint = rank
		consider(c.open())
	}
	c.joint = math.MaxInt32
	consider(was)
	return best
}

// disputed reports whether others have a place in a bin that takes pieces that are left over.
func (o *offers) disputed(s solution) bool {
	for i, n := range s.left {
		if n > 0 && slices.ContainsFunc(s.patterns, func(pat Pattern) bool {
			return o.most[pat.Type][i] > 0 && slices.ContainsFunc(pat.Holds, func(h Held) bool { return h.Item != i })
		}) {
			return true
		}
	}
	return false
}

// prefers reports whether s is better than t: fewer pieces of the highest priority in which they differ are left over;
// where they differ in none, what better says.
func (c *contest) prefers(s, t solution) bool {
	for from := 0; from < len(c.items); {
		more, to := 0, from
		for ; to < len(c.items) && c.items[to].Priority == c.items[from].Priority; to++ {
			more += s.left[to] - t.left[to]
		}
		if more != 0 {
			return more < 0
		}
		from = to
	}
	return s.better(t)
}

// open packs the part in stages: priorities one after the other, so that limits cut off the lowest, and of each the most
// urgent first. What bins have left, later stages fill first.
func (c *contest) open() solution {
	sum, bins := solution{left: slices.Clone(c.waiting)}, c.opened(nil)
	limits := slices.Clone(c.limits)
	order := sortedBy(len(c.items), c.compare)
	for len(order) > 0 {
		own := slices.IndexFunc(order, func(i int) bool { return c.compare(order[0], i) != 0 })
		if own < 0 {
			own = len(order)
		}
		waiting := make([]int, len(c.items))
		for _, i := range order[:own] {
			waiting[i] = sum.left[i]
		}
		bins.fill(waiting)
		waiting = c.openBy(bins, waiting, limits)
		bins.fill(waiting) // before lesser ones have the room
		for _, i := range order[:own] {
			sum.left[i] = waiting[i]
		}
		order = order[own:]
	}
	sum.patterns = bins.patterns()
	for _, pat := range sum.patterns {
		sum.bins += pat.Times
		sum.price = saturate(sum.price, Vector{c.price(pat.Type)}.Times(pat.Times)[0])
	}
	return sum
}

// compare puts the most urgent of the highest priority first.
func (c *contest) compare(i, j int) int {
	return cmp.Or(cmp.Compare(min(c.items[j].Priority, c.joint), min(c.items[i].Priority, c.joint)), cmp.Compare(c.urgent[j], c.urgent[i]))
}

// openBy opens bins for what waits, of the types first that are wanted least, and returns what still waits. It takes the
// bins off the limits.
func (c *contest) openBy(bins *opened, waiting, limits []int) []int {
	for _, most := range slices.Compact(slices.Sorted(slices.Values(c.wanted))) {
		if total(waiting) == 0 {
			break
		}
		within := slices.Clone(limits)
		for t, n := range c.wanted {
			if n > most {
				within[t] = 0
			}
		}
		s := c.openWithin(waiting, within)
		for _, pat := range s.patterns {
			limits[pat.Type] -= pat.Times
		}
		bins.add(s.patterns)
		waiting = s.left
	}
	return waiting
}
