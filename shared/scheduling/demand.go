// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/machine-functions/machine-functions/shared/binpack"
)

// domain is one value of a topology key.
type domain struct{ key, value string }

// demand is what one shape of Pod asks of a Node, compiled once.
type demand struct {
	pod      *corev1.Pod // one of the shape
	digest   string      // of the shape, where it is one of a placement
	size     binpack.Vector
	odd      corev1.ResourceName // one that has no place in the size
	bad      string              // why no Node is planned for it, if so
	affinity nodeaffinity.RequiredNodeAffinity
	claims   claimed
	attaches map[string]string // volumes that count against limits: their CSI drivers
	disks    []disk
	ports    []port
	spreads  []spread
	near     []term
	far      []term
	byName   bool     // it may tell Nodes of one class apart
	verdicts []string // by class: 0 characters if not yet asked

	barred   map[domain]bool   // by running Pods that keep apart from this one
	occupied map[domain]bool   // where Pods run that this one keeps apart from
	homes    []map[string]bool // by near term: where Pods run that this one wants to be with
	first    bool              // nobody runs to be with, and the shape matches its own terms
	skews    []skew            // by spread on the host name: what each node holds
}

// skew is the state of one spread constraint over hosts: every node is filled up to the same level.
type skew struct {
	spread
	counts map[int]int // by node: Pods that count
	room   map[int]int // by node that counts: Pods that it could take beside
	level  int
}

const fine = "fine"

func nodeAffinityOf(p *corev1.Pod) nodeaffinity.RequiredNodeAffinity {
	return nodeaffinity.GetRequiredNodeAffinity(p)
}

// demand compiles what a Pod asks for, as far as it can be planned for.
func (w *World) demand(p *corev1.Pod) *demand {
	d := w.compile(p)
	if len(p.Spec.ResourceClaims) > 0 {
		d.bad = cmp.Or(d.bad, reasonDevices)
	}
	if d.odd != "" {
		d.bad = cmp.Or(d.bad, reasonOdd+string(d.odd))
	}
	for _, driver := range slices.Sorted(maps.Values(d.attaches)) {
		if !w.storage.limited[driver] {
			continue
		}
		i, ok := w.axes.axis(attachAxis(driver))
		if !ok {
			d.bad = cmp.Or(d.bad, reasonOdd+driver)
			continue
		}
		d.size[i]++
	}
	return d
}

// compile is demand for questions that are not about planning.
func (w *World) compile(p *corev1.Pod) *demand {
	d := &demand{
		pod: p, affinity: nodeAffinityOf(p), ports: portsOf(p), spreads: spreadsOf(p),
		near: w.nearTerms(p), far: w.farTerms(p), disks: disksOf(p), verdicts: make([]string, len(w.samples)),
	}
	d.size, d.odd = w.axes.pod(p)
	d.byName = asksByName(p)
	if w.storage != nil && len(p.Spec.Volumes) > 0 {
		w.mount(d)
	}
	w.look(d)
	return d
}

// mount adds what the Pod's volumes ask for.
func (w *World) mount(d *demand) {
	d.claims = w.storage.claimed(d.pod)
	d.byName = d.byName || len(d.claims.selectors) > 0 || slices.ContainsFunc(d.claims.unbound, func(u unbound) bool { return u.choosy() }) // local volumes name hosts
	d.bad = d.claims.bad
	d.claims.exclusive = slices.DeleteFunc(d.claims.exclusive, func(name string) bool { return w.sole[d.pod.Namespace+"/"+name] })
	for _, name := range d.claims.exclusive {
		if slices.ContainsFunc(w.claims[d.pod.Namespace+"/"+name], func(p *corev1.Pod) bool { return !samePod(p, d.pod) }) {
			d.bad = cmp.Or(d.bad, ReasonExclusive)
		}
	}
	d.attaches = w.storage.attachments(d.pod)
}

// look compares the demand with the Pods that run.
func (w *World) look(d *demand) {
	d.barred, d.occupied = w.barredTo(d.pod, nil), map[domain]bool{}
	for _, t := range d.far {
		for n := range w.count(t.matcher, true) {
			if value, ok := w.nodes[n].Labels[t.key]; ok {
				d.occupied[domain{t.key, value}] = true
			}
		}
	}
	w.lookNear(d)
}

// barredTo returns the domains that a Pod is kept out of by running Pods, one of them left out.
func (w *World) barredTo(p, but *corev1.Pod) map[domain]bool {
	barred := map[domain]bool{}
	for i := range w.far {
		if t := &w.far[i]; t.of != but && t.pod(p) {
			barred[domain{t.key, t.value}] = true
		}
	}
	return barred
}

