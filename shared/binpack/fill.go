// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"cmp"
	"slices"
)

// spread is how many stacks of equal bins a lot is opened in at least, as far as there are enough bins: the more
// stacks, the finer the packing. Beyond that cost does not grow with the number of pieces.
const spread = 512

// mix opens bins until nothing waits or nothing fits. Every bin is filled with the largest pieces that fit, taken from
// those that need most of what the bin has most left of, so that no resource runs out before the others. Which class is
// opened follows from rates that are found anew as the waiting pieces change. Mix takes what it places off left, and
// the bins that it opens off limits.
func (l *lot) mix(left []int32, limits []int) []stack {
	var stacks []stack
	m := &mixing{lot: l, left: left, limits: limits, lists: make([][N][]int32, len(l.room)), cache: make([]stack, len(l.room))}
	for m.rank(); ; {
		s, ok := m.next()
		if !ok {
			return stacks
		}
		for _, h := range s.holds {
			left[h.item] -= h.count * int32(s.times)
		}
		limits[s.class] -= s.times
		stacks = append(stacks, s)
		if m.opened += l.price[s.class] * float64(s.times); m.opened > m.until {
			m.rank()
		}
	}
}

// mixing is the state of mix.
type mixing struct {
	*lot
	left   []int32
	limits []int
	rates  rates
	worth  []float64    // by item
	order  []int32      // items that wait, most worth first
	scarce []int        // axes that have a rate
	bound  []float64    // by class: worth of a full bin for its price
	ranked []int        // classes by bound
	lists  [][N][]int32 // by class, scarce axis: items that need most of it, most worth first
	cache  []stack      // by class, as long as it can be repeated
	times  int          // bins that are filled at once
	opened float64      // price of the bins opened
	until  float64      // when to rank again
}

// rank finds the rates for what waits now, and the orders that follow from them.
func (m *mixing) rank() {
	need := m.need(m.left)
	m.rates = m.lot.rates(need, func(c int) bool { return m.limits[c] > 0 })
	var total float64
	m.scarce = m.scarce[:0]
	for r := range m.axes {
		total += need[r] * m.rates[r]
		if m.rates[r] > 0 {
			m.scarce = append(m.scarce, r)
		}
	}
	m.until = m.opened + total/24
	dearest := 0.0
	m.bound, m.ranked = m.bound[:0], m.ranked[:0]
	for c := range m.room {
		m.bound = append(m.bound, m.rates.worth(&m.room[c], len(m.axes))/m.price[c])
		m.ranked = append(m.ranked, c)
		if m.bound[c] > 1-1e-6 {
			dearest = max(dearest, m.price[c])
		}
	}
	slices.SortStableFunc(m.ranked, func(a, b int) int { return cmp.Compare(m.bound[b], m.bound[a]) })
	m.times = 1
	for most := slices.Max(m.left) / 2; dearest > 0 && total/dearest > float64(m.times*spread) && m.times <= int(most); {
		m.times *= 2 // of no piece there are enough for more bins
	}
	m.sort()
}

// sort orders the waiting items, and divides them by what they need most of compared with each class.
func (m *mixing) sort() {
	if m.worth == nil {
		m.worth = make([]float64, len(m.size))
	}
	m.order = m.order[:0]
	for i, n := range m.left {
		if n > 0 {
			m.worth[i] = m.rates.worth(&m.size[i], len(m.axes))
			m.order = append(m.order, int32(i))
		}
	}
	sortByWorth(m.order, m.worth)
	for c := range m.room {
		m.cache[c].holds = nil
		for k := range m.lists[c] {
			m.lists[c][k] = m.lists[c][k][:0]
		}
		for _, i := range m.order {
			if m.most[c][i] > 0 {
				k := m.heaviest(i, c)
				m.lists[c][k] = append(m.lists[c][k], i)
			}
		}
	}
}

// heaviest returns which of the scarce resources an item needs most of, compared with a bin of the class.
func (m *mixing) heaviest(i int32, class int) int {
	best, most := 0, 0.0
	for k, r := range m.scarce {
		if v := shareOf(&m.size[i], &m.room[class], r); v > most {
			best, most = k, v
		}
	}
	return best
}

