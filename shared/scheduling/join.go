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
		v := &l.split[s]
		if len(v.shares) < 2 {
			continue
		}
		open := map[string]int{}
		for _, p := range l.result.Patterns {
			if slices.ContainsFunc(p.Holds, func(h binpack.Held) bool { return l.rows[h.Item].shape != s }) {
				open[domainOf(&l.offers[p.Type].Node, v.key)] += l.takes(s, p) * p.Times
			}
		}
		for i := range v.shares {
			v.shares[i].open = open[v.shares[i].value]
			found = found || v.shares[i].open > 0
		}
	}
	return found
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
