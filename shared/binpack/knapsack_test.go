// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// lots are the first parts of problems.
func lots(t *rapid.T) *lot {
	in := instances(t)
	in.bins = nil
	p := newProblem(in.items, nil, in.types, func(i, k int) int { return in.most[i][len(in.most[i])-len(in.types)+k] })
	o := newOffers(p, p.left)
	parts := o.parts(p.left)
	if len(parts) == 0 {
		t.Skip("nobody waits for a type")
	}
	return o.lot(parts[0])
}

// mostWorth is what a bin of a class holds at most that is worth anything, by trying every filling from item i on.
func (l *lot) mostWorth(class int, worth []float64, left []int32, i int, holds []held, free Vector) (best float64) {
	if i == len(l.size) {
		return 0
	}
	best = l.mostWorth(class, worth, left, i+1, holds, free)
	for n := int32(1); n <= min(left[i], l.most[class][i]) && l.fits(int32(i), &free) && !l.keepsApart(int32(i), holds); n++ {
		for r := range l.axes {
			free[r] -= l.size[i][r]
		}
		with := append(slices.Clone(holds), held{int32(i), n})
		best = max(best, float64(n)*worth[i]+l.mostWorth(class, worth, left, i+1, with, free))
	}
	return best
}

// The fullest bin holds what fits, is worth what it says, and no filling is worth more than its bound, which is no more than that where
// the search came to its end.
func TestFullestBinIsTheMostWorth(t *testing.T) {
	t.Parallel()
	property := func(t *rapid.T) {
		l := lots(t)
		left, worth := make([]int32, len(l.size)), make([]float64, len(l.size))
		for i := range left {
			left[i] = int32(rapid.IntRange(0, 4).Draw(t, "left"))
			worth[i] = rapid.SampledFrom([]float64{-1, 0, 0.1, 1, 1.0 / 3, 2, 7}).Draw(t, "worth")
		}
		floor := rapid.SampledFrom([]float64{0, 1, 3}).Draw(t, "floor")
		steps := rapid.SampledFrom([]int{1, 5, searchSteps}).Draw(t, "steps")
		for c := range l.room {
			k := l.fullest(c, worth, left, floor, steps)
			sum, free := 0.0, l.room[c]
			for n, h := range k.holds {
				if h.count < 1 || h.count > min(left[h.item], l.most[c][h.item]) || l.keepsApart(h.item, k.holds[:n]) {
					t.Fatalf("holds %v of %v", k.holds, left)
				}
				for r := range l.axes {
					if free[r] -= int64(h.count) * l.size[h.item][r]; free[r] < 0 {
						t.Fatalf("%v do not fit", k.holds)
					}
				}
				sum += float64(h.count) * worth[h.item]
			}
			best := l.mostWorth(c, worth, left, 0, nil, l.room[c])
			if k.bound < best*(1-1e-8) || k.bound < floor && k.bound < best*(1-1e-12) {
				t.Fatalf("bound %g, but there is a filling worth %g", k.bound, best)
			}
			if len(k.holds) > 0 && (math.Abs(sum-k.worth) > 1e-9 || sum <= floor) {
				t.Fatalf("holds %v worth %g, not %g; floor %g", k.holds, sum, k.worth, floor)
			}
			if steps == searchSteps && max(sum, floor) < best*(1-1e-8) {
				t.Fatalf("holds %v worth %g, but there is a filling worth %g", k.holds, sum, best)
			}
		}
	}
	for range 20 {
		rapid.Check(t, property)
	}
}

// What a search found that was cut off is no bound: what it had no steps for may be worth more.
func TestBoundOfASearchThatWasCutOff(t *testing.T) {
	t.Parallel()
	items := []Item{{Name: "a", Size: Vector{3, 1}, Count: 1}, {Name: "b", Size: Vector{1, 3}, Count: 1}}
	p := newProblem(items, nil, []Type{{Name: "type", Capacity: Vector{4, 4}, Price: 10, Limit: 2}}, func(int, int) int { return Any })
	o := newOffers(p, p.left)
	l := o.lot(o.parts(p.left)[0])
	k := l.fullest(0, []float64{1, 1}, []int32{1, 1}, 0, 1)
	if k.worth != 1 || k.bound < 2 {
		t.Errorf("worth %g, bound %g, but both items are worth 2 and one step finds one", k.worth, k.bound)
	}
}

