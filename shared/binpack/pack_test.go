// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// instance is the arguments of Pack; most answers for fits.
type instance struct {
	items []Item
	bins  []Bin
	types []Type
	most  [][]int // by item, target
}

func (in instance) fits(i, t int) int { return in.most[i][t] }

func (in instance) pack() Result { return Pack(in.items, in.bins, in.types, in.fits) }

func instances(t *rapid.T) instance {
	var in instance
	size := func(label string, low, high int) (v Vector) {
		for r := range 3 {
			v[r] = int64(rapid.IntRange(low, high).Draw(t, fmt.Sprintf("%s %d", label, r)))
		}
		return v
	}
	for b := range rapid.IntRange(0, 4).Draw(t, "bins") {
		in.bins = append(in.bins, Bin{Name: fmt.Sprintf("bin-%d", b), Free: size("free", 0, 20)})
	}
	for k := range rapid.IntRange(0, 4).Draw(t, "types") {
		in.types = append(in.types, Type{
			Name: fmt.Sprintf("type-%d", k), Capacity: size("capacity", 1, 30),
			Price: int64(rapid.IntRange(1, 9).Draw(t, "price")), Limit: rapid.IntRange(0, 12).Draw(t, "limit"),
		})
	}
	n := rapid.IntRange(0, 6).Draw(t, "items")
	for i := range n {
		it := Item{
			Name: fmt.Sprintf("item-%d", i), Size: size("size", 0, 12), Count: rapid.IntRange(0, 15).Draw(t, "count"),
			Priority: int32(rapid.IntRange(0, 2).Draw(t, "priority")),
		}
		it.Size[2] = max(1, it.Size[2]) // every piece takes a place, as every Pod does
		if rapid.IntRange(0, 3).Draw(t, "has apart") == 0 {
			it.Apart = []int{rapid.IntRange(-1, n).Draw(t, "apart")}
		}
		in.items = append(in.items, it)
		var most []int
		for range len(in.bins) + len(in.types) {
			most = append(most, rapid.SampledFrom([]int{0, 1, 2, Any, Any, Any}).Draw(t, "most"))
		}
		in.most = append(in.most, most)
	}
	return in
}

func TestPackNeverOvercommits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := instances(t)
		if err := in.check(in.pack()); err != nil {
			t.Fatal(err)
		}
	})
}

// check verifies a result against everything that Pack promises about one bin, and about counts and limits.
func (in instance) check(r Result) error {
	placed := make([]int, len(in.items))
	held := make([][]Held, len(in.bins))
	for _, p := range r.Puts {
		held[p.Bin] = append(held[p.Bin], Held{p.Item, p.Count})
		placed[p.Item] += p.Count
	}
	for b, h := range held {
		if err := in.checkBin(b, in.bins[b].Free, h); err != nil {
			return err
		}
	}
	opened := make([]int, len(in.types))
	for _, p := range r.Patterns {
		opened[p.Type] += p.Times
		if len(p.Holds) == 0 || p.Times < 1 {
			return fmt.Errorf("%d bins of type %d hold nothing", p.Times, p.Type)
		}
		if err := in.checkBin(len(in.bins)+p.Type, in.types[p.Type].Capacity, p.Holds); err != nil {
			return err
		}
		for _, h := range p.Holds {
			placed[h.Item] += h.Count * p.Times
		}
	}
	for k, n := range opened {
		if n > in.types[k].Limit {
			return fmt.Errorf("%d bins of type %d, limit %d", n, k, in.types[k].Limit)
		}
	}
	for i, n := range placed {
		if n+r.Left[i] != in.items[i].Count || r.Left[i] < 0 {
			return fmt.Errorf("item %d: %d placed, %d left of %d", i, n, r.Left[i], in.items[i].Count)
		}
	}
	return in.checkLeft(r, opened)
}

