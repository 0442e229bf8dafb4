// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// contests are offers to the pieces of small cases that wait, with the limits of the types.
func contests(f func(seed uint64, o *offers, limits []int)) {
	for seed := range uint64(2000) {
		in := contested(rand.New(rand.NewPCG(seed, 0)))
		p := newProblem(in.items, nil, in.types, in.fits)
		f(seed, newOffers(p, p.left), p.limits())
	}
}

func TestColumnsAreNeverWorseThanMix(t *testing.T) {
	t.Parallel()
	better := 0
	contests(func(seed uint64, o *offers, limits []int) {
		for _, q := range o.parts(o.left) {
			l := o.lot(q)
			mixed := l.mixed(nil, l.waiting(o.left), l.limits(limits))
			stacks, left := l.byColumns(l.waiting(o.left), l.limits(limits))
			got := packing{waits: sum(left), cost: l.cost(stacks)}
			if mixed.better(got) || got.waits > mixed.waits {
				t.Fatalf("seed %d: %d left at %g, by mix alone %d left at %g", seed, got.waits, got.cost, mixed.waits, mixed.cost)
			}
			if got.better(mixed) {
				better++
			}
		}
	})
	if better < 80 {
		t.Errorf("of all parts only %d are better by columns", better)
	}
}

func TestPartsAreNeverWorseThanTheGreedy(t *testing.T) {
	t.Parallel()
	better := 0
	contests(func(seed uint64, o *offers, limits []int) {
		first := o.firstOf(o.left, limits)
		got := o.improve(first, o.left, limits)
		if first.better(got) {
			t.Fatalf("seed %d: %d left at %d, by the greedy alone %d left at %d", seed, total(got.left), got.price, total(first.left), first.price)
		}
		if got.better(first) {
			better++
		}
	})
	if better < 40 {
		t.Errorf("of all cases only %d are better by parts", better)
	}
}

// What the program buys holds what waits, no more and no less, at what the pieces are worth, and no bin is worth more than its price: so
// it is the least that bins in parts cost.
func TestProgramIsTheCheapest(t *testing.T) {
	t.Parallel()
	contests(func(seed uint64, o *offers, _ []int) {
		for _, q := range o.parts(o.left) {
			l := o.lot(q)
			left := l.waiting(o.left)
			m := l.newMaster(left, func(int) bool { return true }, columnSteps)
			m.solve()
			held, cost, worth := make([]float64, len(left)), 0.0, 0.0
			for row, x := range m.basis {
				cost += m.value[row] * l.price[x.class]
				for _, h := range x.holds {
					held[h.item] += m.value[row] * float64(h.count)
				}
			}
			for i, n := range left {
				worth += m.worth[i] * float64(n)
				if math.Abs(held[i]-float64(n)) > 1e-6 {
					t.Fatalf("seed %d: of item %d are held %g of %d", seed, i, held[i], n)
				}
			}
			if over := m.over(searchSteps); math.Abs(cost-worth) > 1e-6 || over > 1+1e-6 {
				t.Fatalf("seed %d: pieces worth %g at %g, a bin is worth %g times its price", seed, worth, cost, over)
			}
		}
	})
}

// However many pieces a bin holds, what is rounded buys no more of them than wait.
func TestColumnsHoldNoMoreThanWaits(t *testing.T) {
	t.Parallel()
	const most = 4_000_000
	in := instance{items: []Item{{Name: "item", Size: Vector{1}, Count: 3*most - 1}}, types: []Type{{Name: "type", Capacity: Vector{most}, Price: 1, Limit: 9}}, most: [][]int{{Any}}}
	if err := in.check(in.pack()); err != nil {
		t.Error(err)
	}
}

// A bin of whatever many pieces may be left for one of few.
func TestColumnsOfAlmostNothingAreNoHurdle(t *testing.T) {
	t.Parallel()
	in := instance{
		items: []Item{{Name: "a", Size: Vector{1, 0}, Count: Any}, {Name: "b", Size: Vector{0, 1}, Count: Any}},
		types: []Type{{Name: "a", Capacity: Vector{Any, 0}, Price: Any, Limit: 9}, {Name: "b", Capacity: Vector{0, Any}, Price: Any, Limit: 9}, {Name: "both", Capacity: Vector{1, 1}, Price: 1, Limit: 9}},
		most:  [][]int{{Any, 0, 1}, {0, Any, 1}},
	}
	if err := in.check(in.pack()); err != nil {
		t.Error(err)
	}
}

