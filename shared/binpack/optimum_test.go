// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// optimum is the least price of all packings into new bins, found by trying every one; math.MaxInt64 if there is none.
func (in instance) optimum(left []int, opened []int, paid, best int64) int64 {
	first := slices.IndexFunc(left, func(n int) bool { return n > 0 })
	if first < 0 {
		return min(best, paid)
	}
	for k, ty := range in.types { // some bin holds a piece of the first item that waits
		if opened[k] >= ty.Limit || paid+ty.Price >= best {
			continue
		}
		opened[k]++
		in.fillings(k, 0, slices.Clone(left), nil, func(rest []int, holds []Held) {
			if len(holds) > 0 && holds[0].Item == first {
				best = in.optimum(rest, opened, paid+ty.Price, best)
			}
		})
		opened[k]--
	}
	return best
}

// fillings calls f with every way to fill a bin of type k with pieces that wait, from item i on.
func (in instance) fillings(k, i int, left []int, holds []Held, f func(rest []int, holds []Held)) {
	if i == len(in.items) {
		f(left, holds)
		return
	}
	in.fillings(k, i+1, slices.Clone(left), slices.Clone(holds), f)
	for n := 1; n <= left[i]; n++ {
		with := append(slices.Clone(holds), Held{Item: i, Count: n})
		if in.checkBin(len(in.bins)+k, in.types[k].Capacity, with) != nil {
			return
		}
		rest := slices.Clone(left)
		rest[i] -= n
		in.fillings(k, i+1, rest, with, f)
	}
}

// What Pack finds for few pieces is compared with everything that could be found: never cheaper, which would be a
// fault of one of the two, and seldom dearer.
func TestPackFindsTheOptimumOfSmallCases(t *testing.T) {
	t.Parallel()
	cases, optimal := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		in := instances(t)
		in.bins = nil
		in.items, in.types = in.items[:min(3, len(in.items))], in.types[:min(2, len(in.types))]
		if len(in.items) == 0 || len(in.types) == 0 {
			return
		}
		for i := range in.items {
			in.items[i].Count, in.items[i].Priority, in.items[i].Apart = min(3, in.items[i].Count), 0, nil
			in.most[i] = in.most[i][len(in.most[i])-len(in.types):]
		}
		r := in.pack()
		left := make([]int, len(in.items))
		for i := range in.items {
			in.items[i].Count -= r.Left[i]
			left[i] = in.items[i].Count
		}
		best := in.optimum(left, make([]int, len(in.types)), 0, math.MaxInt64)
		if price := r.Price(in.types); price < best {
			t.Fatalf("a packing at %d is below the optimum %d: %+v", price, best, r)
		} else if price == best {
			optimal++
		}
		if bound := in.bound(); bound > best {
			t.Fatalf("bound %d is above the optimum %d", bound, best)
		}
		cases++
	})
	if optimal < cases-max(3, cases/20) {
		t.Errorf("%d of %d packings are optimal", optimal, cases)
	}
	t.Logf("%d of %d packings are optimal", optimal, cases)
}