func (in instance) checkBin(target int, free Vector, holds []Held) error {
	var used Vector
	for _, h := range holds {
		used = used.Plus(in.items[h.Item].Size.Times(h.Count))
		if h.Count < 1 || h.Count > in.most[h.Item][target] {
			return fmt.Errorf("target %d holds %d of item %d, at most %d fit", target, h.Count, h.Item, in.most[h.Item][target])
		}
		for _, other := range holds {
			if other.Item != h.Item && slices.Contains(in.items[h.Item].Apart, other.Item) {
				return fmt.Errorf("target %d holds items %d and %d, which are apart", target, h.Item, other.Item)
			}
		}
	}
	for r := range used {
		if used[r] > free[r] {
			return fmt.Errorf("target %d holds %v of %v", target, used, free)
		}
	}
	return nil
}

// checkLeft verifies that a piece is left only if no type has a bin left that could take it alone.
func (in instance) checkLeft(r Result, opened []int) error {
	for i, n := range r.Left {
		for k, ty := range in.types {
			if n > 0 && opened[k] < ty.Limit && in.most[i][len(in.bins)+k] > 0 && in.items[i].Size.In(ty.Capacity) > 0 {
				return fmt.Errorf("%d of item %d left although type %d admits them", n, i, k)
			}
		}
	}
	return nil
}

func TestPackDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := instances(t)
		mixed, items, bins, types := in.shuffled(t)
		want, got := in.pack(), mixed.pack()
		for k, i := range items {
			if got.Left[k] != want.Left[i] {
				t.Fatalf("item %d: %d left, shuffled %d", i, want.Left[i], got.Left[k])
			}
		}
		if diff := cmp.Diff(lines(want, identity(6), identity(4), identity(4)), lines(got, items, bins, types)); diff != "" {
			t.Fatalf("placement (-in order +shuffled):\n%s", diff)
		}
		if a, b := in.bound(), mixed.bound(); a != b {
			t.Fatalf("bound %d, shuffled %d", a, b)
		}
	})
}

func (in instance) bound() int64 { return LowerBound(in.items, in.bins, in.types, in.fits) }

// shuffled returns the same instance in another order, with what stands where.
func (in instance) shuffled(t *rapid.T) (out instance, items, bins, types []int) {
	items = rapid.Permutation(identity(len(in.items))).Draw(t, "order of items")
	bins = rapid.Permutation(identity(len(in.bins))).Draw(t, "order of bins")
	types = rapid.Permutation(identity(len(in.types))).Draw(t, "order of types")
	out.bins, out.types = pick(in.bins, bins), pick(in.types, types)
	for _, i := range items {
		it := in.items[i]
		it.Apart = nil
		for _, q := range in.items[i].Apart {
			if k := slices.Index(items, q); k >= 0 {
				it.Apart = append(it.Apart, k)
			}
		}
		out.items = append(out.items, it)
		var most []int
		for _, b := range bins {
			most = append(most, in.most[i][b])
		}
		for _, k := range types {
			most = append(most, in.most[i][len(in.bins)+k])
		}
		out.most = append(out.most, most)
	}
	return out, items, bins, types
}

// lines renders a result in the given names, sorted.
func lines(r Result, items, bins, types []int) []string {
	var all []string
	for _, p := range r.Puts {
		all = append(all, fmt.Sprintf("bin %d: %d of item %d", bins[p.Bin], p.Count, items[p.Item]))
	}
	for k, p := range r.Patterns {
		var holds []string
		for _, h := range p.Holds {
			holds = append(holds, fmt.Sprintf("%d of item %d", h.Count, items[h.Item]))
		}
		slices.Sort(holds)
		all = append(all, fmt.Sprintf("pattern %d: %d bins of type %d: %v", k, p.Times, types[p.Type], holds))
	}
	slices.Sort(all)
	return all
}

func identity(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func TestPackLeavesItsArgumentsUntouched(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := instances(t)
		before := fmt.Sprintf("%+v", in)
		in.pack()
		in.bound()
		if after := fmt.Sprintf("%+v", in); after != before {
			t.Fatalf("arguments (-before +after):\n%s", cmp.Diff(before, after))
		}
	})
}

