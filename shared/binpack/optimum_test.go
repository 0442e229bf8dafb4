// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// outcome is what a packing into new bins comes to.
type outcome struct {
	left  [2]int // pieces without a place, of priority 1 and of 0
	price int64
}

func (o outcome) compare(p outcome) int {
	return cmp.Or(slices.Compare(o.left[:], p.left[:]), cmp.Compare(o.price, p.price))
}

func (o outcome) plus(p outcome) outcome {
	return outcome{[2]int{o.left[0] + p.left[0], o.left[1] + p.left[1]}, o.price + p.price}
}

func (in instance) outcome(left []int, price int64) outcome {
	o := outcome{price: price}
	for i, n := range left {
		o.left[1-in.items[i].Priority] += n
	}
	return o
}

// optimum is the best of all packings into new bins, found by trying every one: as few pieces without a place as possible,
// those of the higher priority first, then the least price. It goes on from what so many bins that are open came to, and
// returns best if nothing is better.
func (in instance) optimum(waits, opened []int, sofar, best outcome) outcome {
	first := slices.IndexFunc(waits, func(n int) bool { return n > 0 })
	if first < 0 {
		return slices.MinFunc([]outcome{best, sofar}, outcome.compare)
	}
	for k, ty := range in.types { // some bin holds a piece of the first item that waits
		next := sofar
		next.price += ty.Price
		if opened[k] >= ty.Limit || next.compare(best) >= 0 {
			continue
		}
		opened[k]++
		in.fillings(k, 0, slices.Clone(waits), nil, func(rest []int, holds []Held) {
			if len(holds) > 0 && holds[0].Item == first {
				best = in.optimum(rest, opened, next, best)
			}
		})
		opened[k]--
	}
	rest, out := slices.Clone(waits), make([]int, len(waits)) // or all that waits of it is left over
	rest[first], out[first] = 0, waits[first]
	if next := sofar.plus(in.outcome(out, 0)); next.compare(best) < 0 {
		best = in.optimum(rest, opened, next, best)
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

// contested is an instance of few pieces that want few bins. Not every type takes every item, so that who has a choice
// decides what there is for who has none.
func contested(r *rand.Rand) instance {
	var in instance
	size := func(low, high int) Vector {
		return Vector{int64(low + r.IntN(high-low+1)), int64(low + r.IntN(high-low+1))}
	}
	for k := range 2 + r.IntN(2) {
		in.types = append(in.types, Type{Name: fmt.Sprintf("type-%d", k), Capacity: size(4, 10), Price: int64(1 + r.IntN(3)), Limit: r.IntN(4)})
	}
	for i := range 2 + r.IntN(2) {
		in.items = append(in.items, Item{Name: fmt.Sprintf("item-%d", i), Size: size(1, 6), Count: 1 + r.IntN(3), Priority: int32(r.IntN(2))})
		var most []int
		for range in.types {
			most = append(most, []int{0, 1, Any, Any}[r.IntN(4)])
		}
		in.most = append(in.most, most)
	}
	return in
}

// What Pack finds for few pieces and few bins is compared with everything that could be found: never better, which would
// be a fault of one of the two, and seldom worse, in what is left over or in price.
func TestPackFindsTheOptimumOfSmallCases(t *testing.T) {
	t.Parallel()
	const cases = 2000
	served, optimal := 0, 0
	for seed := range uint64(cases) {
		in := contested(rand.New(rand.NewPCG(seed, 0)))
		waits := make([]int, len(in.items))
		for i := range in.items {
			waits[i] = in.items[i].Count
		}
		r := in.pack()
		got, best := in.outcome(r.Left, r.Price(in.types)), in.optimum(waits, make([]int, len(in.types)), outcome{}, in.outcome(waits, math.MaxInt64))
		if got.compare(best) < 0 {
			t.Fatalf("seed %d: a packing that comes to %+v is better than the optimum %+v: %+v", seed, got, best, r)
		}
		if bound := in.bound(); best.left == [2]int{} && bound > best.price {
			t.Fatalf("seed %d: bound %d is above the optimum %d", seed, bound, best.price)
		}
		if got.left == best.left {
			served++
		}
		if got == best {
			optimal++
		}
	}
	t.Logf("of %d packings %d leave no more over than has to be, %d are optimal", cases, served, optimal)
	if served < cases*98/100 || optimal < cases*96/100 {
		t.Errorf("of %d packings only %d leave no more over than has to be, %d are optimal", cases, served, optimal)
	}
}
