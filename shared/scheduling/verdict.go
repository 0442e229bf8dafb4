// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
)

// Question is one Pod that could run on the nodes of a world.
type Question struct {
	world     *World // without Pods that are only nominated
	nominated [][]*corev1.Pod
	*demand
	levels []level
}

// level is what the domains of one spread constraint hold now.
type level struct {
	spread
	counts map[string]int // by value of the topology key
}

// Ask prepares the question which nodes of the world the scheduler would let a Pod run on now. Of what waits it knows
// this Pod alone. Pods on a node that are only nominated for it count as the scheduler counts them: against
// Pods of no higher priority, there alone.
func (w *World) Ask(p *corev1.Pod) *Question {
	bare, nominated := w.bound()
	q := &Question{world: bare, nominated: nominated, demand: bare.compile(p)}
	for _, s := range q.spreads {
		q.levels = append(q.levels, bare.level(q.demand, s))
	}
	return q
}

// level counts what the domains of a constraint hold.
func (w *World) level(d *demand, s spread) level {
	l := level{spread: s, counts: map[string]int{}}
	held := w.held(&s)
	for n := range w.nodes {
		if node := w.nodes[n].Node; d.counts(&s, node) {
			l.counts[node.Labels[s.key]] += held[n]
		}
	}
	return l
}

// bound returns the world with none but Pods that are bound, and by node the others.
func (w *World) bound() (*World, [][]*corev1.Pod) {
	waits := func(p *corev1.Pod) bool { return p.Spec.NodeName == "" && p.Status.NominatedNodeName != "" }
	if !slices.ContainsFunc(w.nodes, func(n Node) bool { return slices.ContainsFunc(n.Pods, waits) }) {
		return w, make([][]*corev1.Pod, len(w.nodes))
	}
	if w.bare == nil {
		nodes := slices.Clone(w.nodes)
		w.others = make([][]*corev1.Pod, len(nodes))
		for n := range nodes {
			nodes[n].Pods = nil
			for _, p := range w.nodes[n].Pods {
				if waits(p) {
					w.others[n] = append(w.others[n], p)
				} else {
					nodes[n].Pods = append(nodes[n].Pods, p)
				}
			}
		}
		w.bare = &World{nodes: nodes, axes: w.axes, spaces: w.spaces, gpus: w.gpus, storage: w.storage}
		w.bare.prepare()
	}
	return w.bare, w.others
}

// Refused returns why the scheduler would not put the Pod on a node of the world, in its words; the empty text if it
// would.
func (q *Question) Refused(n int) string {
	node := q.world.nodes[n]
	if q.bad != "" {
		return q.bad
	}
	if q.pod.Spec.NodeName != "" && q.pod.Spec.NodeName != node.Name {
		return ReasonName
	}
	if why := q.world.admitted(q.demand, n); why != fine {
		return why
	}
	if why := q.company(node.Node); why != fine {
		return why
	}
	var more []*corev1.Pod
	for _, p := range q.nominated[n] {
		if corev1helpers.PodPriority(p) >= corev1helpers.PodPriority(q.pod) && !samePod(p, q.pod) {
			more = append(more, p)
		}
	}
	if why := q.beside(node.Node, more); why != fine {
		return why
	}
	return q.crowded(n, more)
}

func samePod(a, b *corev1.Pod) bool { return a.Namespace == b.Namespace && a.Name == b.Name }

// beside returns why the Pod cannot join Pods that are nominated for a Node; fine if it can. The scheduler looks at
// their rules against the Pod only if the Pod has rules, or meets some, anyway.
func (q *Question) beside(n *corev1.Node, more []*corev1.Pod) string {
	rules := len(q.near)+len(q.far)+len(q.barred) > 0
	for _, p := range more {
		if why := q.world.besides(q.demand, p, n); why != fine && (rules || why != ReasonBarred) {
			return why
		}
		if len(q.disks) > 0 && slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
			return v.PersistentVolumeClaim != nil && slices.Contains(q.claims.exclusive, v.PersistentVolumeClaim.ClaimName)
		}) {
			return ReasonExclusive
		}
	}
	return fine
}

// crowded returns why what runs on a node, with more Pods, leaves no room; the empty text if it does not.
func (q *Question) crowded(n int, more []*corev1.Pod) string {
	w := q.world
	node := &w.nodes[n]
	if w.portsTaken(q.demand, n) {
		return ReasonPorts
	}
	if w.disksTaken(q.demand, n) {
		return ReasonDisk
	}
	for i := range q.levels {
		if q.levels[i].exceeded(q.demand, node.Node, more) {
			return ReasonSpread
		}
	}
	if st := w.storage; st != nil && (st.tooMany(q.demand, node.Name, node.Pods) || st.tooMany(q.demand, node.Name, slices.Concat(node.Pods, more))) {
		return ReasonAttach // a volume of its own that a nominated Pod shares is free only once that one runs
	}
	free := w.free()[n]
	w.limit(&free, nil, nil) // what can be attached was counted, volume by volume
	for _, p := range more {
		v, _ := w.axes.pod(p)
		free = free.Minus(v)
	}
	if why := w.lack(q.demand, free); why != "" || q.odd == "" {
		return why
	}
	return w.lackOdd(q.pod, node, more)
}

// lackOdd returns the first resource without an axis that there is too little of.
func (w *World) lackOdd(p *corev1.Pod, n *Node, more []*corev1.Pod) string {
	used := map[corev1.ResourceName]int64{}
	for _, other := range slices.Concat(n.Pods, more) {
		for name, q := range Requests(other) {
			used[name] = plus(used[name], Amount(name, q))
		}
	}
	want := Requests(p)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		has := n.Status.Allocatable[name]
		if need := Amount(name, want[name]); need > 0 && !slices.Contains(w.axes.names, name) && plus(used[name], need) > Amount(name, has) {
			return insufficient(name)
		}
	}
	return ""
}

// exceeded reports whether one Pod more on a Node, beside those that are nominated for it, is too far ahead of the
// emptiest domain.
func (l *level) exceeded(d *demand, n *corev1.Node, more []*corev1.Pod) bool {
	value := n.Labels[l.key]
	extra := 0
	if d.counts(&l.spread, n) {
		for _, p := range more {
			if l.pod(p) {
				extra++
			}
		}
	}
	least := math.MaxInt32
	for v, count := range l.counts {
		if v == value {
			count += extra
		}
		least = min(least, count)
	}
	if len(l.counts) < l.minDomains {
		least = 0
	}
	own := 0
	if l.selfCounts {
		own = 1
	}
	return l.counts[value]+extra+own-least > l.maxSkew
}
