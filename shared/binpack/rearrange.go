// SPDX-License-Identifier: Apache-2.0

package binpack

import "slices"

// leastLooks is how many looks a rearrangement may take in any case; beyond, as many as filling the bins takes.
const leastLooks = 10_000

// rearrangement finds places for pieces whose bins others took that have more of a choice: these go to other bins, out of
// which others may have to go in turn (augmenting paths). Whoever has a place keeps one. Of pieces that fill a bin each
// as many get a place as can, of other sizes a piece may be left over that a search without bounds had placed.
type rearrangement struct {
	*Space
	looks int    // that it may still take, at a bin or at what it holds
	moved bool   // somebody made room for another
	dead  []bool // by item: no piece of it can go anywhere else, or it is the one that a place is looked for
}

func rearrange(s *Space) *rearrangement {
	return &rearrangement{Space: s, looks: leastLooks + len(s.items)*len(s.alive), dead: make([]bool, len(s.items))}
}

// fill places pieces of items in this order, and returns how many are left over. Whoever makes room for another may leave room for
// those before: they are asked again.
func (r *rearrangement) fill(order, pieces []int) (left []int) {
	left = slices.Clone(pieces)
	for again := true; again; {
		looks, placed := r.looks, 0
		for _, i := range order {
			n := r.Put(i, left[i])
			left[i] -= n
			placed += n
		}
		again = r.moved && placed > 0 && r.looks < looks
		clear(r.next) // what was full may have room
	}
	return left
}

// passedOver reports whether a piece is left over that some bin would take, in place of pieces of lower priority if need be.
func (s *Space) passedOver(left []int) bool {
	for i, n := range left {
		for b := 0; n > 0 && b < len(s.holds); b++ {
			if s.wouldTake(i, b) {
				return true
			}
		}
	}
	return false
}

func (s *Space) wouldTake(item, bin int) bool {
	free, has := s.free[bin], 0
	for _, h := range s.holds[bin] {
		switch held := s.items[h.Item]; {
		case h.Item == item:
			has = h.Count
		case held.Priority < s.items[item].Priority:
			free = free.Plus(held.Size.Times(h.Count))
		case apartFrom([]Held{h}, s.apart[item]):
			return false
		}
	}
	return s.items[item].Size.In(free) > 0 && s.fits(item, bin) > has
}

// Put places up to n pieces of an item, and returns how many found a place.
func (r *rearrangement) Put(item, n int) (placed int) {
	for placed < n {
		more := r.place(item, n-placed)
		if more == 0 {
			break
		}
		placed += more
		clear(r.dead)
	}
	return placed
}

func (r *rearrangement) place(item, n int) int {
	left := n - r.Space.Put(item, n)
	r.dead[item] = true
	for _, b := range r.alive {
		for left > 0 && r.looks > 0 && r.makeRoom(item, b) {
			left--
		}
		if left == 0 || r.looks <= 0 {
			break
		}
	}
	r.dead[item] = left == n
	return n - left
}

// makeRoom places one piece of an item in a bin in place of pieces of another item that find other bins, and reports
// whether there are such; if not, everything is as before.
func (r *rearrangement) makeRoom(item, bin int) bool {
	if len(r.holds[bin]) == 0 {
		return false
	}
	r.looks--
	if r.fits(item, bin) == 0 {
		return false
	}
	for _, h := range slices.Clone(r.holds[bin]) {
		if r.dead[h.Item] || r.looks <= 0 {
			continue
		}
		r.looks--
		mark := r.Mark()
		r.put(h.Item, bin, -h.Count)
		if r.room(item, bin) > 0 {
			r.put(item, bin, 1)
			rest := h.Count
			if stay := min(rest, r.room(h.Item, bin)); stay > 0 {
				r.put(h.Item, bin, stay)
				rest -= stay
			}
			if r.place(h.Item, rest) == rest {
				r.moved = true
				return true
			}
		}
		r.Undo(mark)
	}
	return false
}