// The search for columns grows faster than the number of kinds: many are packed without it. What either way takes is work.
func TestManyKindsAreLittleWork(t *testing.T) {
	t.Parallel()
	const kinds = 2 * fewItems
	r := rand.New(rand.NewPCG(1, 1))
	var items []Item
	for i := range kinds {
		items = append(items, Item{Name: fmt.Sprint(i), Size: Vector{int64(10 + r.IntN(300)), int64(10 + r.IntN(300))}, Count: 1 + r.IntN(9)})
	}
	types := []Type{{Name: "a", Capacity: Vector{1000, 900}, Price: 10, Limit: Any}, {Name: "b", Capacity: Vector{500, 700}, Price: 6, Limit: Any}}
	p := newProblem(items, nil, types, func(int, int) int { return Any })
	o := newOffers(p, p.left)
	o.solve(o.parts(p.left)[0], p.left, p.limits())
	if *p.work < kinds || *p.work > 1000*kinds {
		t.Errorf("%d steps for %d kinds", *p.work, kinds)
	}
}

// Who is worth nothing by rates, as nobody needs much of what it takes, may be worth a bin by columns: what a bin that exists could hold
// of it is no number then, and no bound.
func TestBoundIsANumber(t *testing.T) {
	t.Parallel()
	in := instance{
		items: []Item{{Name: "one for each", Size: Vector{0, 1}, Count: 6}, {Name: "large", Size: Vector{10, 0}, Count: 2}},
		bins:  []Bin{{Name: "bin", Free: Vector{0, 50}}},
		types: []Type{{Name: "type", Capacity: Vector{10, 100}, Price: 3, Limit: Any}},
		most:  [][]int{{1, 1}, {0, Any}},
	}
	if got := in.bound(); got != 5*3 {
		t.Errorf("bound %d, but five bins for 3 each have to be opened", got)
	}
}

// Who only asks whether there is a place is answered with less work.
func TestTryIsLessWork(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(2, 1))
	var items []Item
	for i := range fewItems / 2 {
		items = append(items, Item{Name: fmt.Sprint(i), Size: Vector{int64(10 + r.IntN(300)), int64(10 + r.IntN(300))}, Count: 1 + r.IntN(9)})
	}
	types := []Type{{Name: "a", Capacity: Vector{1000, 900}, Price: 10, Limit: Any}, {Name: "b", Capacity: Vector{500, 700}, Price: 6, Limit: Any}}
	fits := func(int, int) int { return Any }
	try, pack := Try(items, nil, types, fits), Pack(items, nil, types, fits)
	if total(try.Left) > 0 || try.Work > pack.Work/2 {
		t.Errorf("%v are left over after %d steps, instead of %d", try.Left, try.Work, pack.Work)
	}
}

// By the values of pieces no bin is worth more than its price, and what nobody takes counts for nothing.
func TestValuesAreNoMoreThanPrices(t *testing.T) {
	t.Parallel()
	contests(func(seed uint64, o *offers, _ []int) {
		for _, w := range o.weights {
			values := o.values(w)
			for _, q := range o.parts(o.left) {
				l := o.lot(q)
				worth := make([]float64, len(q.items))
				for k, i := range q.items {
					if worth[k] = values[i]; worth[k] <= 0 {
						t.Fatalf("seed %d: item %d is worth %g", seed, i, worth[k])
					}
				}
				for c := range l.room {
					if most := l.mostWorth(c, worth, l.waiting(o.left), 0, nil, l.room[c]); most > l.price[c]*(1+1e-9) {
						t.Fatalf("seed %d: a bin of class %d is worth %g, at %g", seed, c, most, l.price[c])
					}
				}
			}
		}
	})
}