func TestNoPackingIsCheaperThanTheBound(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := instances(t)
		r := in.pack()
		for i := range in.items { // the bound is about pieces that have a place
			in.items[i].Count -= r.Left[i]
		}
		if bound, price := in.bound(), r.Price(in.types); bound > price {
			t.Fatalf("bound %d, but there is a packing at %d: %+v", bound, price, r)
		}
	})
}

func TestHigherPriorityIsServedFirst(t *testing.T) {
	t.Parallel()
	one := Type{Name: "node", Capacity: Vector{4, 4, 10}, Price: 1, Limit: 1}
	small := Item{Name: "small", Size: Vector{1, 1, 1}, Count: 8}
	large := Item{Name: "large", Size: Vector{3, 3, 1}, Count: 1, Priority: 1}
	anywhere := func(int, int) int { return Any }
	r := Pack([]Item{small, large}, nil, []Type{one}, anywhere)
	if diff := cmp.Diff([]int{7, 0}, r.Left); diff != "" {
		t.Errorf("left over (-want +got):\n%s", diff)
	}
}

// No piece is left over that a bin would take in place of pieces of lower priority, whether the bin existed or is new (SPEC C9).
func TestNobodyHasTheRoomOfHigherPriority(t *testing.T) {
	t.Parallel()
	property := func(t *rapid.T) {
		in := instances(t)
		r := in.pack()
		held := make([][]Held, len(in.bins))
		for _, p := range r.Puts {
			held[p.Bin] = append(held[p.Bin], Held{p.Item, p.Count})
		}
		for i, left := range r.Left {
			for b, holds := range held {
				if left > 0 && in.checkBin(b, in.bins[b].Free, in.instead(holds, i)) == nil {
					t.Fatalf("%d of item %d are left over, and bin %d holds %v", left, i, b, holds)
				}
			}
			for _, pat := range r.Patterns {
				if left > 0 && in.checkBin(len(in.bins)+pat.Type, in.types[pat.Type].Capacity, in.instead(pat.Holds, i)) == nil {
					t.Fatalf("%d of item %d are left over, and a new bin is %+v", left, i, pat)
				}
			}
		}
	}
	for range 20 { // few cases are contested: one hundred would find a third of what is wrong
		rapid.Check(t, property)
	}
}

// The bins of a priority leave room for the next one, whoever of a third is left over (SPEC C9).
func TestPrioritiesShareTheBinsThatThereMayBe(t *testing.T) {
	t.Parallel()
	node := Type{Name: "node", Capacity: Vector{8}, Price: 1, Limit: 2}
	first, second := Item{Name: "first", Size: Vector{2}, Count: 2, Priority: 2}, Item{Name: "second", Size: Vector{6}, Count: 2, Priority: 1}
	third := Item{Name: "third", Size: Vector{7}, Count: 1}
	r := Pack([]Item{first, second, third}, nil, []Type{node}, func(int, int) int { return Any })
	if diff := cmp.Diff([]int{0, 0, 1}, r.Left); diff != "" {
		t.Errorf("left over (-want +got):\n%s", diff)
	}
}

// instead is what a bin holds with one more piece of an item and none of lower priority.
func (in instance) instead(holds []Held, item int) []Held {
	out := []Held{{Item: item, Count: 1}}
	for _, h := range holds {
		switch {
		case h.Item == item:
			out[0].Count += h.Count
		case in.items[h.Item].Priority >= in.items[item].Priority:
			out = append(out, h)
		}
	}
	return out
}

