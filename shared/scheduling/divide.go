// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// division is how a shape's Pods are divided among topology domains.
type division struct {
	whole  *row    // not divided
	key    string  // the topology key they are divided by
	shares []share // sorted by value
	spread *spread // the constraint that divides them, if it is one
	count  int
	under  []int // rules that its Pods count for, by index
	own    int   // of the rule of its constraint
}

// share is what one topology domain gets of a shape.
type share struct {
	value string
	runs  int   // Pods that count there already
	comes int   // Pods of other shapes that count and are to come there
	lives bool  // some Node of the domain exists
	most  int   // Pods that could be placed there at most
	old   int   // of them, those that Nodes take that exist
	open  int   // those that new Nodes take which are there for others
	per   int   // those that one more Node takes
	price int64 // of new Nodes for as many as may come at once
	gets  int
}

func (v division) rows(shape int) []row {
	if v.whole != nil {
		r := *v.whole
		r.shape = shape
		return []row{r}
	}
	var rows []row
	for _, s := range v.shares {
		if s.gets > 0 {
			rows = append(rows, row{shape: shape, count: s.gets, times: 1, key: v.key, value: s.value, only: map[string]bool{s.value: true}})
		}
	}
	return rows
}

// divide decides how the Pods of a shape are divided. A shape that is not planned for gets no row.
func (l *layout) divide(s int) division {
	d := l.Shapes[s].demand
	count := len(l.Shapes[s].Pods)
	if len(d.claims.exclusive) > 0 {
		count = min(count, 1)
	}
	keys := d.splitKeys()
	switch {
	case d.bad != "":
		return division{}
	case len(keys) > 1, len(keys) == 1 && (d.spreadsBy(keys[0]) > 1 || d.togetherOnHost()):
		d.bad = reasonSeveralKeys
		return division{}
	case len(keys) == 1:
		return l.divideBy(d, keys[0], count)
	case d.togetherOnHost():
		n := min(count, l.mostTogether(d))
		if n == 0 {
			return division{}
		}
		return division{whole: &row{count: 1, times: n}}
	}
	return division{whole: &row{count: count, times: 1}}
}

// splitKeys returns the topology keys, the host's aside, over which the shape's own Pods depend on each other.
func (d *demand) splitKeys() []string {
	keys := map[string]bool{}
	for _, s := range d.spreads {
		keys[s.key] = true
	}
	for _, t := range d.far {
		if t.pod(d.pod) {
			keys[t.key] = true
		}
	}
	if d.first {
		for _, t := range d.near {
			keys[t.key] = true
		}
	}
	delete(keys, corev1.LabelHostname)
	return slices.Sorted(maps.Keys(keys))
}

func (d *demand) spreadsBy(key string) (n int) {
	for _, s := range d.spreads {
		if s.key == key {
			n++
		}
	}
	return n
}

// togetherOnHost reports whether all Pods of the shape have to share one host.
func (d *demand) togetherOnHost() bool {
	return d.first && slices.ContainsFunc(d.near, func(t term) bool { return t.key == corev1.LabelHostname })
}

// divideBy divides the Pods of a shape over the domains of a key.
func (l *layout) divideBy(d *demand, key string, count int) division {
	v := division{key: key, count: count, shares: l.domains(d, key, count)}
	for i := range d.spreads {
		if s := &d.spreads[i]; s.key == key && v.spread == nil {
			v.spread = s
			v.shares = l.countIn(d, s, v.shares)
		}
	}
	if d.repels(key) {
		for i := range v.shares {
			if v.shares[i].value != nowhere {
				v.shares[i].most = min(1, v.shares[i].most)
			}
		}
	}
	if d.first {
		v.narrow()
	}
	if v.spread == nil || v.spread.selfCounts {
		return v
	}
	only := v.level()
	switch {
	case len(only) == 0:
		return division{}
	case d.repels(key): // one in each of these
		v.shares, v.spread = slices.DeleteFunc(v.shares, func(s share) bool { return !only[s.value] }), nil
		return v
	}
	return division{whole: &row{count: count, times: 1, key: key, only: only}}
}

// takesAny reports whether any domain gets Pods.
func (v *division) takesAny() bool {
	return slices.ContainsFunc(v.shares, func(s share) bool { return s.gets > 0 })
}

// nowhere stands for the Nodes without a topology key, which Pods that keep apart do not meet on. It is no label's value.
const nowhere = "\x00"

func domainOf(n *Node, key string) string {
	if value, ok := n.Labels[key]; ok {
		return value
	}
	return nowhere
}

// level returns the domains with room that are not too far ahead of the emptiest.
func (v *division) level() map[string]bool {
	values := map[string]bool{}
	for _, s := range v.shares {
		if s.most > 0 && s.runs-v.least() <= v.spread.maxSkew {
			values[s.value] = true
		}
	}
	return values
}

// countIn counts what runs in each domain under a spread constraint. Domains of Nodes that count for the constraint
// although they have no room are added: they hold the others down.
func (l *layout) countIn(d *demand, s *spread, shares []share) []share {
	counts := l.world.held(s)
	for n := range l.world.nodes {
		node := l.world.nodes[n].Node
		if l.world.nodes[n].Gone || !d.counts(s, node) {
			continue
		}
		value := node.Labels[s.key]
		i, ok := slices.BinarySearchFunc(shares, value, func(h share, value string) int { return cmp.Compare(h.value, value) })
		if !ok {
			shares = slices.Insert(shares, i, share{value: value})
		}
		shares[i].lives = true
		shares[i].runs += counts[n]
	}
	return shares
}

