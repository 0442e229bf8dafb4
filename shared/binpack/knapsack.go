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
	things []thing // most worth for the room first
	count  []int32 // by thing, as searched
	holds  []held  // the best known
	worth  float64 // of it, or the floor
	bound  float64 // no filling is worth more
	until  int     // of the lot's steps
}

// thing is an item as the search sees it.
type thing struct {
	item          int32
	most          int32
	worth, weight float64 // of one piece; weights of what fits into one bin add up to no more than 1
}

// fullest returns the most valuable filling of a bin of a class, when every item's pieces are worth so much and so many
// of them wait; none if all are worth no more than the floor. Where steps do not suffice, it is the best found, and the
// bound says what cannot be ruled out.
func (l *lot) fullest(class int, worth []float64, left []int32, floor float64, steps int) knapsack {
	k := knapsack{lot: l, class: class, bound: math.Inf(1), worth: floor, until: l.steps + steps}
	for _, w := range l.o.weights {
		if things, bound := l.things(class, worth, left, w); bound < k.bound {
			k.things, k.bound = things, bound
		}
	}
	k.count = make([]int32, len(k.things))
	k.search(0, l.room[class], 1, 0)
	if l.steps < k.until {
		k.bound = k.worth
	}
	return k
}

// things returns the items that are worth something, with the weights that they have under weights of the resources,
// and what a bin holds at most as if pieces could be cut.
func (l *lot) things(class int, worth []float64, left []int32, w weights) ([]thing, float64) {
	var all float64
	for k, r := range l.axes {
		if l.room[class][k] > 0 {
			all += w[r]
		}
	}
	var things []thing
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

// search tries every number of pieces of the things from at on, the most first.
func (k *knapsack) search(at int, free Vector, room, worth float64) {
	if worth > k.worth*(1+1e-12) {
		k.worth, k.holds = worth, k.holds[:0]
		for t, n := range k.count[:at] {
			if n > 0 {
				k.holds = append(k.holds, held{item: k.things[t].item, count: n})
			}
		}
	}
	for ; at < len(k.things); at++ {
		t := &k.things[at]
		if k.lot.steps >= k.until || t.weight > 0 && worth+room*t.worth/t.weight <= k.worth*(1+1e-9) {
			return
		}
		k.lot.steps++
		n := k.fit(t, &free, at)
		if n == 0 {
			continue
		}
		for ; n > 0; n-- {
			k.count[at] = n
			rest := free
			for r := range k.axes {
				rest[r] -= int64(n) * k.size[t.item][r]
			}
			k.search(at+1, rest, room-float64(n)*t.weight, worth+float64(n)*t.worth)
		}
		k.count[at] = 0
	}
}

// fit returns how many pieces of a thing have room beside those that are counted already.
func (k *knapsack) fit(t *thing, free *Vector, at int) int32 {
	n := t.most
	for r := range k.axes {
		if v := k.size[t.item][r]; v > 0 {
			n = int32(min(int64(n), free[r]/v))
		}
	}
	if n > 0 && len(k.apart[t.item]) > 0 {
		for o, count := range k.count[:at] {
			if _, apart := slices.BinarySearch(k.apart[t.item], k.things[o].item); apart && count > 0 {
				return 0
			}
		}
	}
	return n
}
