// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"math"
	"slices"
)

// domains returns the values of a topology key that Pods of the shape could run under, with the most that fit there.
func (l *layout) domains(d *demand, key string, count int) []share {
	by := map[string]*share{}
	at := func(value string) *share {
		if by[value] == nil {
			by[value] = &share{value: value}
		}
		return by[value]
	}
	for b, n := range l.bins {
		value := domainOf(&l.world.nodes[n], key)
		if fit := l.world.fit(d, n); fit > 0 {
			s := at(value)
			s.old = min(math.MaxInt32, s.old+min(fit, d.size.In(l.room[b].Free)))
			s.most = s.old
		}
	}
	for i := range l.offers {
		if fit, _ := l.world.fitNew(d, &l.offers[i].Node); fit > 0 {
			s, per := at(domainOf(&l.offers[i].Node, key)), min(fit, d.size.In(l.free[i]))
			s.most = min(math.MaxInt32, s.most+per*min(max(0, l.offers[i].Limit), math.MaxInt16))
			if per > 0 && l.offers[i].Limit > 0 {
				s.offered(l.offers[i].Price, per, d.atOnce(key, count))
			}
		}
	}
	shares := make([]share, 0, len(by))
	for _, s := range by {
		shares = append(shares, *s)
	}
	slices.SortFunc(shares, func(a, b share) int { return cmp.Compare(a.value, b.value) })
	return shares
}

// offered notes an offer of Nodes that each take per Pods: that counts which is cheapest for as many as may come at once.
func (s *share) offered(price int64, per, count int) {
	nodes := int64((count + per - 1) / per)
	price = min(price, math.MaxInt64/nodes) * nodes
	if s.per == 0 || cmp.Or(cmp.Compare(price, s.price), cmp.Compare(s.per, per)) < 0 {
		s.per, s.price = per, price
	}
}

// atOnce returns how many of so many Pods a domain gets at once before others get any.
func (d *demand) atOnce(key string, count int) int {
	if d.repels(key) {
		return 1
	}
	for _, s := range d.spreads {
		if s.key == key && s.selfCounts {
			count = min(count, max(1, s.maxSkew))
		}
	}
	return count
}
