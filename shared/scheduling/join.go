// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"maps"
	"slices"

	"github.com/machine-functions/machine-functions/shared/binpack"
)

// join divides the shapes once more, now that it is known which new Nodes there are for others: who may choose between topology domains
// goes to where these have room. It keeps what is cheaper.
func (l *layout) join(by packer) {
	if !l.lookOpen() {
		return
	}
	before, served, price := l.kept(), l.served(), l.result.Price(l.types)
	l.share()
	if same := slices.EqualFunc(l.split, before.split, func(a, b division) bool { return slices.EqualFunc(a.shares, b.shares, sameGets) }); same {
		return
	}
	l.settle(by)
	for s, n := range l.served() {
		if n < served[s] {
			l.restore(before)
			return
		}
	}
	if l.result.Price(l.types) >= price {
		l.restore(before)
	}
}

// served returns how many Pods of each shape have a place.
func (l *layout) served() []int {
	n := make([]int, len(l.Shapes))
	for s, by := range l.placed() {
		for _, got := range by {
			n[s] += got
		}
	}
	return n
}

func sameGets(a, b share) bool { return a.gets == b.gets }

// lookOpen counts, for the shapes that are divided, the room on new Nodes that are there for others too. It reports whether there is any.
func (l *layout) lookOpen() bool {
	found := false
	for s := range l.split {
		v, d := &l.split[s], l.Shapes[s].demand
		if len(v.shares) < 2 {
			continue
		}
		open := map[string]int{}
		for _, p := range l.result.Patterns {
			node := &l.offers[p.Type].Node
			if room := l.beside(s, p); room > 0 {
				if fit, _ := l.world.fitNew(d, node); fit > 0 {
					open[domainOf(node, v.key)] += min(room, fit) * p.Times
				}
			}
		}
		for i := range v.shares {
			v.shares[i].open = open[v.shares[i].value]
			found = found || v.shares[i].open > 0
		}
	}
	return found
}

// beside returns how many Pods of a shape a new Node has room for that holds others too.
func (l *layout) beside(shape int, p binpack.Pattern) int {
	free, others := l.free[p.Type], false
	for _, h := range p.Holds {
		if of := l.rows[h.Item].shape; of != shape {
			if others = true; l.clashOnHost(l.Shapes[of].demand, l.Shapes[shape].demand) {
				return 0
			}
			free = free.Minus(l.items[h.Item].Size.Times(h.Count))
		}
	}
	if !others {
		return 0
	}
	return l.Shapes[shape].demand.size.In(free)
}

// kept is what a placement was, so that it can be again.
type kept struct {
	split  []division
	skews  [][]skew // by shape
	rows   []row
	items  []binpack.Item
	result binpack.Result
}

func (l *layout) kept() kept {
	k := kept{split: slices.Clone(l.split), rows: l.rows, items: l.items, result: l.result}
	for s := range k.split {
		k.split[s].shares = slices.Clone(k.split[s].shares)
		skews := slices.Clone(l.Shapes[s].demand.skews)
		for i := range skews {
			skews[i].room = maps.Clone(skews[i].room)
		}
		k.skews = append(k.skews, skews)
	}
	return k
}

func (l *layout) restore(k kept) {
	l.split, l.rows, l.items, l.result = k.split, k.rows, k.items, k.result
	for s, skews := range k.skews {
		l.Shapes[s].demand.skews = skews
	}
}
