// SPDX-License-Identifier: Apache-2.0

package binpack

import (
	"math"
	"slices"
)

const (
	// fewItems is how many items a lot may have to be packed by columns: their cost grows faster than that of the rest.
	fewItems = 64
	// searchSteps bounds one search for a column, columnSteps all that is done about one lot.
	searchSteps = 20_000
	columnSteps = 2_000_000
	// briefly is by how much less is done where it matters who finds a place rather than what that costs.
	briefly = 20
)

// effort is what may be done of something that takes so many steps otherwise.
func (p *problem) effort(steps int) int {
	if p.brief {
		return steps / briefly
	}
	return steps
}

// column is a filling of a bin of one class.
type column struct {
	class int
	holds []held
}

// master is the linear program of buying columns, in parts if need be, so that all that waits is held: a revised
// simplex whose columns are made when they are needed (Gilmore and Gomory).
type master struct {
	*lot
	left    []int32
	open    func(class int) bool
	rows    []int32 // items that wait
	row     []int   // by item
	inverse [][]float64
	basis   []column  // by row
	value   []float64 // by row: how many of it are bought
	worth   []float64 // by item: what one more piece would cost
	until   int       // of the lot's steps
}

// newMaster starts with a column for each item alone; it returns nil if some item cannot be held at all.
func (l *lot) newMaster(left []int32, open func(int) bool, until int) *master {
	m := &master{lot: l, left: left, open: open, row: make([]int, len(left)), worth: make([]float64, len(left)), until: until}
	for i, n := range left {
		if n > 0 {
			m.row[i] = len(m.rows)
			m.rows = append(m.rows, int32(i))
		}
	}
	for row, i := range m.rows {
		best, pieces, each := -1, int32(0), math.Inf(1)
		for c := range l.room {
			if n := min(l.most[c][i], left[i]); n > 0 && open(c) && l.price[c]/float64(n) < each {
				best, pieces, each = c, n, l.price[c]/float64(n)
			}
		}
		if best < 0 {
			return nil
		}
		m.inverse = append(m.inverse, make([]float64, len(m.rows)))
		m.inverse[row][row] = 1 / float64(pieces)
		m.basis = append(m.basis, column{class: best, holds: []held{{item: i, count: pieces}}})
		m.value = append(m.value, float64(left[i])/float64(pieces))
		m.worth[i] = each
	}
	return m
}

// solve improves the program until no column is found that is worth more than its price, or the steps are used up.
func (m *master) solve() {
	for m.steps < m.until && (m.round(searchSteps/20) || !m.o.brief && m.steps < m.until && m.round(searchSteps)) {
	}
}

// round searches a column of every class with so many steps, and reports whether one entered.
func (m *master) round(steps int) (entered bool) {
	for c := range m.room {
		if !m.open(c) {
			continue
		}
		if k := m.fullest(c, m.worth, m.left, m.price[c]*(1+1e-7), steps); len(k.holds) > 0 {
			entered = m.enter(column{class: c, holds: slices.Clone(k.holds)}) || entered
		}
	}
	return entered
}

// over returns by what factor a bin of any class may be worth more than its price, as far as could not be ruled out.
func (m *master) over(steps int) (factor float64) {
	for c := range m.room {
		k := m.fullest(c, m.worth, m.left, m.price[c], steps)
		factor = max(factor, k.bound/m.price[c])
	}
	return factor
}

// enter exchanges a column for one of the basis; it reports whether that was of use.
func (m *master) enter(x column) bool {
	gain := -m.price[x.class]
	for _, h := range x.holds {
		gain += m.worth[h.item] * float64(h.count)
	}
	if gain < 1e-9*m.price[x.class] {
		return false
	}
	m.steps += len(m.rows) * len(m.rows) / 8
	towards := m.towards(x)
	leave, ratio := m.leaving(towards)
	if leave < 0 {
		return false
	}
	own := m.inverse[leave]
	for c := range own {
		own[c] /= towards[leave]
	}
	for row, t := range towards {
		if row == leave || t == 0 {
			continue
		}
		for c, v := range own {
			m.inverse[row][c] -= t * v
		}
		m.value[row] = max(0, m.value[row]-t*ratio)
	}
	m.value[leave], m.basis[leave] = ratio, x
	for row, i := range m.rows {
		m.worth[i] -= gain * own[row]
	}
	return true
}