// next returns the bins to open: of the class whose next bin holds most worth for its price.
func (m *mixing) next() (best stack, ok bool) {
	for {
		ratio := 0.0
		for _, c := range m.ranked {
			if ok && m.bound[c] <= ratio {
				break
			}
			if m.limits[c] <= 0 {
				continue
			}
			if !m.repeats(&m.cache[c]) {
				m.cache[c] = m.fill(c)
			}
			s := &m.cache[c]
			if v := (s.used + 1e-9) / m.price[c]; len(s.holds) > 0 && v > ratio*(1+1e-9) {
				best, ratio, ok = *s, v, true
			}
		}
		if ok || m.times == 1 {
			break
		}
		m.times /= 2
	}
	best.times = min(m.times, max(1, m.limits[best.class]))
	return best, ok
}

// repeats reports whether enough waits to fill more bins in the same way.
func (m *mixing) repeats(s *stack) bool {
	return len(s.holds) > 0 && !slices.ContainsFunc(s.holds, func(h held) bool { return m.left[h.item] < h.count*int32(m.times) })
}

// fill returns how a bin of a class is filled best with what waits.
func (m *mixing) fill(class int) stack {
	sc := &m.lot.scratch
	f := filling{mixing: m, class: class, lists: m.lists[class][:max(1, len(m.scarce))], free: m.room[class], whole: m.room[class], holds: sc.holds[:0]}
	for k := range f.lists {
		sc.next[k], sc.open[k] = 0, -1
	}
	used := 0.0
	for k := f.roomiest(); k >= 0; k = f.roomiest() {
		i := f.lists[k][sc.next[k]]
		m.lot.steps++
		n := f.takes(k, i)
		if n == 0 {
			sc.next[k]++
			continue
		}
		f.put(k, i, n)
		used += float64(n) * m.worth[i]
	}
	sc.holds = f.holds
	out := slices.Clone(f.holds)
	slices.SortFunc(out, compareHeld)
	return stack{class: class, times: 1, holds: out, used: used}
}

// filling is a bin while it is being filled.
type filling struct {
	*mixing
	class       int
	lists       [][]int32 // of items, by the scarce resource that they need most of
	free, whole Vector
	holds       []held
}

// put adds pieces of the item at the head of a list.
func (f *filling) put(k int, i, n int32) {
	open := &f.lot.scratch.open[k]
	if *open < 0 || f.holds[*open].item != i {
		*open = len(f.holds)
		f.holds = append(f.holds, held{item: i})
	}
	f.holds[*open].count += n
	for r := range f.axes {
		f.free[r] -= int64(n) * f.size[i][r]
	}
}

// takes returns how many pieces of the item at the head of a list go in now.
func (f *filling) takes(k int, i int32) int32 {
	have := int32(0)
	if at := f.lot.scratch.open[k]; at >= 0 && f.holds[at].item == i {
		have = f.holds[at].count
	}
	n := min(f.most[f.class][i]-have, f.left[i]/int32(f.times)-have)
	if n <= 0 || !f.fits(i, &f.free) || have == 0 && f.keepsApart(i, f.holds) {
		return 0
	}
	if n > 1 {
		n = min(n, f.stride(k, i))
	}
	return n
}

// roomiest returns the list of items for what the bin has most left of; -1 if no list has any more.
func (f *filling) roomiest() int {
	best, most := -1, -1.0
	for k, list := range f.lists {
		if f.lot.scratch.next[k] >= len(list) {
			continue
		}
		left := 0.0
		if k < len(f.scarce) {
			left = shareOf(&f.free, &f.whole, f.scarce[k])
		}
		if left > most {
			best, most = k, left
		}
	}
	return best
}

// stride returns how many pieces go in at once: until another list's turn comes. Where thousands fit, it is a part of
// them, so that the steps of one fill stay few.
func (f *filling) stride(k int, i int32) int32 {
	fit := int32(Any)
	for r := range f.axes {
		if v := f.size[i][r]; v > 0 {
			fit = int32(min(int64(fit), f.free[r]/v))
		}
	}
	other := -1.0
	for o := range f.lists {
		if o != k && f.lot.scratch.next[o] < len(f.lists[o]) {
			other = max(other, shareOf(&f.free, &f.whole, f.scarce[o]))
		}
	}
	if other < 0 {
		return fit
	}
	r := f.scarce[k]
	ahead := (shareOf(&f.free, &f.whole, r) - other) * float64(f.whole[r]) / float64(max(1, f.size[i][r]))
	return min(fit, max(1, fit/64, int32(min(ahead, Any))))
}

// shareOf is what is left of a resource, as a part of all of it.
func shareOf(free, whole *Vector, r int) float64 {
	return float64(free[r]) / float64(max(1, whole[r]))
}
