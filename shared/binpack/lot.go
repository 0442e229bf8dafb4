// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"cmp"
	"slices"
)

// lot is the waiting items of one part with the classes of types that admit them, in a form that is quick to pack:
// only the resources that somebody needs, items and classes by their place in the part. It counts its own steps, so
// that effort can be bounded without looking at a clock. It is not safe for concurrent use.
type lot struct {
	o       *offers
	part    part
	axes    []int     // of the resources in use
	size    []Vector  // by item; only the first len(axes) amounts are used
	room    []Vector  // by class
	price   []float64 // by class
	most    [][]int32 // by class, item
	kinds   []kind    // of the classes, where bounds are proven
	apart   [][]int32 // by item, sorted
	steps   int
	scratch scratch
}

// scratch is memory that fills share.
type scratch struct {
	holds  []held
	next   [N]int
	open   [N]int
	cells  []float64
	free   []Vector
	worth  []float64
	things [2][]thing
}

// held is Held by the item's place in the lot.
type held struct{ item, count int32 }

// stack is a number of bins of one class that all hold the same.
type stack struct {
	class, times int
	holds        []held
	used         float64 // what they hold is worth, by the prices at hand
}

func (o *offers) lot(q part) *lot {
	l := &lot{o: o, part: q, apart: make([][]int32, len(q.items))}
	for r := range N {
		if slices.ContainsFunc(q.items, func(i int) bool { return o.items[i].Size[r] > 0 }) {
			l.axes = append(l.axes, r)
		}
	}
	at := map[int32]int32{}
	for k, i := range q.items {
		at[int32(i)] = int32(k)
		l.size = append(l.size, l.compact(o.items[i].Size))
	}
	for k, i := range q.items {
		for _, other := range o.apart[i] {
			if j, ok := at[other]; ok {
				l.apart[k] = append(l.apart[k], j)
			}
		}
		slices.Sort(l.apart[k])
	}
	for _, t := range q.classes {
		most := make([]int32, len(q.items))
		for k, i := range q.items {
			most[k] = o.most[t][i]
		}
		l.room, l.price, l.most = append(l.room, l.compact(o.types[t].Capacity)), append(l.price, float64(o.price(t))), append(l.most, most)
	}
	return l
}

// compact keeps the amounts of the axes in use.
func (l *lot) compact(v Vector) (c Vector) {
	for k, r := range l.axes {
		c[k] = v[r]
	}
	return c
}

// waiting returns how many pieces wait, by item of the lot.
func (l *lot) waiting(all []int) []int32 {
	left := make([]int32, len(l.part.items))
	for k, i := range l.part.items {
		left[k] = int32(min(all[i], Any))
	}
	return left
}

// limits returns how many bins of each class may still be opened.
func (l *lot) limits(byType []int) []int {
	out := make([]int, len(l.part.classes))
	for k, c := range l.part.classes {
		for _, t := range l.o.members[c] {
			out[k] = min(Any, out[k]+max(0, byType[t]))
		}
	}
	return out
}

// need adds up what the pieces ask for.
func (l *lot) need(left []int32) (sum [N]float64) {
	for i, n := range left {
		if n > 0 {
			for r := range l.axes {
				sum[r] += float64(n) * float64(l.size[i][r])
			}
		}
	}
	return sum
}

// fits reports whether one more piece of an item has room.
func (l *lot) fits(item int32, free *Vector) bool {
	size := &l.size[item]
	for r := range l.axes {
		if size[r] > free[r] {
			return false
		}
	}
	return true
}

// keepsApart reports whether any of the holds is apart from an item.
func (l *lot) keepsApart(item int32, holds []held) bool {
	apart := l.apart[item]
	if len(apart) == 0 {
		return false
	}
	return slices.ContainsFunc(holds, func(h held) bool {
		_, ok := slices.BinarySearch(apart, h.item)
		return ok
	})
}

// cost adds up the prices of stacks.
func (l *lot) cost(stacks []stack) (sum float64) {
	for _, s := range stacks {
		sum += l.price[s.class] * float64(s.times)
	}
	return sum
}

// patterns speaks of types and items of the problem again, and takes the bins off the limits.
func (l *lot) patterns(stacks []stack, limits []int) []Pattern {
	slices.SortStableFunc(stacks, func(a, b stack) int {
		return cmp.Or(cmp.Compare(b.used/l.price[b.class], a.used/l.price[a.class]), cmp.Compare(a.class, b.class), slices.CompareFunc(a.holds, b.holds, compareHeld))
	})
	var out []Pattern
	for _, s := range stacks {
		holds := make([]Held, len(s.holds))
		for k, h := range s.holds {
			holds[k] = Held{Item: l.part.items[h.item], Count: int(h.count)}
		}
		times := s.times
		for _, t := range l.o.members[l.part.classes[s.class]] {
			n := min(times, limits[t])
			if n <= 0 {
				continue
			}
			limits[t] -= n
			times -= n
			if last := len(out) - 1; last >= 0 && out[last].Type == t && slices.Equal(out[last].Holds, holds) {
				out[last].Times += n
				continue
			}
			out = append(out, Pattern{Type: t, Times: n, Holds: holds})
		}
	}
	return out
}

func compareHeld(a, b held) int {
	return cmp.Or(cmp.Compare(a.item, b.item), cmp.Compare(a.count, b.count))
}