// enterKnown enters columns that were made before, as far as they are still possible.
func (m *master) enterKnown(known []column) {
	for _, x := range known {
		if m.open(x.class) && !slices.ContainsFunc(x.holds, func(h held) bool { return h.count > m.left[h.item] }) {
			m.enter(x)
		}
	}
}

// leaving returns which column of the basis is gone first, and when; -1 if none is.
func (m *master) leaving(towards []float64) (leave int, ratio float64) {
	leave, ratio = -1, math.Inf(1)
	for row, t := range towards {
		if t > 1e-9 && m.value[row]/t < ratio-1e-12 {
			leave, ratio = row, m.value[row]/t
		}
	}
	return leave, ratio
}

// towards returns what of each column of the basis one of x takes the place of.
func (m *master) towards(x column) []float64 {
	out := make([]float64, len(m.rows))
	for row, inverse := range m.inverse {
		for _, h := range x.holds {
			out[row] += inverse[m.row[h.item]] * float64(h.count)
		}
	}
	return out
}

// byColumns packs what waits by columns: as many as the program buys whole, then the program again for the rest. What
// is left of it at any time is also packed by mix; the best is kept. It uses up left and limits.
func (l *lot) byColumns(left []int32, limits []int) ([]stack, []int32) {
	until := l.steps + l.o.effort(columnSteps)
	var taken []stack
	var known []column
	best := l.mixed(nil, left, limits)
	for {
		m := l.newMaster(left, func(c int) bool { return limits[c] > 0 }, until)
		if m == nil || len(m.rows) == 0 {
			return best.stacks, best.left
		}
		m.enterKnown(known)
		m.solve()
		known = append(known, m.basis...)
		taken = append(taken, m.take(limits)...)
		if now := l.mixed(taken, left, limits); now.better(best) {
			best = now
		}
	}
}

// packing is one way to pack a lot.
type packing struct {
	stacks []stack
	left   []int32
	waits  int
	cost   float64
}

func (p packing) better(q packing) bool {
	return p.waits < q.waits || p.waits == q.waits && p.cost < q.cost*(1-1e-9)
}

// mixed adds to stacks what mix makes of what is left. It changes none of its arguments.
func (l *lot) mixed(stacks []stack, left []int32, limits []int) packing {
	p := packing{left: slices.Clone(left)}
	p.stacks = append(slices.Clone(stacks), l.mix(p.left, slices.Clone(limits))...)
	p.waits, p.cost = sum(p.left), l.cost(p.stacks)
	return p
}

// take buys what the program buys whole; else the column that it buys most of. What they hold waits no more.
func (m *master) take(limits []int) (taken []stack) {
	most := 0
	for row := range m.basis {
		if m.value[row]-math.Floor(m.value[row]+1e-6) > m.value[most]-math.Floor(m.value[most]+1e-6) {
			most = row
		}
		if n := int(m.value[row] + 1e-6); n > 0 {
			taken = m.buy(taken, m.basis[row], n, limits)
		}
	}
	if len(taken) == 0 {
		taken = m.buy(taken, m.basis[most], 1, limits)
	}
	return taken
}

// buy buys up to n of a column: as many as are allowed and as enough waits for.
func (m *master) buy(taken []stack, x column, n int, limits []int) []stack {
	n = min(n, limits[x.class])
	used := 0.0
	for _, h := range x.holds {
		n = min(n, int(m.left[h.item]/h.count))
		used += m.worth[h.item] * float64(h.count)
	}
	if n <= 0 {
		return taken
	}
	for _, h := range x.holds {
		m.left[h.item] -= int32(n) * h.count
	}
	limits[x.class] -= n
	holds := slices.Clone(x.holds)
	slices.SortFunc(holds, compareHeld)
	return append(taken, stack{class: x.class, times: n, holds: holds, used: used})
}

func sum(left []int32) (n int) {
	for _, l := range left {
		n += int(l)
	}
	return n
}