// What worth that no search could confirm proves is divided by how much too much it may be.
func TestBoundOfColumnsThatWereNotLookedForIsOneToo(t *testing.T) {
	t.Parallel()
	items := []Item{{Name: "a", Size: Vector{3, 1}, Count: 1}, {Name: "b", Size: Vector{1, 3}, Count: 1}}
	p := newProblem(items, nil, []Type{{Name: "type", Capacity: Vector{4, 4}, Price: 10, Limit: 2}}, func(int, int) int { return Any })
	o := newOffers(p, p.left)
	l := o.lot(o.parts(p.left)[0])
	l.steps = columnSteps // all are used up: the program knows a bin for each item alone, which would be 20
	if got := l.columnBound(); got > 10*(1+1e-6) {
		t.Errorf("bound %g, but one bin for 10 holds both", got)
	}
}

// A search ends soon however many pieces a bin holds: how many of them are tried is bounded as well.
func TestSearchDoesNotGrowWithPieces(t *testing.T) {
	t.Parallel()
	const pieces = 50_000
	r := rand.New(rand.NewPCG(13, 1))
	var items []Item
	for i := range 3 {
		items = append(items, Item{Name: fmt.Sprint("i", i), Size: Vector{int64(10 + r.IntN(20)), int64(10 + r.IntN(20)), 1}, Count: pieces + r.IntN(pieces)})
	}
	var types []Type
	for k := range 2 {
		c := int64(15+r.IntN(10)) * pieces
		types = append(types, Type{Name: fmt.Sprint("t", k), Capacity: Vector{c, c + int64(r.IntN(100)), pieces}, Price: int64(1000 + r.IntN(100)), Limit: 1000})
	}
	got := Pack(items, nil, types, func(int, int) int { return Any })
	if most := 2_000_000; total(got.Left) > 0 || got.Work > most {
		t.Errorf("%v are left over, in %d steps, more than %d", got.Left, got.Work, most)
	}
}

// The pieces that have a place cannot have one for less than their bound, however they are divided between the bins that exist and new ones.
func TestNobodyFindsAPlaceForLessThanTheBound(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		in := contested(r)
		for b := range 1 + r.IntN(2) {
			in.bins = append(in.bins, Bin{Name: fmt.Sprint("bin-", b), Free: Vector{int64(r.IntN(9)), int64(r.IntN(9))}})
		}
		for i := range in.most {
			for range in.bins {
				in.most[i] = slices.Insert(in.most[i], 0, []int{0, 1, Any, Any}[r.IntN(4)])
			}
		}
		got := in.pack()
		bound := got.Bound(in.items, in.bins, in.types, in.fits)
		placed := make([]int, len(in.items))
		for i := range placed {
			placed[i] = in.items[i].Count - got.Left[i]
		}
		for k := range in.types {
			in.types[k].Limit = Any
		}
		least := int64(math.MaxInt64)
		in.withBins(0, placed, func(rest []int) {
			best := in.optimum(rest, make([]int, len(in.types)), outcome{}, in.outcome(rest, math.MaxInt64))
			if best.left == [2]int{} {
				least = min(least, best.price)
			}
		})
		if bound > least {
			t.Fatalf("seed %d: bound %d of a packing at %d is above the least price %d", seed, bound, got.Price(in.types), least)
		}
	}
}

// withBins calls f with what is left by every way to fill the bins that exist, from bin b on.
func (in instance) withBins(b int, waits []int, f func(rest []int)) {
	if b == len(in.bins) {
		f(waits)
		return
	}
	in.binFillings(b, 0, waits, nil, func(rest []int) { in.withBins(b+1, rest, f) })
}

func (in instance) binFillings(b, i int, left []int, holds []Held, f func(rest []int)) {
	if i == len(in.items) {
		f(left)
		return
	}
	in.binFillings(b, i+1, left, holds, f)
	for n := 1; n <= left[i]; n++ {
		with := append(slices.Clone(holds), Held{Item: i, Count: n})
		if in.checkBin(b, in.bins[b].Free, with) != nil {
			return
		}
		rest := slices.Clone(left)
		rest[i] -= n
		in.binFillings(b, i+1, rest, with, f)
	}
}
