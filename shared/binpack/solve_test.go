// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestPackIsNeverWorseThanTheGreedy(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := instances(t)
		p := newProblem(in.items, in.bins, in.types, in.fits)
		p.fillBins()
		limits := make([]int, len(p.types))
		for k := range p.types {
			limits[k] = p.types[k].Limit
		}
		first := newOffers(p, p.left).firstOf(p.left, limits)
		if got := p.openWithin(p.left, limits); first.better(got) {
			t.Fatalf("%d left at %d, the greedy: %d left at %d", total(got.left), got.price, total(first.left), first.price)
		}
	})
}

// Millions of pieces, thousands of which share a bin, are packed in as many steps as a few.
func TestStepsDoNotGrowWithPieces(t *testing.T) {
	t.Parallel()
	steps := func(scale int64) int {
		items := []Item{
			{Name: "thin", Size: Vector{3, 1, 1}, Count: int(100 * scale)}, {Name: "wide", Size: Vector{1, 4, 1}, Count: int(90 * scale)},
			{Name: "even", Size: Vector{2, 2, 1}, Count: int(77 * scale)},
		}
		types := []Type{{Name: "a", Capacity: Vector{1 << 20, 1 << 20, 1 << 20}, Price: 3, Limit: Any}, {Name: "b", Capacity: Vector{1 << 19, 1 << 20, 1 << 20}, Price: 2, Limit: Any}}
		p := newProblem(items, nil, types, func(int, int) int { return Any })
		o := newOffers(p, p.left)
		parts := o.parts(p.left)
		l := o.lot(parts[0])
		l.mix(l.waiting(p.left), l.limits([]int{Any, Any}))
		return l.steps
	}
	if few, many := steps(1_000_000), steps(20_000_000); many > 3*few {
		t.Errorf("%d steps, for twenty times as many pieces %d", few, many)
	}
}

func TestBoundOfAResultIsABoundAndNoLooserThanItsPrice(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := instances(t)
		r := in.pack()
		got := r.Bound(in.items, in.bins, in.types, in.fits)
		for i := range in.items {
			in.items[i].Count -= r.Left[i]
		}
		if want := min(in.bound(), r.Price(in.types)); got < want || got > r.Price(in.types) {
			t.Fatalf("bound %d of a packing at %d; of all packings %d", got, r.Price(in.types), want)
		}
	})
}

// A type that has next to nothing of what thousands of pieces need, as one whose memory somebody gave without its unit, costs nobody else
// the answer: as many such bins as would hold these pieces in parts are more than can be counted.
func TestBinsOfAlmostNothingAreNoHurdle(t *testing.T) {
	t.Parallel()
	const gi = 1 << 30
	types := []Type{{Name: "large", Capacity: Vector{64 * gi, 110}, Price: 10, Limit: 10}, {Name: "typo", Capacity: Vector{16, 110}, Price: 10, Limit: 100}}
	items := []Item{{Name: "large", Size: Vector{8 * gi, 1}, Count: 5000}, {Name: "none", Size: Vector{0, 1}, Count: 1}}
	for i := range fewItems { // more kinds than that are packed in another way
		in := instance{items: items, types: types, most: slices.Repeat([][]int{{Any, Any}}, len(items))}
		r := in.pack()
		if err := in.check(r); err != nil {
			t.Error(err)
		}
		if got := total(r.Left); got != 5000-8*10 {
			t.Errorf("%d kinds: %d pieces are left over", len(items), got)
		}
		items = append(slices.Clone(items), Item{Name: fmt.Sprintf("none-%02d", i), Size: Vector{0, 1}, Count: 1})
	}
}