// counts reports whether a Node's domain counts for a spread constraint.
func (d *demand) counts(s *spread, n *corev1.Node) bool {
	for _, other := range d.spreads {
		if _, ok := n.Labels[other.key]; !ok {
			return false
		}
	}
	if s.byAffinity {
		if ok, err := d.affinity.Match(n); !ok || err != nil {
			return false
		}
	}
	if s.byTaints {
		if _, no := forbids(n.Spec.Taints, d.pod.Spec.Tolerations); no {
			return false
		}
	}
	return true
}

// fill gives one Pod after the other to a domain, as far as constraint and room allow.
func (v *division) fill() {
	for i := range v.shares {
		v.shares[i].gets = 0
	}
	for range v.count {
		best := -1
		least := v.least()
		for i := range v.shares {
			s := &v.shares[i]
			if s.gets >= s.most || v.spread != nil && s.counts()+1-least > v.spread.maxSkew {
				continue
			}
			if best < 0 || s.before(&v.shares[best]) {
				best = i
			}
		}
		if best < 0 {
			return
		}
		v.shares[best].gets++
	}
}

// counts is what a domain holds under the constraint, with everybody who is to come.
func (s *share) counts() int { return s.runs + s.comes + s.gets }

// before reports whether a Pod goes here rather than there, where it may go to both: to Nodes that exist first, then to new ones that
// others need or that have room left, then to where one more is cheapest. Domains that are alike are filled evenly.
func (s *share) before(t *share) bool {
	here, there := s.step(), t.step()
	order := cmp.Compare(here, there)
	if here == onAnother && order == 0 {
		order = cmp.Compare(s.price, t.price)
	}
	return cmp.Or(order, cmp.Compare(s.counts(), t.counts())) < 0
}

// Where the next Pod of a share goes.
const (
	onExisting = iota
	onOpen
	onAnother
)

func (s *share) step() int {
	switch fresh := s.gets - s.old - s.open; {
	case s.gets < s.old:
		return onExisting
	case fresh < 0 || fresh%max(1, s.per) > 0:
		return onOpen
	}
	return onAnother
}

// least is what the emptiest domain holds, or zero while there are fewer domains than the constraint asks for.
func (v *division) least() int {
	least, alive := math.MaxInt, 0
	for _, s := range v.shares {
		if s.lives || s.most > 0 || s.comes > 0 {
			alive++
			least = min(least, s.counts())
		}
	}
	if alive == 0 || v.spread != nil && alive < v.spread.minDomains {
		return 0
	}
	return least
}

// correct compares the packing with the shares. Where a domain took less than its share, the shape is divided anew;
// correct reports whether that changed anything.
func (l *layout) correct() bool {
	placed := l.placed()
	changed, short := l.correctSkews(), false
	for s := range l.split {
		v := &l.split[s]
		for i := range v.shares {
			if got := placed[s][v.shares[i].value]; got < v.shares[i].gets {
				v.shares[i].most, short = got, true
			}
		}
	}
	if !short {
		return changed
	}
	l.share()
	for s := range l.split {
		for _, h := range l.split[s].shares {
			changed = changed || h.gets != placed[s][h.value]
		}
	}
	return changed
}

// placed returns how many Pods of each divided shape found a place, by topology value.
func (l *layout) placed() []map[string]int {
	by := make([]map[string]int, len(l.Shapes))
	for s := range by {
		by[s] = map[string]int{}
	}
	add := func(item, pieces int) {
		r := l.rows[item]
		by[r.shape][r.value] += pieces * r.times
	}
	for _, p := range l.result.Puts {
		add(p.Item, p.Count)
	}
	for _, p := range l.result.Patterns {
		for _, h := range p.Holds {
			add(h.Item, h.Count*p.Times)
		}
	}
	return by
}

// apart returns, by shape, the shapes that share no host with it.
func (l *layout) apart() [][]int {
	out := make([][]int, len(l.Shapes))
	for a := range l.Shapes {
		for b := range a {
			if l.clashOnHost(l.Shapes[a].demand, l.Shapes[b].demand) {
				out[a] = append(out[a], b)
			}
		}
	}
	return out
}

func (l *layout) clashOnHost(a, b *demand) bool {
	return clash(a.ports, b.ports) || collide(a.disks, b.disks) || keepsApart(a, b, true) || keepsApart(b, a, true)
}

// keepsApart reports whether a has a term against b on hosts, or on other topology domains.
func keepsApart(a, b *demand, host bool) bool {
	return slices.ContainsFunc(a.far, func(t term) bool { return (t.key == corev1.LabelHostname) == host && t.pod(b.pod) })
}

// deferred returns the shapes that have to wait because another one that waits too, has a place, and comes first, must not share a
// topology domain with them that is larger than a host. To find a place takes a look at every Node: each shape is asked once.
func (l *layout) deferred(hasPlace func(shape int) bool) []bool {
	waits, asked, has := make([]bool, len(l.Shapes)), make([]bool, len(l.Shapes)), make([]bool, len(l.Shapes))
	placed := func(a int) bool {
		if !asked[a] {
			asked[a], has[a] = true, hasPlace(a)
		}
		return has[a]
	}
	for b := range l.Shapes {
		for a := range l.Shapes {
			x, y := l.Shapes[a].demand, l.Shapes[b].demand
			first := cmp.Or(cmp.Compare(priorityOf(y.pod), priorityOf(x.pod)), cmp.Compare(a, b)) < 0
			if a != b && first && !waits[a] && (keepsApart(x, y, false) || keepsApart(y, x, false)) && placed(a) {
				waits[b] = true
			}
		}
	}
	return waits
}
