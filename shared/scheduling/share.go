// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"maps"
	"slices"
)

// rule is a spread constraint that divides shapes: as many Pods as it selects count, of whichever shape.
type rule struct {
	matcher
	key string
}

// meet finds out which shapes count for the constraints of which others: revisions of one app, Pods with volumes of their own.
func (l *layout) meet() {
	at := map[string]int{}
	for s := range l.split {
		v := &l.split[s]
		if v.spread == nil {
			continue
		}
		name := v.key + "\n" + v.spread.matcher.String()
		k, ok := at[name]
		if !ok {
			k = len(l.rules)
			at[name] = k
			l.rules = append(l.rules, rule{v.spread.matcher, v.key})
		}
		v.own = k
	}
	for s := range l.split {
		for k, r := range l.rules {
			if r.key == l.split[s].key && r.pod(l.Shapes[s].demand.pod) {
				l.split[s].under = append(l.split[s].under, k)
			}
		}
	}
}

// share divides all shapes anew, one priority after the other as the scheduler takes them: what is to come of a lower one
// is nothing to a higher one. Among equals each is divided twice, in the end everybody counts everybody else.
func (l *layout) share() {
	come := make([]map[string]int, len(l.rules))
	for k := range come {
		come[k] = map[string]int{}
	}
	count := func(v *division, times int) {
		for _, k := range v.under {
			for i := range v.shares {
				come[k][v.shares[i].value] += times * v.shares[i].gets
			}
		}
	}
	for _, equals := range l.byPriority() {
		for pass := range 2 {
			for _, s := range equals {
				v := &l.split[s]
				if pass > 0 {
					count(v, -1)
				}
				for i := range v.shares {
					if v.spread != nil {
						v.shares[i].comes = come[v.own][v.shares[i].value]
					}
				}
				v.fill()
				count(v, 1)
			}
		}
	}
}

// byPriority returns the shapes of each priority, the highest first.
func (l *layout) byPriority() [][]int {
	by := map[int32][]int{}
	for s := range l.Shapes {
		priority := priorityOf(l.Shapes[s].demand.pod)
		by[priority] = append(by[priority], s)
	}
	var all [][]int
	for _, priority := range slices.Backward(slices.Sorted(maps.Keys(by))) {
		all = append(all, by[priority])
	}
	return all
}
