// SPDX-License-Identifier: Apache-2.0

package binpack

import "math"

// N is how many dimensions a Vector has.
const N = 8

// Vector is an amount of every resource, in an order that the caller chooses. Amounts are never negative.
type Vector [N]int64

// Plus returns the sum; it saturates instead of overflowing.
func (v Vector) Plus(w Vector) Vector {
	for r := range v {
		v[r] = saturate(v[r], w[r])
	}
	return v
}

// Add adds w to v in place; it saturates instead of overflowing.
func (v *Vector) Add(w *Vector) {
	for r := range v {
		v[r] = saturate(v[r], w[r])
	}
}

// Minus returns the difference, zero where w is larger.
func (v Vector) Minus(w Vector) Vector {
	for r := range v {
		v[r] = max(0, v[r]-w[r])
	}
	return v
}

// Times returns n times the vector; it saturates instead of overflowing. A negative n counts as zero.
func (v Vector) Times(n int) Vector {
	for r := range v {
		switch {
		case n <= 0 || v[r] == 0:
			v[r] = 0
		case v[r] > math.MaxInt64/int64(n):
			v[r] = math.MaxInt64
		default:
			v[r] *= int64(n)
		}
	}
	return v
}

// In returns how many times v fits into free; Any if v is nothing.
func (v Vector) In(free Vector) int {
	n := int64(Any)
	for r := range v {
		if v[r] <= 0 {
			continue
		}
		if free[r] < v[r] {
			return 0
		}
		n = min(n, free[r]/v[r])
	}
	return int(n)
}

// upTo is In where n pieces, at least 0, fit into nothing at all or into some greater room at least: n*v does not overflow.
func (v *Vector) upTo(n int, free *Vector) int {
	most := int64(n)
	for r := range v {
		if v[r] > free[r] {
			return 0
		}
		if most*v[r] > free[r] {
			most = free[r] / v[r]
		}
	}
	return int(most)
}

// lesser returns the lesser amount of each resource.
func (v Vector) lesser(w *Vector) Vector {
	for r := range v {
		v[r] = min(v[r], w[r])
	}
	return v
}

func saturate(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