// Who has a choice leaves the only type, or the only bin, of others to them (SPEC C9).
func TestTheOnlyPlaceOfOthersIsLeftToThem(t *testing.T) {
	t.Parallel()
	node := func(name string, price int64, limit int) Type {
		return Type{Name: name, Capacity: Vector{4000}, Price: price, Limit: limit}
	}
	piece := func(name string, size int64, priority int32) Item {
		return Item{Name: name, Size: Vector{size}, Count: 20, Priority: priority}
	}
	upTo := func(item, target int) int { // item 0 goes to target 0, item 1 to targets 0 and 1, and so on
		if target > item {
			return 0
		}
		return Any
	}
	var bins []Bin
	for i := range 20 {
		bins = append(bins, Bin{Name: fmt.Sprintf("a-%02d", i), Free: Vector{4000}})
	}
	for _, tt := range []struct {
		name  string
		items []Item
		bins  []Bin
		types []Type
		fits  Fits
	}{
		{"equal prices", []Item{piece("only", 2500, 0), piece("any", 3000, 0)}, nil, []Type{node("a", 10, 20), node("b", 10, 20)}, upTo},
		{"the other is a thousand times dearer", []Item{piece("only", 2500, 0), piece("any", 3000, 0)}, nil, []Type{node("a", 1, 20), node("b", 1000, 20)}, upTo},
		{"who has a choice has priority", []Item{piece("only", 2500, 0), piece("any", 3000, 1)}, nil, []Type{node("a", 10, 20), node("b", 10, 20)}, upTo},
		{"one makes room for the other", []Item{piece("first", 2500, 0), piece("second", 3000, 0), piece("third", 3500, 0)}, nil,
			[]Type{node("a", 10, 20), node("b", 20, 20), node("c", 30, 20)}, upTo},
		{"bins that exist", []Item{piece("only", 2500, 0), piece("any", 3000, 0)}, bins, []Type{node("b", 10, 20)}, func(item, target int) int {
			return upTo(item, target/20)
		}},
	} {
		r := Pack(tt.items, tt.bins, tt.types, tt.fits)
		if total(r.Left) > 0 {
			t.Errorf("%s: %d are left over, although there is a place for all", tt.name, r.Left)
		}
		for i := range len(r.Patterns) - 1 { // as Result promises: whoever takes fewer bins takes the first ones
			a, b := r.Patterns[i].Holds[0], r.Patterns[i+1].Holds[0] // each bin holds one piece
			worth := func(h Held, pat Pattern) float64 {
				return float64(tt.items[h.Item].Size[0]*int64(h.Count)) / float64(tt.types[pat.Type].Price)
			}
			if p, q := tt.items[a.Item].Priority, tt.items[b.Item].Priority; p < q || p == q && worth(a, r.Patterns[i]) < worth(b, r.Patterns[i+1]) {
				t.Errorf("%s: bins in the order %v", tt.name, r.Patterns)
			}
		}
	}
}

// Whoever may have fewer bins takes the first ones: of whatever types and priorities, they hold the most of the highest priority,
// and of the next one where that is the same (SPEC C9, C30).
func TestFirstBinsServeTheMostOfTheHighestPriority(t *testing.T) {
	t.Parallel()
	types := []Type{{Name: "a", Capacity: Vector{4}, Price: 1, Limit: 9}, {Name: "b", Capacity: Vector{4}, Price: 2, Limit: 9}}
	items := []Item{ // of a a bin holds two of the higher priority, or of the lower; of b it holds four, or one with three
		{Name: "a high", Size: Vector{2}, Count: 5, Priority: 1},
		{Name: "a low", Size: Vector{2}, Count: 2},
		{Name: "b high", Size: Vector{1}, Count: 9, Priority: 1},
		{Name: "b low", Size: Vector{1}, Count: 5},
	}
	r := Pack(items, nil, types, func(item, target int) int {
		if item/2 != target {
			return 0
		}
		return Any
	})
	var got [][2]int
	for _, pat := range r.Patterns {
		var holds [2]int
		for _, h := range pat.Holds {
			holds[1-items[h.Item].Priority] += h.Count
		}
		for range pat.Times {
			got = append(got, holds)
		}
	}
	want := slices.Clone(got)
	slices.SortFunc(want, func(a, b [2]int) int { return slices.Compare(b[:], a[:]) })
	if diff := cmp.Diff(want, got); diff != "" || len(got) != 8 {
		t.Errorf("of high and low priority hold %d bins (-want +got):\n%s", len(got), diff)
	}
}

