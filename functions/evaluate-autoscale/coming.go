// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// Machines that become Nodes although their sets are none that are resized, or not now: people hold them, their bounds are not written
// yet, another API has the say over them. Their Nodes count toward the limits of the cluster, and Pods wait for them as they do for
// those of a group: else Nodes would be bought that nobody needs a minute later (R-B16, R-S4).

// coming is the size of the Nodes that are to come and that are of no group: of Machines of a set that nobody resizes, or not now, whether
// it has made them or not, as far as that set says it, and of Machines of none.
func (sc *scan) coming() (sum size) {
	for _, g := range sc.strangers {
		list, _ := scheduling.Capacity(g.set.Annotations)
		one := sc.sizeOf(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{scheduling.AcceleratorLabel: g.gpus}}, Status: corev1.NodeStatus{Capacity: list}})
		sum = sum.plus(one, max(withoutNode(g.members), wanting(g)))
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

// wanting counts the Nodes that a set wants beside those that its Machines have which stay. One whose Machines nobody makes gets none of them.
func wanting(g *group) int64 {
	if machine.Unserved(g.set) != "" {
		return 0
	}
	n := int64(g.target)
	for _, m := range g.members {
		n -= int64(truth(m.machine.DeletionTimestamp == nil && m.may))
	}
	return n
}

// foresee counts the Nodes of sets that are no groups that Pods may wait for: of Machines that are there, and of those that a set makes that
// is new. It is remembered since when a set's Nodes are awaited, whoever makes its Machines anew meanwhile, and they count for
// as long as a Node may take from then: else Pods would wait for ever for what never comes, and nobody would try another set (C45). Machines
// that are late are awaited no more, as those of a group, nor is who takes the place of one.
func (sc *scan) foresee() {
	sc.disown()
	awaited := map[string]autoscaling.NodeGroup{}
	for _, g := range sc.strangers {
		g.own, _ = sc.settings.Options(g.set.Annotations)
		unmade, joining := g.target, int32(0)
		for _, m := range g.members {
			unmade -= int32(truth(m.machine.DeletionTimestamp == nil))
			joining += int32(truth(sc.joins(g, m)))
		}
		late, replaced := sc.missed(g, unmade+joining)
		places := unmade + joining - int32(len(replaced))
		if places <= 0 && len(late)+len(replaced) == 0 {
			continue
		}
		w := sc.awaitedSince(g, places > 0)
		awaited[g.id] = autoscaling.NodeGroup{Waves: []autoscaling.Wave{w}, FailedUIDs: slices.Sorted(slices.Values(append(late, replaced...)))}
		if places <= 0 || !sc.Now.Before(w.At.Add(g.own.MaxNodeProvisionTime)) {
			continue
		}
		g.upcoming = joining
		if sc.Now.Before(sc.madeBy(g)) && machine.Unserved(g.set) == "" {
			g.upcoming += max(0, unmade)
		}
		g.upcoming = min(g.upcoming, places, maxUpcoming)
	}
	maps.DeleteFunc(sc.state.Groups, func(id string, _ autoscaling.NodeGroup) bool { return sc.byID[id] == nil })
	maps.Copy(sc.state.Groups, awaited)
}

// mostLate bounds what is remembered of a set that is no group.
const mostLate = 100

// missed returns the Machines of a set that is no group that are late, and those that were and are gone: of these no more than the set has
// places without a Node, as each that is made anew takes the place of one, and the fewer the smaller people made the set. What is remembered
// of it from when it was a group, or from before nothing was scaled for a while, tells of no such place.
func (sc *scan) missed(g *group, places int32) (late, replaced []types.UID) {
	stays := map[types.UID]bool{}
	for _, m := range g.members {
		if m.machine.DeletionTimestamp != nil {
			continue
		}
		stays[m.machine.UID] = true
		if !m.came() && sc.late(g, m.machine) && len(late) < mostLate {
			late = append(late, m.machine.UID)
		}
	}
	n := sc.state.Groups[g.id]
	w := ofNobody(n)
	if w == nil {
		return late, nil
	}
	gone := slices.DeleteFunc(slices.Clone(n.FailedUIDs), func(uid types.UID) bool { return stays[uid] })
	gone = gone[min(len(gone), max(0, int(w.To-g.target))):]
	return late, gone[:min(len(gone), max(0, int(places)))]
}

// awaitedSince returns since when the Nodes of a set that is no group are awaited, and for how many Machines: since people made it larger, or
// it first lacked some; for no Machine while none is. It is a wave for nobody without a request, which is a group's.
func (sc *scan) awaitedSince(g *group, some bool) autoscaling.Wave {
	n, at, made := sc.state.Groups[g.id], sc.now(), &g.set.CreationTimestamp
	to := g.target * int32(truth(some))
	switch w := ofNobody(n); {
	case w != nil && to <= w.To:
		at = &w.At
	case n.Request != nil: // it was a group, or an earlier revision wrote it
		at = &n.Request.At
	}
	if at.Before(made) && !made.After(sc.Now) { // it is of a former set of this name
		at = sc.now()
	}
	return autoscaling.Wave{At: *at, To: to}
}

// ofNobody returns the wave that is remembered of a set that is no group, or nil. One of a group that says so little has its Nodes.
func ofNobody(n autoscaling.NodeGroup) *autoscaling.Wave {
	if n.Request != nil || n.Resize != nil || len(n.Waves) != 1 || n.Waves[0].Pods != "" {
		return nil
	}
	return &n.Waves[0]
}

// disown forgets what was awaited of sets before they were groups: the autoscaler did not ask for it, and begins a request of its own.
func (sc *scan) disown() {
	for _, g := range sc.groups {
		if ofNobody(sc.state.Groups[g.id]) != nil {
			sc.change(g, func(n *autoscaling.NodeGroup) {
				n.Waves = nil
				if n.LastFailure == nil {
					n.FailedUIDs = nil
				}
			})
		}
	}
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
	if end := sc.state.Groups[g.id].Waves[0].At.Add(g.own.MaxNodeProvisionTime); end.Before(last) {
		last = end
	}
	return fmt.Sprintf("it waits for a node of %s, which is not resized: %s, and awaited until %s", g.set.Name, what, machine.Stamp(last))
}
