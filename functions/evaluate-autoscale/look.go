// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// look gathers what Pods can be placed on: Nodes that take Pods, and Nodes that are to come, in the shape of their
// group's template, so that Pods wait for them instead of bringing more (SPEC C9, C44).
func (sc *scan) look() {
	nodes := make([]scheduling.Node, 0, len(sc.Nodes))
	sc.places = make([]place, 0, len(sc.Nodes))
	for _, n := range sc.Nodes {
		closed, gone := !sc.ready(n), sc.drained(n)
		pods, briefs := sc.running[n.Name], sc.briefs[n.Name]
		shown := n
		if sc.leaves(n) {
			closed, pods, briefs = true, nil, nil // they need a place elsewhere
		} else {
			shown, _ = sc.mine.givenBack(n) // a taint of ours that no scale-down holds any more goes with this scan
		}
		nodes = append(nodes, scheduling.Node{Node: shown, Pods: pods, Briefs: briefs, Closed: closed, Gone: gone, Last: sc.going[n.UID]})
		sc.places = append(sc.places, place{node: n, group: sc.of[n.UID]})
	}
	templates := sc.templates()
	come := func(g *group) {
		for _, n := range sc.awaitedNodes(g, templates) {
			nodes = append(nodes, n)
			sc.places = append(sc.places, place{node: n.Node, group: g, fresh: true})
		}
	}
	for _, g := range sc.groups {
		come(g)
	}
	for _, g := range sc.strangers {
		if g.upcoming > 0 {
			come(g)
		}
	}
	sc.waiting = append(sc.waitingPods(), sc.headroom()...)
	sc.seen = nodes
	sc.world = scheduling.NewWorld(nodes, sc.waiting, sc.facts())
}

// awaitedNodes returns the Nodes of a group that are to come, and gives it its template.
func (sc *scan) awaitedNodes(g *group, t scheduling.Templates) (nodes []scheduling.Node) {
	members := sc.nodesOf(g)
	g.template, g.known = t.Of(sc.remembering(g, members), members)
	for i := range g.upcoming {
		if !g.known {
			break
		}
		n := g.template.DeepCopy()
		n.Name = fmt.Sprintf("upcoming-%s-%s-%d", g.set.Namespace, g.set.Name, i)
		n.Labels[corev1.LabelHostname] = n.Name
		nodes = append(nodes, scheduling.Node{Node: n, Pods: g.template.Pods, Attach: g.template.Attach})
	}
	return nodes
}

func (sc *scan) templates() scheduling.Templates {
	return scheduling.Templates{Now: sc.Now, Daemons: sc.DaemonSets, Youngest: sc.youngest, CSINodes: sc.CSINodes, StartupTaints: sc.settings.StartupTaints, Changed: sc.changed}
}

// nodesOf returns the Nodes of a group that stay, with their Pods.
func (sc *scan) nodesOf(g *group) (nodes []scheduling.Node) {
	for _, m := range g.members {
		if m.node != nil && !m.leaving {
			nodes = append(nodes, scheduling.Node{Node: m.node, Pods: sc.running[m.node.Name], Machine: m.machine})
		}
	}
	return nodes
}

// leaves reports whether a Node is being emptied: by a scale-down, or because its Machine is being deleted, or is to be.
func (sc *scan) leaves(n *corev1.Node) bool {
	return removalOf(sc.state.Removals, n.UID) != nil || sc.deleting(n) || sc.retired[n.UID]
}

// drained reports that a Node is about to be gone because its Pods are moved elsewhere: those that the scheduler spreads over it too start
// once it is, and need no new Node, as long as nothing is late (SPEC C56).
func (sc *scan) drained(n *corev1.Node) bool {
	r := removalOf(sc.state.Removals, n.UID)
	return r != nil && r.Drain && (r.Committed == nil || sc.Now.Before(r.Committed.Add(maxDeletion)))
}

// waitingPods returns the Pods that need help: those that the scheduler found no place for, and those that lose theirs
// (SPEC C5, C8, C10). A Pod that runs and that nobody makes anew ends with its Node. Of a group of Pods all wait as soon as one does.
func (sc *scan) waitingPods() (waiting []*corev1.Pod) {
	groups := map[string]bool{}
	needs := func(p *corev1.Pod) bool { return unschedulable(p) && sc.homeless(p) && sc.oldEnough(p) }
	for _, p := range sc.unbound {
		if needs(p) {
			waiting = append(waiting, p)
			groups[podGroupOf(p)] = true
		}
	}
	delete(groups, "") // the Pods that stand for themselves
	for _, p := range sc.unbound {
		if len(groups) > 0 && groups[podGroupOf(p)] && sc.comesAlong(p) && !needs(p) {
			waiting = append(waiting, p)
		}
	}
	for _, n := range sc.Nodes {
		if sc.leaves(n) {
			ends := func(p *corev1.Pod) bool { return p.Spec.NodeName != "" && metav1.GetControllerOfNoCopy(p) == nil }
			waiting = append(waiting, slices.DeleteFunc(sc.toMove(n), ends)...)
		}
	}
	return waiting
}

// comesAlong reports whether a Pod of a group of which another one waits is planned for too.
func (sc *scan) comesAlong(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && !gated(p) && sc.homeless(p)
}

// homeless reports whether a Pod has no place, and Nodes may be added for it.
func (sc *scan) homeless(p *corev1.Pod) bool {
	return sc.placeOf(p) == "" && !finished(p) && !sc.expendable(p) && !scheduling.OfDaemonSet(p)
}

// gated reports whether somebody has asked the scheduler not to look at a Pod yet.
func gated(p *corev1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }

// unschedulable reports that the scheduler looked at a Pod and found no place. Pods behind a scheduling gate, and those
// that nobody has looked at yet, wait for something else.
func unschedulable(p *corev1.Pod) bool {
	return p.DeletionTimestamp == nil && p.Spec.NodeName == "" && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable
	})
}

// Health gate (SPEC C3): so many Nodes must be unready, by number and by part, that nothing is scaled at all.
const (
	toleratedUnready     = 3
	toleratedUnreadyPart = 45 // percent
)

// healthy reports whether the cluster is well enough to be scaled. If it is not, what scale-down had measured counts
// for nothing.
func (sc *scan) healthy() bool {
	if sc.healthyNow() {
		return true
	}
	sc.state.Unneeded = nil
	sc.tell(&sc.notes, corev1.EventTypeWarning, "ClusterUnhealthy", "Cluster is unhealthy")
	sc.notes = append(sc.notes, plan.Log(fmt.Sprintf("Nothing is scaled while %d of %d nodes are unready", sc.unready, len(sc.Nodes))))
	return false
}

func (sc *scan) healthyNow() bool {
	return sc.unready <= toleratedUnready || 100*sc.unready <= toleratedUnreadyPart*len(sc.Nodes)
}

// countNodes counts the Nodes that are ready, and those that should be and are not: one that somebody takes away need not be. Every set is
// asked about both for every kind of Pods.
func (sc *scan) countNodes() {
	for _, n := range sc.Nodes {
		sc.readyNodes += int64(truth(sc.ready(n)))
		if !sc.starting(n) && !scheduling.Ready(n, sc.settings.StartupTaints) && !slices.ContainsFunc(n.Spec.Taints, isRemoval) && !sc.dying[n] {
			sc.unready++
		}
	}
}
