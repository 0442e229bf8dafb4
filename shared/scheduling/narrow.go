// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"math"
)

// narrow leaves one domain to Pods that have to follow the first of them: that which takes the most, then the cheapest.
// The others hold it down as far as they are there.
func (v *division) narrow() {
	best, most := 0, 0
	for i, s := range v.shares {
		n, than := v.reach(i), v.shares[best]
		if i == 0 || cmp.Or(cmp.Compare(n, most), cmp.Compare(s.old, than.old), cmp.Compare(than.price, s.price), cmp.Compare(s.most, than.most)) > 0 {
			best, most = i, n
		}
	}
	for i := range v.shares {
		if i != best {
			v.shares[i].most, v.shares[i].old = 0, 0
		}
	}
}

// reach returns how many Pods one domain takes if no other one takes any.
func (v *division) reach(i int) int {
	s := &v.shares[i]
	n := min(s.most, v.count)
	if v.spread == nil {
		return n
	}
	least, alive := math.MaxInt32, 1
	for j, other := range v.shares {
		if j != i && other.lives {
			least, alive = min(least, other.runs), alive+1
		}
	}
	if alive < v.spread.minDomains {
		least = 0
	}
	switch ahead := s.runs - least; {
	case v.spread.selfCounts:
		return max(0, min(n, v.spread.maxSkew-ahead))
	case ahead > v.spread.maxSkew:
		return 0
	}
	return n
}
