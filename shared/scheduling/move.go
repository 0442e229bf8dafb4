// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/binpack"
)

// ReasonNoPlace says that a Pod would find no place if its Node went.
const ReasonNoPlace = "no place to move pod "

// Mover finds places for the Pods of Nodes that are to go, one Node after the other. What it found for one Node is
// taken when the next one asks, so that all Nodes that it said yes to can go together.
type Mover struct {
	world  *World
	order  []int // destinations: nodes of the world
	at     map[int]int
	shapes map[string]int                      // index of an item, by what the Pods ask for and where they are at home
	known  map[*corev1.Pod]int                 // the same, by Pod
	likes  map[*corev1.Container][]*corev1.Pod // Pods of different items, by the containers that they share with others
	buffer []byte
	items  []binpack.Item
	moved  []*moved
	space  *binpack.Space
	taken  map[int]bool
	levels map[string][]level // see levelsOf
	hosts  map[string][]emptiest
	moves  moves
}

// moved is a shape of Pods with the topology domains that it stays in where it can: whatever constraints over such domains
// hold where it runs, go on to hold anywhere in the same domains.
type moved struct {
	*demand
	home  map[string]string
	picky bool      // it may share no host with others, or others none with it
	rules []matcher // which other Pods its place depends on
	never bool      // no Node is planned for it, wherever it is
}

// NewMover returns a Mover for Pods that run on the given Nodes of the world. It prefers destinations in the order
// given. A Node may be both: it can go until something was moved to it, and takes nothing once it goes.
func (w *World) NewMover(pods map[int][]*corev1.Pod, destinations []int) *Mover {
	m := &Mover{world: w, order: destinations, at: map[int]int{}, shapes: map[string]int{}, taken: map[int]bool{}, likes: map[*corev1.Container][]*corev1.Pod{}, levels: map[string][]level{}, hosts: map[string][]emptiest{}, moves: moves{to: map[int]bool{}, away: map[int]bool{}}}
	for i, n := range destinations {
		m.at[n] = i
	}
	all := 0
	for _, on := range pods {
		all += len(on)
	}
	m.known = make(map[*corev1.Pod]int, all)
	for _, n := range slices.Sorted(maps.Keys(pods)) {
		for _, p := range pods[n] {
			m.add(p, n)
		}
	}
	bins := make([]binpack.Bin, len(destinations))
	free := w.free()
	for i, n := range destinations {
		bins[i] = binpack.Bin{Name: w.nodes[n].Name, Free: free[n]}
		if w.nodes[n].Closed {
			bins[i].Free = binpack.Vector{}
		}
	}
	m.space = binpack.NewSpace(m.items, bins, m.fits)
	return m
}

func (m *Mover) add(p *corev1.Pod, n int) {
	if i, ok := m.liked(p); ok {
		m.known[p] = i
		return
	}
	m.buffer = m.key(m.buffer[:0], p, n)
	if i, ok := m.shapes[string(m.buffer)]; ok { // looking it up makes no copy
		m.known[p] = i
		return
	}
	key := string(m.buffer)
	m.known[p] = len(m.items)
	d := m.world.demand(p)
	home := map[string]string{}
	for _, k := range d.wideKeys() {
		home[k] = m.world.nodes[n].Labels[k]
	}
	rules, never := d.selectors(), d.bad != ""
	d.bad = cmp.Or(d.bad, m.uprooted(d, n))
	m.settle(d, n)
	m.shapes[key] = len(m.items)
	item := binpack.Item{Name: key, Size: d.size}
	picky := len(d.ports)+len(d.disks)+len(d.far)+len(d.spreads) > 0
	for i, other := range m.moved {
		if (picky || other.picky) && (clash(d.ports, other.ports) || collide(d.disks, other.disks) || shuns(d, other.demand) || shuns(other.demand, d)) {
			item.Apart = append(item.Apart, i)
		}
	}
	m.items, m.moved = append(m.items, item), append(m.moved, &moved{demand: d, home: home, picky: picky, rules: rules, never: never})
}

// shuns reports whether a Pod of a shares no host with one of b: because of a term, or of a constraint under which both count,
// and under which each fills a host by itself.
func shuns(a, b *demand) bool {
	return keepsApart(a, b, true) || slices.ContainsFunc(a.spreads, func(s spread) bool { return s.overHosts() && s.pod(b.pod) })
}

// liked returns the item of a Pod that shares its parts with one that was added, whose key is the same therefore. It
// remembers p if there is none.
func (m *Mover) liked(p *corev1.Pod) (int, bool) {
	own := func(v corev1.Volume) bool { return v.Ephemeral != nil } // its claim has the Pod's name
	if len(m.world.far) > 0 || choosy(p) || len(p.Spec.Containers) == 0 || !plain(p) || slices.ContainsFunc(p.Spec.Volumes, own) {
		return 0, false
	}
	first := &p.Spec.Containers[0]
	for _, like := range m.likes[first] {
		if sharesParts(p, like) {
			return m.known[like], true
		}
	}
	if len(m.likes) < mostLikes {
		m.likes[first] = append(m.likes[first], p)
	}
	return 0, false
}

// sharesParts reports whether two Pods whose containers are the same in memory have everything else in common too that a
// place depends on. It may say no of Pods that are equal.
func sharesParts(p, q *corev1.Pod) bool {
	a, b := &p.Spec, &q.Spec
	return p.Namespace == q.Namespace && priorityOf(p) == priorityOf(q) && a.Affinity == b.Affinity && len(a.Containers) == len(b.Containers) &&
		sameSlice(a.Tolerations, b.Tolerations) && sameSlice(a.Volumes, b.Volumes) &&
		len(a.NodeSelector) == len(b.NodeSelector) && maps.Equal(a.NodeSelector, b.NodeSelector)
}

