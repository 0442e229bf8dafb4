// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"cmp"
	"math"
	"slices"
)

// knapsack finds what one bin of a class can hold that is worth most: by branch and bound, as long as its steps last.
type knapsack struct {
	*lot
	class  int
	things []thing  // most worth for the room first
	count  []int32  // by thing, as searched
	free   []Vector // by how many things are counted: what they leave
	holds  []held   // the best known
	worth  float64  // of it, or the floor
	beat   float64  // what is worth more than this is looked for
	bound  float64  // no filling is worth more
	until  int      // of the lot's steps
}

// thing is an item as the search sees it.
type thing struct {
	item          int32
	most          int32
	worth, weight float64 // of one piece; weights of what fits into one bin add up to no more than 1
	rate          float64 // worth of a whole bin of it
}

// fullest returns the most valuable filling of a bin of a class, when every item's pieces are worth so much and so many
// of them wait; none if all are worth no more than the floor. Where steps do not suffice, it is the best found, and the
// bound says what cannot be ruled out.
func (l *lot) fullest(class int, worth []float64, left []int32, floor float64, steps int) knapsack {
	k := knapsack{lot: l, class: class, bound: math.Inf(1), worth: floor, beat: floor * (1 + 1e-9), until: l.steps + steps}
	kept, spare := l.scratch.things[0][:0], l.scratch.things[1]
	*l.o.work += len(left) * len(l.o.weights)
	for _, w := range l.o.weights {
		var bound float64
		if spare, bound = l.things(spare[:0], class, worth, left, w); bound < k.bound {
			kept, spare, k.bound = spare, kept, bound
		}
	}
	l.scratch.things = [2][]thing{kept, spare}
	k.things, k.count, k.free = kept, make([]int32, len(kept)), append(l.scratch.free[:0], l.room[class])
	if !k.hopeless(0, 1, 0) {
		k.search(0, 0, 1, 0)
	}
	l.scratch.free = k.free
	if l.steps < k.until {
		k.bound = k.worth
	}
	return k
}

// things adds the items that are worth something, with the weights that they have under weights of the resources,
// and returns what a bin holds at most as if pieces could be cut.
func (l *lot) things(things []thing, class int, worth []float64, left []int32, w weights) ([]thing, float64) {
	var all float64
	for k, r := range l.axes {
		if l.room[class][k] > 0 {
			all += w[r]
		}
	}
	for i, v := range worth {
		most := min(l.most[class][i], left[i])
		if v <= 0 || most <= 0 {
			continue
		}
		t := thing{item: int32(i), most: most, worth: v}
		for k, r := range l.axes {
			if c := l.room[class][k]; c > 0 && all > 0 {
				t.weight += w[r] / all * float64(l.size[i][k]) / float64(c)
			}
		}
		t.rate = v / t.weight
		things = append(things, t)
	}
	slices.SortStableFunc(things, func(a, b thing) int { return cmp.Compare(b.worth*a.weight, a.worth*b.weight) })
	room, sum := 1.0, 0.0
	for _, t := range things {
		n := float64(t.most)
		if t.weight > 0 {
			n = min(n, room/t.weight)
		}
		sum += n * t.worth
		room -= n * t.weight
	}
	return things, sum
}

// hopeless reports whether nothing from a thing on leads to more worth than is known, or the search has to end.
func (k *knapsack) hopeless(at int, room, worth float64) bool {
	if at == len(k.things) || k.lot.steps >= k.until {
		return true
	}
	t := &k.things[at]
	return t.weight > 0 && worth+room*t.rate <= k.beat
}

// search tries every number of pieces of the things from at on, which is not hopeless, the most first, in what so many things
// that are counted leave.
func (k *knapsack) search(at, counted int, room, worth float64) {
	for ; ; at++ {
		k.lot.steps++
		t := &k.things[at]
		for n := k.fit(t, counted, at); n > 0; n-- {
			*k.lot.o.work++
			k.count[at] = n
			room, worth := room-float64(n)*t.weight, worth+float64(n)*t.worth
			if worth > k.worth*(1+1e-12) {
				k.keep(worth, at)
			}
			if k.hopeless(at+1, room, worth) {
				break // with fewer it is, too: no later thing is worth more for the room
			}
			k.leave(t, counted, n)
			k.search(at+1, counted+1, room, worth)
		}
		k.count[at] = 0
		if k.hopeless(at+1, room, worth) {
			return
		}
	}
}

// keep takes what is counted, up to a thing, for the best known.
func (k *knapsack) keep(worth float64, last int) {
	k.worth, k.beat, k.holds = worth, worth*(1+1e-9), k.holds[:0]
	for t, n := range k.count[:last+1] {
		if n > 0 {
			k.holds = append(k.holds, held{item: k.things[t].item, count: n})
		}
	}
}

// leave notes what is left once n pieces of a thing are counted too.
func (k *knapsack) leave(t *thing, counted int, n int32) {
	if counted+1 == len(k.free) {
		k.free = append(k.free, Vector{})
	}
	free, rest, size := &k.free[counted], &k.free[counted+1], &k.size[t.item]
	for r := range k.axes {
		rest[r] = free[r] - int64(n)*size[r]
	}
}

// fit returns how many pieces of a thing have room beside those that are counted already.
func (k *knapsack) fit(t *thing, counted, at int) int32 {
	n, free, size := int64(t.most), &k.free[counted], &k.size[t.item]
	for r := range k.axes {
		if size[r] > free[r] {
			return 0
		}
		if n*size[r] > free[r] { // no overflow: an empty bin has room for the most
			n = free[r] / size[r]
		}
	}
	if n > 0 && len(k.apart[t.item]) > 0 {
		for o, count := range k.count[:at] {
			if _, apart := slices.BinarySearch(k.apart[t.item], k.things[o].item); apart && count > 0 {
				return 0
			}
		}
	}
	return int32(n)
}
