// SPDX-License-Identifier: Apache-2.0

// Package binpack packs equal pieces of many sizes into bins: those that exist first, then new ones at the lowest price
// it finds, with a proven bound on how much lower the price could be.
package binpack

import (
	"cmp"
	"math"
	"slices"
)

// Any is the answer of a Fits that sets no limit of its own.
const Any = math.MaxInt32

// Item is Count equal pieces. Cost grows with the number of items, hardly with their pieces.
type Item struct {
	Name     string // breaks ties; unique
	Size     Vector // of one piece
	Count    int
	Priority int32 // higher ones are served first where not all can be
	Apart    []int // items that share no bin with this one; it is enough that one of the two says so
}

// Bin is room that exists already.
type Bin struct {
	Name string // breaks ties; unique
	Free Vector
}

// Type is an offer of new bins.
type Type struct {
	Name     string // breaks ties; unique
	Capacity Vector
	Price    int64 // of one bin, in any unit; at least 1
	Limit    int   // how many there may be
	Weight   int64 // of one bin, in any unit, where there may be less of all types together; 0 is 1
}

// Fits returns how many pieces of an item may be in one bin of a target, whatever their sizes: 0 for none, Any for no
// limit. Targets are the bins, then the types. It must always give the same answer.
type Fits func(item, target int) int

// Held is how many pieces of an item a bin holds.
type Held struct{ Item, Count int }

// Put is how many pieces of an item went into a bin that existed.
type Put struct{ Bin, Item, Count int }

// Pattern is a number of new bins of one type that all hold the same.
type Pattern struct {
	Type, Times int
	Holds       []Held // sorted by item
}

// Result says where every piece went.
type Result struct {
	Puts     []Put     // sorted by bin, then item
	Patterns []Pattern // whoever wants fewer bins takes the first ones
	Left     []int     // by item: pieces without a place
	Work     int       // that it took, in steps of some nanoseconds: the same for the same arguments
}

// Price returns what the new bins cost.
func (r Result) Price(types []Type) int64 {
	var sum int64
	for _, p := range r.Patterns {
		sum = saturate(sum, Vector{types[p.Type].Price}.Times(p.Times)[0])
	}
	return sum
}

// Pack places items into bins, and what is left into new bins of the types, within their limits. It is deterministic,
// does not depend on the order of its arguments as long as names are unique, and leaves them untouched. No bin holds
// more than it has room for, more of an item than fits allows, or two items that are apart. Pieces of higher priority
// are left out only where no piece of lower priority has the room that they would need.
func Pack(items []Item, bins []Bin, types []Type, fits Fits) Result {
	return newProblem(items, bins, types, fits).pack()
}

// Try is Pack for who asks whether pieces find a place rather than what that costs: in a part of the work.
func Try(items []Item, bins []Bin, types []Type, fits Fits) Result {
	p := newProblem(items, bins, types, fits)
	p.brief = true
	return p.pack()
}

func (p *problem) pack() Result {
	p.fillBins()
	best := p.openWithin(p.left, p.limits())
	if total(best.left) > 0 {
		best = p.relieve(best)
		best.left = slices.Clone(best.left)
		best.patterns = p.topUp(best.patterns, best.left) // what either way of packing left room for
	}
	best.patterns = p.ordered(best.patterns)
	return p.result(best)
}

// ordered puts the bins first that hold, for their weight, the most pieces of the highest priority, then of the next ones, then those
// that hold the most for their price: of whatever part they are, fewer bins leave out the fewest pieces that are important.
func (p *problem) ordered(patterns []Pattern) []Pattern {
	ref := reference(nil, p.types)
	level := make([]int, len(p.items)) // how many priorities are higher
	for i := 1; i < len(p.items); i++ {
		if level[i] = level[i-1]; p.items[i].Priority != p.items[i-1].Priority {
			level[i]++
		}
	}
	levels := 0
	if len(level) > 0 {
		levels = level[len(level)-1] + 1
	}
	serves, worth := make([][]float64, len(patterns)), make([]float64, len(patterns))
	for k, pat := range patterns {
		serves[k] = make([]float64, levels)
		for _, h := range pat.Holds {
			serves[k][level[h.Item]] += float64(h.Count) / float64(max(1, p.types[pat.Type].Weight))
			worth[k] += float64(h.Count) * share(p.items[h.Item].Size, ref) / float64(p.price(pat.Type))
		}
	}
	return pick(patterns, sortedBy(len(patterns), func(a, b int) int {
		return cmp.Or(slices.Compare(serves[b], serves[a]), cmp.Compare(worth[b], worth[a]))
	}))
}

// problem is the arguments of Pack in an order of its own, so that theirs does not matter.
type problem struct {
	items []Item
	bins  []Bin
	types []Type
	fits  Fits // by index here

	itemAt, binAt, typeAt []int     // index of the caller
	apart                 [][]int32 // symmetric; by item
	left                  []int     // pieces that wait for a place
	puts                  []Put
	known                 []int32 // by item, type: what mostIn answers; -1: nobody asked

	brief bool // columns are looked for briefly
	work  *int // that was done

	of *problem // that has all the items; nil: this one
	in []int    // index there, by item
}

