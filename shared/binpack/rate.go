// SPDX-License-Identifier: Apache-2.0

package binpack

import "math"

// rates are prices of single units of the resources of a lot.
type rates [N]float64

// worth is what a piece of a size costs by the rates.
func (w *rates) worth(size *Vector, axes int) (sum float64) {
	for r := range axes {
		sum += w[r] * float64(size[r])
	}
	return sum
}

// rates returns the rates at which the needed amounts cost most while no bin is worth more than its price: the dual of
// buying bins in parts. Resources that there is plenty of, whatever is bought, cost nothing. Only classes that are open
// count.
func (l *lot) rates(need [N]float64, open func(class int) bool) (w rates) {
	t := l.tableau(need, open)
	if t.rows == 0 {
		return w
	}
	for range 64 * N {
		if !t.pivot() {
			break
		}
	}
	for row, column := range t.basis {
		if column < t.columns {
			w[column] = max(0, t.cell(row, t.width-1)) / t.scale[column]
		}
	}
	return w
}

// tableau is a linear program: maximize need·w so that room·w ≤ price for every class, by the simplex method. Every
// amount is scaled by the largest bin, so that cells are about one.
type tableau struct {
	rows, columns, width int
	cells                []float64 // rows, then the objective
	basis                []int     // by row: the column that it stands for
	scale                [N]float64
}

func (t *tableau) cell(row, column int) float64 { return t.cells[row*t.width+column] }

func (l *lot) tableau(need [N]float64, open func(int) bool) *tableau {
	t := &tableau{columns: len(l.axes)}
	var classes []int
	for c := range l.room {
		if open(c) {
			classes = append(classes, c)
			for r := range l.axes {
				t.scale[r] = max(t.scale[r], float64(l.room[c][r]), 1)
			}
		}
	}
	t.rows = len(classes)
	t.width = t.columns + t.rows + 1
	size := (t.rows + 1) * t.width
	if cap(l.scratch.cells) < size {
		l.scratch.cells = make([]float64, size)
	}
	t.cells = l.scratch.cells[:size]
	clear(t.cells)
	for row, c := range classes {
		for r := range l.axes {
			t.cells[row*t.width+r] = float64(l.room[c][r]) / t.scale[r]
		}
		t.cells[row*t.width+t.columns+row] = 1
		t.cells[row*t.width+t.width-1] = l.price[c]
		t.basis = append(t.basis, t.columns+row)
	}
	for r := range l.axes {
		t.cells[t.rows*t.width+r] = need[r] / max(t.scale[r], 1)
	}
	return t
}

// pivot improves the objective by one exchange; it reports whether there was one.
func (t *tableau) pivot() bool {
	enter := t.entering()
	if enter < 0 {
		return false
	}
	leave := t.leaving(enter)
	if leave < 0 { // nobody sells the resource: its rate would be boundless
		t.cells[t.rows*t.width+enter] = 0
		return true
	}
	own := t.cells[leave*t.width : (leave+1)*t.width]
	divisor := own[enter]
	for c := range own {
		own[c] /= divisor
	}
	for row := range t.rows + 1 {
		f := t.cell(row, enter)
		if row == leave || f == 0 {
			continue
		}
		other := t.cells[row*t.width : (row+1)*t.width]
		for c, v := range own {
			other[c] -= f * v
		}
	}
	t.basis[leave] = enter
	return true
}

// entering returns the column that improves the objective most, or -1.
func (t *tableau) entering() int {
	best := -1
	for c := range t.width - 1 {
		if v := t.cell(t.rows, c); v > 1e-9 && (best < 0 || v > t.cell(t.rows, best)) {
			best = c
		}
	}
	return best
}

// leaving returns the row that bounds the exchange, or -1.
func (t *tableau) leaving(enter int) int {
	best, ratio := -1, math.Inf(1)
	for row := range t.rows {
		if v := t.cell(row, enter); v > 1e-12 && t.cell(row, t.width-1)/v < ratio-1e-12 {
			best, ratio = row, t.cell(row, t.width-1)/v
		}
	}
	return best
}