// lookNear finds where a Pod's company runs. A running Pod must match all terms to be company.
func (w *World) lookNear(d *demand) {
	if len(d.near) == 0 {
		return
	}
	self := true
	for _, t := range d.near {
		self = self && t.pod(d.pod)
		if t.vague {
			d.bad = reasonNamespaces
		}
		d.homes = append(d.homes, map[string]bool{})
	}
	found := false
	for i := range w.running() {
		k := &w.kinds[i]
		if !d.wants(k.namespace, k.labels) {
			continue
		}
		for _, n := range slices.Concat(k.on, k.leaving) {
			for j, t := range d.near {
				if value, ok := w.nodes[n].Labels[t.key]; ok {
					d.homes[j][value] = true
					found = true
				}
			}
		}
	}
	d.first = self && !found
}

// wants reports whether Pods of a namespace with such labels are company.
func (d *demand) wants(namespace string, set labels.Set) bool {
	return !slices.ContainsFunc(d.near, func(t term) bool { return !t.matches(namespace, set) })
}

// asksByName reports whether node affinity can tell hosts apart that are otherwise the same.
func asksByName(p *corev1.Pod) bool {
	if _, ok := p.Spec.NodeSelector[corev1.LabelHostname]; ok {
		return true
	}
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return false
	}
	for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		if len(t.MatchFields) > 0 || slices.ContainsFunc(t.MatchExpressions, func(r corev1.NodeSelectorRequirement) bool { return r.Key == corev1.LabelHostname }) {
			return true
		}
	}
	return false
}

// admits returns why a Node is out of the question for the demand, whatever runs there; fine if it is not.
func (d *demand) admits(n *corev1.Node) string {
	if n.Spec.Unschedulable && !Tolerated(d.pod.Spec.Tolerations, unschedulable) {
		return ReasonUnschedulable
	}
	if t, no := forbids(n.Spec.Taints, d.pod.Spec.Tolerations); no {
		return untolerated(t)
	}
	if ok, err := d.affinity.Match(n); !ok || err != nil {
		return ReasonAffinity
	}
	return d.claims.admits(n)
}

// admitted is admits for a node of the world.
func (w *World) admitted(d *demand, n int) string {
	if d.byName {
		return d.admits(w.nodes[n].Node)
	}
	c := w.class[n]
	if d.verdicts[c] == "" {
		d.verdicts[c] = d.admits(w.nodes[w.samples[c]].Node)
	}
	return d.verdicts[c]
}

// company returns why a Node's topology domains are out of the question, given what runs in them; fine if they are
// not. A Node that is to be added is alone on its host, but for the Pods that come with it.
func (d *demand) company(n *corev1.Node, own ...*corev1.Pod) string {
	comes := slices.ContainsFunc(own, func(p *corev1.Pod) bool { return d.wants(p.Namespace, p.Labels) })
	for i, t := range d.near {
		value, ok := n.Labels[t.key]
		if !ok || !d.first && !comes && !d.homes[i][value] {
			return ReasonNear
		}
	}
	for _, t := range d.far {
		if value, ok := n.Labels[t.key]; ok && d.occupied[domain{t.key, value}] {
			return ReasonFar
		}
	}
	for b := range d.barred {
		if n.Labels[b.key] == b.value {
			return ReasonBarred
		}
	}
	for _, s := range d.spreads {
		if _, ok := n.Labels[s.key]; !ok {
			return ReasonSpreadLabel
		}
	}
	return fine
}

// perHost returns how many Pods of the shape one host may hold; n is its node in the world, or -1 for a new one.
func (d *demand) perHost(n int) int {
	most := math.MaxInt32
	if len(d.ports) > 0 || collide(d.disks, d.disks) || d.repels(corev1.LabelHostname) {
		most = 1
	}
	for _, s := range d.skews {
		switch {
		case n < 0 && s.selfCounts:
			most = min(most, max(s.maxSkew, s.level)) // it is the emptiest, or the only one, and may hold as many as any host
		case n >= 0 && s.selfCounts:
			most = min(most, max(0, s.level-s.counts[n]))
		case n >= 0 && s.counts[n] > s.level:
			most = 0
		}
	}
	return most
}

// repels reports whether the shape's own Pods keep each other out of a domain of the key.
func (d *demand) repels(key string) bool {
	return slices.ContainsFunc(d.far, func(t term) bool { return t.key == key && t.pod(d.pod) })
}

// portsTaken reports whether a Pod that runs on the node has a port that the shape needs.
func (w *World) portsTaken(d *demand, n int) bool {
	return len(d.ports) > 0 && slices.ContainsFunc(w.nodes[n].Pods, func(p *corev1.Pod) bool { return clash(d.ports, portsOf(p)) })
}

// disksTaken reports whether a Pod that runs on the node has a disk that the shape needs for itself.
func (w *World) disksTaken(d *demand, n int) bool {
	return len(d.disks) > 0 && slices.ContainsFunc(w.nodes[n].Pods, func(p *corev1.Pod) bool { return collide(d.disks, disksOf(p)) })
}