func newProblem(items []Item, bins []Bin, types []Type, fits Fits) *problem {
	p := &problem{work: new(int)}
	ref := reference(bins, types)
	p.itemAt = sortedBy(len(items), func(a, b int) int {
		x, y := &items[a], &items[b]
		return cmp.Or(cmp.Compare(y.Priority, x.Priority), cmp.Compare(share(y.Size, ref), share(x.Size, ref)), cmp.Compare(x.Name, y.Name))
	})
	p.binAt = sortedBy(len(bins), func(a, b int) int { return cmp.Compare(bins[a].Name, bins[b].Name) })
	p.typeAt = sortedBy(len(types), func(a, b int) int { return cmp.Compare(types[a].Name, types[b].Name) })
	p.items, p.bins, p.types = pick(items, p.itemAt), pick(bins, p.binAt), pick(types, p.typeAt)
	p.fits = func(i, t int) int {
		if t < len(bins) {
			return fits(p.itemAt[i], p.binAt[t])
		}
		return fits(p.itemAt[i], len(bins)+p.typeAt[t-len(bins)])
	}
	p.apart = symmetric(items, p.itemAt)
	p.left = make([]int, len(items))
	for i := range p.items {
		p.left[i] = max(0, p.items[i].Count)
	}
	return p
}

// fillBins places what it can into the bins that exist: of every priority who can have no new one first, then the greatest. Whoever
// finds none has those make room that can go elsewhere.
func (p *problem) fillBins() {
	if len(p.bins) == 0 {
		return
	}
	choices := make([]int, len(p.items)) // 1: some type takes it
	for i := range p.items {
		for t := 0; t < len(p.types) && choices[i] == 0; t++ {
			if p.types[t].Limit > 0 && p.mostIn(i, t) > 0 {
				choices[i] = 1
			}
		}
	}
	order := sortedBy(len(p.items), func(i, j int) int {
		return cmp.Or(cmp.Compare(p.items[j].Priority, p.items[i].Priority), cmp.Compare(choices[i], choices[j]))
	})
	*p.work += len(p.bins) * (20 + len(p.items)/2)
	r := rearrange(newSpace(p.items, p.bins, p.fits, p.apart))
	s, left := r.Space, r.fill(order, p.left)
	if r.moved && s.passedOver(left) { // what was moved left room that lesser ones took
		s, left = newSpace(p.items, p.bins, p.fits, p.apart), slices.Clone(p.left)
		for _, i := range order {
			left[i] -= s.Put(i, left[i])
		}
	}
	p.left = left
	for b := range p.bins {
		for _, h := range s.Holds(b) {
			p.puts = append(p.puts, Put{Bin: b, Item: h.Item, Count: h.Count})
		}
	}
}

// result speaks of the caller's indices again.
func (p *problem) result(s solution) Result {
	r := Result{Left: make([]int, len(p.items)), Work: *p.work}
	for i, n := range s.left {
		r.Left[p.itemAt[i]] = n
	}
	for _, put := range p.puts {
		r.Puts = append(r.Puts, Put{Bin: p.binAt[put.Bin], Item: p.itemAt[put.Item], Count: put.Count})
	}
	slices.SortFunc(r.Puts, func(a, b Put) int { return cmp.Or(cmp.Compare(a.Bin, b.Bin), cmp.Compare(a.Item, b.Item)) })
	for _, pat := range s.patterns {
		holds := make([]Held, len(pat.Holds))
		for k, h := range pat.Holds {
			holds[k] = Held{Item: p.itemAt[h.Item], Count: h.Count}
		}
		slices.SortFunc(holds, func(a, b Held) int { return cmp.Compare(a.Item, b.Item) })
		r.Patterns = append(r.Patterns, Pattern{Type: p.typeAt[pat.Type], Times: pat.Times, Holds: holds})
	}
	return r
}

// reference is the most that any target offers of each resource.
func reference(bins []Bin, types []Type) Vector {
	var ref Vector
	for i := range bins {
		for r, v := range bins[i].Free {
			ref[r] = max(ref[r], v)
		}
	}
	for i := range types {
		for r, v := range types[i].Capacity {
			ref[r] = max(ref[r], v)
		}
	}
	return ref
}

// share is how much of ref a size takes, added up over the resources (SPEC C18).
func share(size, ref Vector) float64 {
	var sum float64
	for r := range size {
		if size[r] > 0 && ref[r] > 0 {
			sum += float64(size[r]) / float64(ref[r])
		}
	}
	return sum
}

func sortedBy(n int, compare func(a, b int) int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, compare)
	return order
}

func pick[T any](all []T, order []int) []T {
	out := make([]T, len(order))
	for i, at := range order {
		out[i] = all[at]
	}
	return out
}

// symmetric returns which items are apart, by sorted index. Indices that name no item are ignored.
func symmetric(items []Item, order []int) [][]int32 {
	at := make([]int32, len(items))
	for i, o := range order {
		at[o] = int32(i)
	}
	apart := make([][]int32, len(items))
	for o := range items {
		for _, q := range items[o].Apart {
			if q < 0 || q >= len(items) || q == o {
				continue
			}
			apart[at[o]] = append(apart[at[o]], at[q])
			apart[at[q]] = append(apart[at[q]], at[o])
		}
	}
	for i := range apart {
		slices.Sort(apart[i])
		apart[i] = slices.Compact(apart[i])
	}
	return apart
}