func TestUndoRestoresTheSpace(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		in := instances(t)
		if len(in.items) == 0 {
			return
		}
		s := NewSpace(in.items, in.bins, in.fits)
		puts := func(label string, n int) {
			for range rapid.IntRange(0, n).Draw(t, label) {
				if len(in.bins) > 0 && rapid.IntRange(0, 4).Draw(t, "close") == 0 {
					s.Close(rapid.IntRange(0, len(in.bins)-1).Draw(t, "bin"))
					continue
				}
				s.Put(rapid.IntRange(0, len(in.items)-1).Draw(t, "item"), rapid.IntRange(0, 5).Draw(t, "pieces"))
			}
		}
		puts("first puts", 4)
		state := func() string { return fmt.Sprint(s.free, s.holds, s.next, s.shut) }
		mark, before := s.Mark(), state()
		puts("more puts", 6)
		s.Undo(mark)
		if after := state(); after != before {
			t.Fatalf("space (-before +after):\n%s", cmp.Diff(before, after))
		}
	})
}

func FuzzPack(f *testing.F) {
	f.Add([]byte("one two three four five six seven"))
	f.Fuzz(rapid.MakeFuzz(func(t *rapid.T) {
		in := instances(t)
		if err := in.check(in.pack()); err != nil {
			t.Fatal(err)
		}
	}))
}

// Items that are apart share no bin, few or many of them, however many bins less that would take.
func TestPackKeepsItemsApart(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 20, fewItems + 20} {
		in := instance{types: []Type{{Name: "type", Capacity: Vector{100, 100, 1000}, Price: 1, Limit: 1000}}}
		for i := range n {
			it := Item{Name: fmt.Sprintf("item-%03d", i), Size: Vector{1, int64(1 + i%3), 1}, Count: 2}
			for other := range i {
				it.Apart = append(it.Apart, other)
			}
			in.items, in.most = append(in.items, it), append(in.most, []int{Any})
		}
		r := in.pack()
		if err := in.check(r); err != nil {
			t.Error(err)
		}
		if got := r.Price(in.types); got != int64(n) {
			t.Errorf("%d items: %d bins", n, got)
		}
	}
}

// Who made room for another leaves none to who is less important: then nobody is moved (SPEC C9).
func TestRoomOfWhoMovedIsTheMostImportants(t *testing.T) {
	t.Parallel()
	in := instance{
		items: []Item{
			{Name: "first", Size: Vector{1, 2}, Count: 4, Priority: 2, Apart: []int{1}}, {Name: "second", Size: Vector{2, 2}, Count: 4, Priority: 2},
			{Name: "lesser", Size: Vector{0, 3}, Count: 2},
		},
		bins: []Bin{{Name: "b0", Free: Vector{5, 6}}, {Name: "b1", Free: Vector{7, 1}}, {Name: "b2", Free: Vector{3, 5}}, {Name: "b3", Free: Vector{4, 4}}},
		most: [][]int{{Any, 2, 2, Any}, {2, 0, 1, 2}, {Any, Any, 1, Any}},
	}
	r := in.pack()
	held := make([][]Held, len(in.bins))
	for _, p := range r.Puts {
		held[p.Bin] = append(held[p.Bin], Held{p.Item, p.Count})
	}
	for b, holds := range held {
		if r.Left[0] > 0 && in.checkBin(b, in.bins[b].Free, in.instead(holds, 0)) == nil {
			t.Errorf("%d of the first are left over, and bin %d holds %v", r.Left[0], b, holds)
		}
	}
}

