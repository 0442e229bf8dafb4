// SPDX-License-Identifier: Apache-2.0

package binpack

import "slices"

// Space is a row of bins while they are being filled, in the order in which they stand. What went in can be taken
// back, latest first. It is not safe for concurrent use.
type Space struct {
	items []Item
	fits  Fits
	apart [][]int32
	least Vector // that any item needs
	free  []Vector
	holds [][]Held
	shut  []bool
	alive []int // bins that could take the smallest piece, in order
	next  []int // by item: all of alive before this is known to be full for it
	log   []entry
}

// entry is one change, so that it can be undone.
type entry struct {
	item, bin, count int // count 0: next[item] was bin; item -1: bin was shut
}

// NewSpace returns the empty space of bins; targets of fits are their indices. The arguments must not change while it
// is in use.
func NewSpace(items []Item, bins []Bin, fits Fits) *Space {
	return newSpace(items, bins, fits, symmetric(items, sortedBy(len(items), func(int, int) int { return 0 })))
}

func newSpace(items []Item, bins []Bin, fits Fits, apart [][]int32) *Space {
	s := &Space{
		items: items, fits: fits, apart: apart, least: smallest(items),
		free: make([]Vector, 0, len(bins)), holds: make([][]Held, 0, len(bins)), shut: make([]bool, 0, len(bins)), next: make([]int, len(items)),
	}
	for b := range bins {
		s.add(bins[b])
	}
	return s
}

// add appends an empty bin, and returns its index.
func (s *Space) add(bin Bin) (index int) {
	index = len(s.free)
	s.free, s.holds, s.shut = append(s.free, bin.Free), append(s.holds, nil), append(s.shut, false)
	if s.least.In(bin.Free) > 0 {
		s.alive = append(s.alive, index)
	}
	return index
}

// smallest is the least that any item needs of each resource.
func smallest(items []Item) Vector {
	var least Vector
	for i := range items {
		for r, v := range items[i].Size {
			if i == 0 || v < least[r] {
				least[r] = v
			}
		}
	}
	return least
}

// Put places up to n pieces of an item, each into the first bin that takes it, and returns how many found a place.
func (s *Space) Put(item, n int) int {
	left := n
	was := s.next[item]
	at := was
	for ; at < len(s.alive) && left > 0; at++ {
		b := s.alive[at]
		m := min(left, s.room(item, b))
		if m > 0 {
			s.put(item, b, m)
			left -= m
		}
		if left == 0 {
			break // the bin may have room for more
		}
	}
	if at != was {
		s.log = append(s.log, entry{item: item, bin: was})
		s.next[item] = at
	}
	return n - left
}

// Into places a piece of an item into a bin that has room, if it may, and reports whether it did.
func (s *Space) Into(item, bin int, may func() bool) bool {
	if s.room(item, bin) <= 0 || !may() {
		return false
	}
	s.put(item, bin, 1)
	return true
}

// Holds returns what was put into a bin, sorted by item.
func (s *Space) Holds(bin int) []Held { return s.holds[bin] }

// Close makes a bin take nothing more.
func (s *Space) Close(bin int) {
	if !s.shut[bin] {
		s.shut[bin] = true
		s.log = append(s.log, entry{item: -1, bin: bin})
	}
}

// Mark returns where the space stands now, for Undo.
func (s *Space) Mark() int { return len(s.log) }

// Undo takes back everything that was put or closed since mark.
func (s *Space) Undo(mark int) {
	for len(s.log) > mark {
		e := s.log[len(s.log)-1]
		s.log = s.log[:len(s.log)-1]
		switch {
		case e.item < 0:
			s.shut[e.bin] = false
			continue
		case e.count == 0:
			s.next[e.item] = e.bin
			continue
		}
		s.change(e.item, e.bin, -e.count)
	}
}

// Touched calls f for every bin that something was put into since mark.
func (s *Space) Touched(mark int, f func(bin int)) {
	for _, e := range s.log[mark:] {
		if e.count > 0 {
			f(e.bin)
		}
	}
}

// room returns how many pieces of an item a bin can still take.
func (s *Space) room(item, bin int) int {
	if s.shut[bin] {
		return 0
	}
	n := s.items[item].Size.In(s.free[bin])
	if n == 0 {
		return 0
	}
	if k, ok := find(s.holds[bin], item); ok {
		return min(n, s.fits(item, bin)-s.holds[bin][k].Count)
	}
	if apartFrom(s.holds[bin], s.apart[item]) {
		return 0
	}
	return min(n, s.fits(item, bin))
}

// put places n pieces in a bin, or takes -n from it.
func (s *Space) put(item, bin, n int) {
	s.log = append(s.log, entry{item: item, bin: bin, count: n})
	s.change(item, bin, n)
}

func (s *Space) change(item, bin, n int) {
	if size := s.items[item].Size; n > 0 {
		s.free[bin] = s.free[bin].Minus(size.Times(n))
	} else {
		s.free[bin] = s.free[bin].Plus(size.Times(-n))
	}
	k, ok := find(s.holds[bin], item)
	if !ok {
		s.holds[bin] = slices.Insert(s.holds[bin], k, Held{Item: item})
	}
	if s.holds[bin][k].Count += n; s.holds[bin][k].Count == 0 {
		s.holds[bin] = slices.Delete(s.holds[bin], k, k+1)
	}
}

func find(holds []Held, item int) (int, bool) {
	return slices.BinarySearchFunc(holds, item, func(h Held, item int) int { return h.Item - item })
}

// apartFrom reports whether a bin holds an item of a sorted list.
func apartFrom(holds []Held, apart []int32) bool {
	if len(apart) == 0 {
		return false
	}
	return slices.ContainsFunc(holds, func(h Held) bool {
		_, ok := slices.BinarySearch(apart, int32(h.Item))
		return ok
	})
}