// sameSlice reports whether two slices are one.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// key appends what is the same for Pods that can be moved to the same places. Of the labels of a Node only those count that the Pod's
// rules name: drivers of local volumes give each Node one of its own.
func (m *Mover) key(key []byte, p *corev1.Pod, n int) []byte {
	key = m.world.appendSpec(key, p)
	if choosy(p) || len(m.world.far) > 0 {
		key = appendMap(append(key, '\n'), p.Labels)
	}
	if choosy(p) {
		node := &m.world.nodes[n]
		key = node.fences(node.labeled(append(key, '\n'), namedBy(p)))
		for _, e := range m.hostsOf(p) {
			key = strconv.AppendInt(append(key, '<'), int64(e.without(n)), 10)
		}
	}
	return key
}

// namedBy returns the labels of Nodes that a Pod's rules name, sorted.
func namedBy(p *corev1.Pod) []string {
	keys := slices.Collect(maps.Keys(p.Spec.NodeSelector))
	for i := range p.Spec.TopologySpreadConstraints {
		keys = append(keys, p.Spec.TopologySpreadConstraints[i].TopologyKey)
	}
	a := p.Spec.Affinity
	if a != nil && a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			for _, r := range t.MatchExpressions {
				keys = append(keys, r.Key)
			}
		}
	}
	terms := apartTerms(p)
	if a != nil && a.PodAffinity != nil {
		terms = slices.Concat(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	for _, t := range terms {
		keys = append(keys, t.TopologyKey)
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// wideKeys returns the topology keys of the shape's constraints on other Pods, the host's aside.
func (d *demand) wideKeys() []string {
	keys := map[string]bool{}
	for _, s := range d.spreads {
		keys[s.key] = true
	}
	for _, t := range slices.Concat(d.far, d.near) {
		keys[t.key] = true
	}
	delete(keys, corev1.LabelHostname)
	return slices.Sorted(maps.Keys(keys))
}

// settle makes the demand one of a Pod on Node n that stays in its wider domains: only terms over hosts are still to be checked, and
// what others hold against it. The emptiest host but its own holds it down, as in the simulation of Cluster Autoscaler: its Node is gone.
func (m *Mover) settle(d *demand, n int) {
	d.far = slices.DeleteFunc(d.far, term.wide)
	for i := len(d.near) - 1; i >= 0; i-- {
		if d.near[i].wide() {
			d.near = slices.Delete(d.near, i, i+1)
			d.homes = slices.Delete(d.homes, i, i+1)
		}
	}
	maps.DeleteFunc(d.occupied, func(o domain, _ bool) bool { return o.key != corev1.LabelHostname })
	d.barred = m.world.barredTo(d.pod, d.pod)
	d.first = false
	hosts := m.hostsOf(d.pod)
	for _, s := range d.spreads {
		if s.overHosts() {
			d.skews = append(d.skews, skew{spread: s, counts: m.world.held(&s), level: hosts[0].without(n) + s.maxSkew})
			hosts = hosts[1:]
		}
	}
}

func (m *Mover) fits(item, target int) int {
	v := m.moved[item]
	n := m.order[target]
	if m.moves.asked {
		return binpack.Any
	}
	node := m.world.nodes[n].Node
	for k, value := range v.home {
		if got, ok := node.Labels[k]; !ok || got != value {
			return 0
		}
	}
	return m.world.fit(v.demand, n)
}

// Clear finds places elsewhere for the Pods that have to leave Node n. Either all have one, then they are taken and n
// takes nothing any more; or why says what is missing, and nothing was taken.
func (m *Mover) Clear(n int, pods []*corev1.Pod) (why string) {
	mark := m.space.Mark()
	if at, ok := m.at[n]; ok {
		m.space.Close(at)
	}
	away := false
	if why, bound := m.atHome(n, pods); why != "" {
		m.space.Undo(mark)
		if !bound || !m.elsewhere(n, pods) {
			m.space.Undo(mark)
			return why
		}
		away = true
	}
	m.moves.note(m, n, pods, away)
	m.space.Touched(mark, func(bin int) { m.taken[m.order[bin]] = true })
	return ""
}

// atHome finds places for Pods in the domains that they are in. Of the first one that has none it says whether it is bound to others.
func (m *Mover) atHome(n int, pods []*corev1.Pod) (why string, bound bool) {
	for _, p := range pods {
		i, ok := m.item(p, n)
		if ok && !m.meetsAny(i, m.moves.away) && m.space.Put(i, 1) > 0 {
			continue
		}
		why = ReasonNoPlace + p.Namespace + "/" + p.Name
		if ok && m.moved[i].bad != "" {
			why += ": " + m.moved[i].bad
		}
		return why, ok && len(m.moved[i].rules) > 0
	}
	return "", false
}

// item returns which item a Pod on Node n is a piece of.
func (m *Mover) item(p *corev1.Pod, n int) (int, bool) {
	if i, ok := m.known[p]; ok {
		return i, true
	}
	i, ok := m.shapes[string(m.key(nil, p, n))]
	return i, ok
}

// Taken reports whether Pods of other Nodes were given a place on Node n: then it has to stay.
func (m *Mover) Taken(n int) bool { return m.taken[n] }
