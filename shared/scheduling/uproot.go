// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// uprooted returns why the scheduler would not let a Pod back into the domains that it is in, the host's aside, were it evicted
// from a Node: whom it is spread with, or wants to be with, may have gone since it came. The empty text if it would.
func (m *Mover) uprooted(d *demand, n int) string {
	node := m.world.nodes[n].Node
	for _, l := range m.levelsOf(d) {
		itself := l.selfCounts && d.counts(&l.spread, node)
		if itself {
			l.counts[node.Labels[l.key]]--
		}
		exceeded := l.exceeded(d, node, nil)
		if itself {
			l.counts[node.Labels[l.key]]++
		}
		if exceeded {
			return ReasonSpread
		}
	}
	for _, t := range d.far {
		if t.wide() && m.world.othersAt(t, d.pod, n) > 0 {
			return ReasonFar
		}
	}
	return m.world.left(d, n)
}

// levelsOf counts what the domains of a Pod's constraints hold, the hosts aside: once for all Pods that are alike, wherever they
// run.
func (m *Mover) levelsOf(d *demand) []level {
	if !slices.ContainsFunc(d.spreads, func(s spread) bool { return !s.overHosts() }) {
		return nil
	}
	key := string(appendMap(append(m.world.appendSpec(nil, d.pod), '\n'), d.pod.Labels))
	if all, ok := m.levels[key]; ok {
		return all
	}
	var all []level
	for _, s := range d.spreads {
		if !s.overHosts() {
			all = append(all, m.world.level(d, s))
		}
	}
	m.levels[key] = all
	return all
}

// othersAt counts the running Pods that a term matches in the domain of a Node, but for one that runs there.
func (w *World) othersAt(t term, but *corev1.Pod, n int) (count int) {
	home, ok := w.nodes[n].Labels[t.key]
	if !ok {
		return 0
	}
	for at, c := range w.count(t.matcher, true) {
		if value, ok := w.nodes[at].Labels[t.key]; ok && value == home {
			count += c
		}
	}
	if t.pod(but) {
		count--
	}
	return count
}

// left returns ReasonNear if a Pod on a Node has no company there any more, and has or needs some elsewhere.
func (w *World) left(d *demand, n int) string {
	if !slices.ContainsFunc(d.near, term.wide) {
		return ""
	}
	here, anywhere := make([]int, len(d.near)), 0
	add := func(at, times int) {
		for j, t := range d.near {
			if value, ok := w.nodes[at].Labels[t.key]; ok {
				anywhere += times
				if home, ok := w.nodes[n].Labels[t.key]; ok && home == value {
					here[j] += times
				}
			}
		}
	}
	for i := range w.running() {
		if k := &w.kinds[i]; d.wants(k.namespace, k.labels) {
			for _, at := range slices.Concat(k.on, k.leaving) {
				add(at, 1)
			}
		}
	}
	self := d.wants(d.pod.Namespace, d.pod.Labels)
	if self {
		add(n, -1)
	}
	for j, t := range d.near {
		if t.wide() && here[j] == 0 && !(self && anywhere == 0) {
			return ReasonNear
		}
	}
	return ""
}
