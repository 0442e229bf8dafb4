// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"math"
)

// narrow leaves one domain to Pods that have to follow the first of them: that which takes the most. The others hold it down
// as far as they are there.
func (v *division) narrow() {
	best := -1
	for i := range v.shares {
		if best < 0 || v.takesMore(i, best) > 0 {
			best = i
		}
	}
	for i := range v.shares {
		if i != best {
			v.shares[i].most, v.shares[i].old = 0, 0
		}
	}
}

func (v *division) takesMore(i, j int) int {
	a, b := &v.shares[i], &v.shares[j]
	return cmp.Or(cmp.Compare(v.reach(i), v.reach(j)), cmp.Compare(a.old, b.old), cmp.Compare(a.most, b.most))
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