// A type of which there may be no more bins is no choice: who has only that goes into the bins that exist before who has another one.
func TestWhoCanHaveNoNewBinGoesIntoThoseThatExist(t *testing.T) {
	t.Parallel()
	items := []Item{{Name: "any", Size: Vector{3}, Count: 1}, {Name: "only", Size: Vector{2}, Count: 1}}
	types := []Type{{Name: "full", Capacity: Vector{4}, Price: 1}, {Name: "other", Capacity: Vector{4}, Price: 1, Limit: 1}}
	for _, apart := range [][]int{nil, {1}} {
		items[0].Apart = apart
		r := Pack(items, []Bin{{Name: "bin", Free: Vector{4}}}, types, func(item, target int) int {
			if item == 1 && target == 2 {
				return 0
			}
			return Any
		})
		if want := []Put{{Bin: 0, Item: 1, Count: 1}}; !slices.Equal(r.Puts, want) || total(r.Left) > 0 {
			t.Errorf("puts %v, left %v; want %v", r.Puts, r.Left, want)
		}
	}
}

// Where there may be less of all types together, a bin that takes less of that is as good as a larger one that serves more (SPEC C30).
func TestFirstBinsServeTheMostForTheirWeight(t *testing.T) {
	t.Parallel()
	types := []Type{{Name: "heavy", Capacity: Vector{8}, Price: 1, Limit: 1, Weight: 4}, {Name: "light", Capacity: Vector{4}, Price: 9, Limit: 1, Weight: 1}}
	items := []Item{{Name: "a", Size: Vector{4}, Count: 2}, {Name: "b", Size: Vector{3}, Count: 1}}
	r := Pack(items, nil, types, func(item, target int) int { return Any * max(0, 1-(item-target)*(item-target)) })
	if len(r.Patterns) != 2 || r.Patterns[0].Type != 1 {
		t.Errorf("bins in the order %+v", r.Patterns)
	}
}

// Sums of amounts are the largest number there is rather than less than nothing, which would be room.
func TestAmountsDoNotOverflow(t *testing.T) {
	t.Parallel()
	v := Vector{math.MaxInt64 / 2, 1, math.MaxInt64}
	for _, tt := range []struct{ got, want Vector }{
		{v.Times(3), Vector{math.MaxInt64, 3, math.MaxInt64}},
		{v.Times(-1), Vector{}},
		{v.Plus(v), Vector{math.MaxInt64 - 1, 2, math.MaxInt64}},
		{v.Plus(v).Plus(v), Vector{math.MaxInt64, 3, math.MaxInt64}},
		{Vector{1}.Minus(v), Vector{}},
	} {
		if tt.got != tt.want {
			t.Errorf("%v, want %v", tt.got, tt.want)
		}
	}
}

// Touched are the bins that something was put into, and no others: of those that were full, or closed, nobody says so.
func TestTouchedBinsHoldSomething(t *testing.T) {
	t.Parallel()
	s := NewSpace([]Item{{Name: "i", Size: Vector{2}, Count: 1}}, []Bin{{Free: Vector{2}}, {Free: Vector{3}}, {Free: Vector{4}}}, func(_, bin int) int { return bin })
	mark := s.Mark()
	s.Close(1)
	s.Put(0, 1)
	var got []int
	s.Touched(mark, func(bin int) { got = append(got, bin) })
	if !slices.Equal(got, []int{2}) {
		t.Errorf("touched %v, want the last bin", got)
	}
}

// What is packed without a look at priorities counts only where nobody has the room of somebody more important, however few it leaves
// over (SPEC C9).
func TestFewerLeftOverAreNoExcuse(t *testing.T) {
	t.Parallel()
	in := instance{
		items: []Item{
			{Name: "first", Size: Vector{2, 1}, Count: 4, Priority: 2, Apart: []int{1}}, {Name: "second", Size: Vector{4, 4}, Count: 4, Priority: 2},
			{Name: "lesser", Size: Vector{2, 4}, Count: 4},
		},
		types: []Type{{Name: "type", Capacity: Vector{4, 7}, Price: 2, Limit: 3}},
		most:  [][]int{{Any}, {Any}, {1}},
	}
	r := in.pack()
	for _, pat := range r.Patterns {
		if r.Left[0] > 0 && in.checkBin(0, in.types[0].Capacity, in.instead(pat.Holds, 0)) == nil {
			t.Errorf("%d of the first are left over, and a bin holds %v", r.Left[0], pat.Holds)
		}
	}
}
