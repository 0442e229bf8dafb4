// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// Machines that become Nodes although their sets are none that are resized, or not now: people hold them, their bounds are not written
// yet, another API has the say over them. Their Nodes count toward the limits of the cluster, and Pods wait for them as they do for
// those of a group: else Nodes would be bought that nobody needs a minute later (R-B16, R-S4).

// coming is the size of the Nodes that Machines without one will be that are of no group: of a set that nobody resizes, or not now, as far as
// that set says it, or of none.
func (sc *scan) coming() (sum size) {
	for _, g := range sc.strangers {
		list, _ := scheduling.Capacity(g.set.Annotations)
		one := sc.sizeOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: g.set.Spec.Template.Spec.Labels}, Status: corev1.NodeStatus{Capacity: list}})
		sum = sum.plus(one, withoutNode(g.members))
	}
	return sum.plus(size{nodes: 1}, withoutNode(sc.lone))
}

// withoutNode counts the Machines that stay and that no Node is linked to, nor may be.
func withoutNode(members []member) (n int64) {
	for _, m := range members {
		n += int64(truth(m.machine.DeletionTimestamp == nil && !m.may))
	}
	return n
}

// foresee counts the Nodes of sets that are no groups that Pods may wait for: of Machines that are there, and of those that a set makes that
// is new. As for a group it is remembered since when a set's Nodes are awaited, whoever makes its Machines anew meanwhile, and they count for
// as long as a Node may take from then: else Pods would wait for ever for what never comes, and nobody would try another set (C45).
func (sc *scan) foresee() {
	requests := map[string]autoscaling.NodeGroup{}
	for _, g := range sc.strangers {
		g.own, _ = sc.settings.Options(g.set.Annotations)
		unmade, awaited := g.target, g.target
		for _, m := range g.members {
			joins := sc.joins(g, m)
			unmade -= int32(truth(m.machine.DeletionTimestamp == nil))
			awaited -= int32(truth(m.machine.DeletionTimestamp == nil && !joins && (m.came() || machine.Phase(m.machine) == machine.PhaseFailed)))
			g.upcoming += int32(truth(joins))
		}
		if sc.Now.Before(sc.madeBy(g)) && machine.Unserved(g.set) == "" {
			g.upcoming += max(0, unmade)
		}
		g.upcoming = min(g.upcoming, max(0, awaited), maxUpcoming)
		if awaited <= 0 {
			continue
		}
		r, made := sc.state.Groups[g.id].Request, &g.set.CreationTimestamp
		if r == nil || r.At.Before(made) && !made.After(sc.Now) { // it is of a former set of this name
			r = &autoscaling.Request{At: *sc.now()}
		}
		requests[g.id] = autoscaling.NodeGroup{Request: r}
		if !sc.Now.Before(r.At.Add(g.own.MaxNodeProvisionTime)) {
			g.upcoming = 0
		}
	}
	maps.DeleteFunc(sc.state.Groups, func(id string, _ autoscaling.NodeGroup) bool { return sc.byID[id] == nil })
	maps.Copy(sc.state.Groups, requests)
}

// madeBy returns until when a set that is no group may be making its first Machines.
func (sc *scan) madeBy(g *group) time.Time {
	return g.set.CreationTimestamp.Add(g.own.MaxNodeProvisionTime)
}

// joins reports that a Machine of a set that is no group is about to be a Node, as far as anybody knows.
func (sc *scan) joins(g *group, m member) bool {
	switch {
	case m.machine.DeletionTimestamp != nil, machine.Phase(m.machine) == machine.PhaseFailed, sc.late(g, m.machine):
		return false
	case m.node != nil:
		return !sc.ready(m.node) && sc.starting(m.node)
	}
	return !m.came()
}

// foreseen says of a set that is no group which of its Machines Pods wait for, and for how long at most, or "": nobody asked for Nodes for
// them, so that nothing else that is theirs tells them.
func (sc *scan) foreseen(g *group) string {
	if g.upcoming == 0 {
		return ""
	}
	what, last := "its first machines are being made", sc.madeBy(g)
	for _, m := range g.members {
		if at := sc.lateAt(g, m.machine); sc.joins(g, m) && at.After(last) {
			what, last = "machine "+m.machine.Name+" is on its way", at
		}
	}
	if end := sc.state.Groups[g.id].Request.At.Add(g.own.MaxNodeProvisionTime); end.Before(last) {
		last = end
	}
	return fmt.Sprintf("it waits for a node of %s, which is not resized: %s, and awaited until %s", g.set.Name, what, machine.Stamp(last))
}
