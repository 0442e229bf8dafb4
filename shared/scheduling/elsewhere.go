// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mostAsked bounds how many places a Mover looks at for Pods that have to leave their domains: some tenths of a second.
const mostAsked = 100_000

// moves is where a Mover has moved Pods to.
type moves struct {
	to    map[int]bool // items that moved
	away  map[int]bool // of them, those that left the domains that they were in
	looks int          // see mostAsked
	asked bool         // the scheduler's rules are asked for the piece at hand
}

func (v *moves) note(m *Mover, n int, pods []*corev1.Pod, away bool) {
	for _, p := range pods {
		i, _ := m.item(p, n)
		v.to[i] = true
		if away {
			v.away[i] = true
		}
	}
}

// selectors returns what selects the Pods that a Pod's place depends on.
func (d *demand) selectors() (all []matcher) {
	for _, t := range slices.Concat(d.far, d.near) {
		all = append(all, t.matcher)
	}
	for _, s := range d.spreads {
		all = append(all, s.matcher)
	}
	return all
}

// meets reports whether where one Pod is may matter to the other.
func (v *moved) meets(other *moved) bool {
	selects := func(a, b *moved) bool {
		return slices.ContainsFunc(a.rules, func(r matcher) bool { return r.pod(b.pod) })
	}
	return v == other && (v.picky || len(v.rules) > 0) || selects(v, other) || selects(other, v)
}

func (m *Mover) meetsAny(item int, others map[int]bool) bool {
	for j := range others {
		if m.moved[item].meets(m.moved[j]) {
			return true
		}
	}
	return false
}

// elsewhere finds places for the Pods of a Node in any domain, as Cluster Autoscaler does: once the Node is gone, one after the other is
// put where the scheduler would let it. What it knows is the world before anybody moved: of Pods that matter to each other those of one
// Node move at a time. The caller takes back what was put if it says no.
func (m *Mover) elsewhere(n int, pods []*corev1.Pod) bool {
	if at, ok := m.at[n]; ok {
		m.space.Close(at)
	}
	mark := m.space.Mark()
	for _, p := range pods { // as nearly always, there is no room
		i, ok := m.item(p, n)
		if !ok || m.moved[i].never || m.admit(n, p, func(int) bool { return true }) < 0 {
			return false
		}
	}
	for _, p := range pods {
		if i, _ := m.item(p, n); m.meetsAny(i, m.moves.to) {
			return false
		}
	}
	m.space.Undo(mark)
	if m.moves.looks += len(pods) * len(m.order); m.moves.looks > mostAsked {
		return false
	}
	w := m.world.without(n)
	for _, p := range pods {
		free := *p
		free.Spec.NodeName = ""
		q := w.Ask(&free)
		q.byName = true // the node that is gone may stand for its class
		at := m.admit(n, p, func(at int) bool { return q.Refused(at) == "" })
		if at < 0 {
			return false
		}
		there := *p
		there.Spec.NodeName = w.nodes[at].Name
		w = w.With(map[int][]*corev1.Pod{at: {&there}})
	}
	return true
}

// admit puts a Pod of Node n on the first node that has room and that it may go to; -1 if there is none.
func (m *Mover) admit(n int, p *corev1.Pod, may func(at int) bool) int {
	i, _ := m.item(p, n)
	m.moves.asked = true
	defer func() { m.moves.asked = false }()
	for bin, at := range m.order {
		if m.space.Into(i, bin, func() bool { return may(at) }) {
			return at
		}
	}
	return -1
}

// without returns the world as it is once a node is gone. Its index stays, with nothing that counts or takes Pods.
func (w *World) without(n int) *World {
	w.running()
	next := w.With(nil)
	next.nodes[n] = Node{Node: &corev1.Node{}, Closed: true}
	for k := range next.kinds {
		next.kinds[k].on, next.kinds[k].leaving = but(next.kinds[k].on, n), but(next.kinds[k].leaving, n)
	}
	gone := map[*corev1.Pod]bool{}
	for _, p := range w.nodes[n].Pods {
		gone[p] = true
	}
	next.far = slices.DeleteFunc(next.far, func(t placedTerm) bool { return gone[t.of] })
	return next
}

// but returns a list without a value; what it is given stays as it is.
func but(list []int, n int) []int {
	if !slices.Contains(list, n) {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(x int) bool { return x == n })
}

// emptiest is how few Pods that count for a constraint over hosts a host holds, and how few another one does.
type emptiest struct{ least, at, next int }

// without returns how few a host holds that is not on Node n.
func (e emptiest) without(n int) int {
	if n == e.at {
		return e.next
	}
	return e.least
}

// hostsOf returns the emptiest hosts for each of a Pod's constraints over hosts: once for all Pods that are alike. While there may have to
// be more hosts than there are, one is as good as empty.
func (m *Mover) hostsOf(p *corev1.Pod) []emptiest {
	if !slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.TopologyKey == corev1.LabelHostname && c.WhenUnsatisfiable == corev1.DoNotSchedule
	}) {
		return nil
	}
	key := string(appendMap(append(m.world.appendSpec(nil, p), '\n'), p.Labels))
	if all, ok := m.hosts[key]; ok {
		return all
	}
	d, all := m.world.compile(p), []emptiest(nil)
	for i := range d.spreads {
		if s := &d.spreads[i]; s.overHosts() {
			all = append(all, m.world.emptiest(d, s))
		}
	}
	m.hosts[key] = all
	return all
}

func (w *World) emptiest(d *demand, s *spread) emptiest {
	if s.minDomains > 1 {
		return emptiest{at: -1}
	}
	e, counts := emptiest{least: math.MaxInt32, at: -1, next: math.MaxInt32}, w.held(s)
	for n := range w.nodes {
		switch c := counts[n]; {
		case w.nodes[n].Gone || !d.counts(s, w.nodes[n].Node):
		case c < e.least:
			e = emptiest{least: c, at: n, next: e.least}
		default:
			e.next = min(e.next, c)
		}
	}
	return e
}
