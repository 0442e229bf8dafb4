// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	// settleTime is how long the taint has to stand before its Node counts as empty: the scheduler may have bound a Pod
	// just before it saw the taint (SPEC C63, R-B24). That is five seconds, and one since the state holds whole ones.
	settleTime = 6 * time.Second
	// maxPodEviction is how long Pods may resist eviction before everything is taken back (SPEC C64).
	maxPodEviction = 2 * time.Minute
	// maxDeletion is how long a Machine that was named as victim may stand unharmed, and how long a scale-down takes the
	// place of another one after it was committed (SPEC C65).
	maxDeletion = 5 * time.Minute
	// maxChoice is how long a Node that is to go waits until others are chosen whom a lower target takes: as long as it may take to be
	// emptied, and they to be deleted; and as long as its last Pod may take to end.
	maxChoice = maxPodEviction + maxDelay + maxDeletion
)

func byNodeName(a, b autoscaling.Removal) int { return cmp.Compare(a.Node, b.Node) }

// continueRemovals takes every scale-down that is under way one step further. A list of Pods that is not believed proves no
// Node empty, and during an outage none goes.
//
//	taint, cordon ─▶ list the Pods again ─▶ drain-node empties it ─▶ empty: replicas − n, n victims ─▶ Node gone
//	      └──────────────┴── a Pod that cannot go, or that waits, 2 m, the minimum, or an outage ──▶ way back: untaint, uncordon, cool down
func (sc *scan) continueRemovals() {
	empty := map[*group][]autoscaling.Removal{}
	var keep []autoscaling.Removal
	for _, r := range sc.state.Removals {
		n := sc.nodes[r.NodeUID]
		if (n == nil || sc.expired(r)) && !sc.naming(r) { // done, or nothing left to remove
			continue
		}
		if why := sc.endOf(r, n); why != "" {
			sc.takeBack(r, n, why)
			continue
		}
		keep = append(keep, r)
	}
	sc.state.Removals = keep
	sc.giveBackKept()
	sc.giveBackNeeded()
	for i := range sc.state.Removals {
		r := &sc.state.Removals[i]
		n := sc.nodes[r.NodeUID]
		if sc.begun(*r) {
			continue
		}
		stands := !sc.taint(*r, n)
		old := sc.Pretended && !sc.Now.Before(r.At.Add(settleTime)) // a dry run finds no taint that it once decided on
		if stands && r.Fresh && !old {                              // only now: its write may have taken any time, or have been lost
			r.At = *sc.now()
		}
		r.Fresh = !stands // also where somebody took it off: that is remembered before it is written anew, whoever dies then (R-B24)
		if stands && !sc.doubt && !sc.Now.Before(r.At.Add(settleTime)) && sc.emptied(*r, n) && !sc.delayed(*r, n) {
			g := sc.byID[r.Group]
			empty[g] = append(empty[g], *r)
		}
	}
	for _, g := range sortedGroups(empty) {
		sc.commitRemovals(g, empty[g])
	}
	sc.dropStaleTaints()
}

// begun reports that the Machine is on its way out: by our commit, or because somebody deletes it anyway, or is about to. One that its set
// names is taken off the target already, whatever the state says of the write that did so, which may have had no answer.
func (sc *scan) begun(r autoscaling.Removal) bool {
	m := sc.machines[r.MachineUID]
	return m == nil || m.DeletionTimestamp != nil || r.Committed != nil || sc.retired[m.UID] || sc.named[m.UID]
}

// expired reports that the Machine is gone and only its Node is left: for so long that nobody is about to remove that. A
// Node that looks alive a little longer than its Machine must not take Pods in the meantime.
func (sc *scan) expired(r autoscaling.Removal) bool {
	since := r.At
	if r.Committed != nil {
		since = *r.Committed
	}
	return sc.machines[r.MachineUID] == nil && !sc.Now.Before(since.Add(maxDeletion))
}

// occupies reports whether a scale-down takes one of the places that there are at a time: until its Machine is gone, or has
// been named as victim for as long as a deletion may take. One that takes longer is left to whoever deletes it.
func (sc *scan) occupies(r autoscaling.Removal) bool {
	if r.Committed == nil {
		return !sc.begun(r)
	}
	return sc.machines[r.MachineUID] != nil && sc.Now.Before(r.Committed.Add(maxDeletion))
}

// endOf returns why a scale-down has to be taken back, if so.
func (sc *scan) endOf(r autoscaling.Removal, n *corev1.Node) string {
	switch m := sc.machines[r.MachineUID]; {
	case m == nil || m.DeletionTimestamp != nil:
		return ""
	case r.Committed == nil:
		return sc.hopeless(r, n, sc.byID[r.Group])
	case sc.spared(r):
		return "its machine was not deleted"
	}
	return ""
}

// spared reports that a victim was spared, as far as this scan knows.
func (sc *scan) spared(r autoscaling.Removal) bool {
	g := sc.byID[r.Group]
	if g == nil {
		return spared(r, nil, nil, false, sc.Now)
	}
	return spared(r, g.set, sc.machines[r.MachineUID], pendingResize(g, sc.state.Groups[g.id]), sc.Now)
}

// spared reports that a victim of set, nil if that is not known, was neither deleted in time nor is still named, nor about to be:
// scale-machineset dropped it, because somebody raised replicas at the same moment, or never learned of it.
func spared(r autoscaling.Removal, set *machine.MachineSet, m *machine.Machine, pending bool, now time.Time) bool {
	late := !now.Before(r.Committed.Add(maxDeletion))
	if set == nil {
		return late
	}
	victims, err := machine.Victims(set)
	if err != nil || slices.ContainsFunc(victims, func(v machine.Victim) bool { return v.UID == r.MachineUID }) {
		return false
	}
	return late || !pending && kept(set, m)
}

// kept reports that the ledger, whose commit drops the victims that it does not take, still wants the Machine, and no more than the set does:
// else nobody has chosen yet.
func kept(set *machine.MachineSet, m *machine.Machine) bool {
	l, err := machine.ParseLedger(set.Annotations[machine.AnnotationLedger])
	if err != nil || m == nil {
		return false
	}
	k, ok := l.OrdinalOf(set.Name, m)
	return ok && l.Active.Has(k) && (set.Spec.Replicas == nil || len(l.Active) <= int(*set.Spec.Replicas))
}

const (
	// newerVersion is why nothing is removed of a set whose ledger this version cannot read.
	newerVersion = "a newer version wrote the ledger of the machine set"
	// nobodyChose is why nothing is removed of a set that has more Machines than are wanted, itselfChosen why a Node of those is not that
	// were chosen: whoever deletes them may be refused that.
	nobodyChose  = "the machine set is to lose others, who are not chosen yet"
	itselfChosen = "its machine was chosen to go, and nobody has deleted it yet"
)

// hopeless returns why a Node cannot be removed any more, if so.
func (sc *scan) hopeless(r autoscaling.Removal, n *corev1.Node, g *group) string {
	switch {
	case g == nil:
		return "its machine set is no longer resized"
	case !g.has(r.MachineUID): // another would go
		return "its machine no longer belongs to the machine set"
	case !sc.settings.ScaleDownEnabled:
		return "scale-down was disabled"
	case sc.barred[n.UID] != "":
		return sc.barred[n.UID]
	case sc.tooManyUnready(): // whoever lost a Node needs this one
		return outage
	case sc.newerLedger(g):
		return newerVersion
	case sc.forbidden(n) != "":
		return unchangeable + sc.forbidden(n)
	case sc.unwritable(g) != "": // it would stay drained and tainted for as long as that is so
		return sc.unwritable(g)
	case !sc.Now.Before(chosenBy(r)) && sc.retired[n.UID]: // scale-machineset may not delete it
		return itselfChosen
	case !sc.Now.Before(chosenBy(r)) && sc.undecided(g): // scale-machineset is not there
		return nobodyChose
	}
	for _, p := range sc.remaining(n) {
		if !r.Drain {
			return fmt.Sprintf("pod %s/%s came to the empty node", p.Namespace, p.Name)
		}
		if why := outlasts(p, r.At.Time, time.Duration(r.MaxGrace)*time.Second); why != "" {
			return fmt.Sprintf("pod %s/%s holds it up: %s", p.Namespace, p.Name, why)
		}
		if p.DeletionTimestamp != nil {
			continue // whatever it is, it goes
		}
		if why := cmp.Or(sc.blocks(p), sc.twice(p)); why != "" {
			return fmt.Sprintf("pod %s/%s cannot be moved: %s", p.Namespace, p.Name, why)
		}
		if !sc.Now.Before(r.At.Add(maxPodEviction)) && !sc.cameBack(p, r) {
			return fmt.Sprintf("pod %s/%s could not be evicted within %s", p.Namespace, p.Name, maxPodEviction)
		}
	}
	return ""
}

// chosenBy returns until when a Node that is to go waits for the choice of others. Before its last Pod has ended it waits for none, so that
// what people lowered a moment ago calls no drain off whose Pods may take that long.
func chosenBy(r autoscaling.Removal) time.Time {
	until := r.At.Add(maxChoice)
	if r.Drain {
		until = until.Add(time.Duration(r.MaxGrace) * time.Second)
	}
	return until
}

// giveBackKept takes the removals back of Nodes that the minimum of their groups keeps: others would be made for Pods that they can take.
func (sc *scan) giveBackKept() {
	kept := map[types.UID]bool{}
	for _, r := range sc.state.Removals {
		if !sc.begun(r) && sc.tooMany(r, sc.byID[r.Group]) {
			kept[r.NodeUID] = true
		}
	}
	sc.giveBack(kept, "the machine set is at its minimum")
}

// tooMany reports that a group's minimum keeps a Node: since its removal began the target was lowered, or the minimum raised. Those go
// on first that need no drain. While nobody has chosen yet whom a lower target takes, it may be this one.
func (sc *scan) tooMany(r autoscaling.Removal, g *group) bool {
	before := int32(0)
	for _, x := range sc.state.Removals {
		first := cmp.Or(cmp.Compare(truth(x.Drain), truth(r.Drain)), byNodeName(x, r)) < 0
		before += int32(truth(first && x.Group == r.Group && !sc.begun(x)))
	}
	return before >= g.target-g.min && !sc.undecided(g)
}

// giveBack takes the removals of some Nodes back.
func (sc *scan) giveBack(nodes map[types.UID]bool, why string) {
	sc.state.Removals = slices.DeleteFunc(sc.state.Removals, func(r autoscaling.Removal) bool {
		if nodes[r.NodeUID] {
			sc.takeBack(r, sc.nodes[r.NodeUID], why)
		}
		return nodes[r.NodeUID]
	})
}

// commitRemovals lowers a group's replicas by the Nodes that are empty, naming their Machines as victims.
func (sc *scan) commitRemovals(g *group, empty []autoscaling.Removal) {
	if pendingResize(g, sc.state.Groups[g.id]) || sc.undecided(g) {
		return // one change of a set at a time, also where people made the last one and nobody has chosen yet
	}
	sc.state.Removals, empty = sc.withinMinimums(empty)
	if len(empty) == 0 {
		return
	}
	var names []string
	for _, r := range empty {
		names = append(names, r.Plan)
		if r.Drain {
			sc.notes = append(sc.notes, plan.Log("All pods removed from "+r.Node))
		}
	}
	id := sc.planID("remove", names...)
	for i := range sc.state.Removals {
		if slices.Contains(names, sc.state.Removals[i].Plan) {
			sc.state.Removals[i].Resize, sc.state.Removals[i].Committed = id, sc.now()
		}
	}
	sc.resize(g, id, g.target-int32(len(empty)))
	sc.state.LastScaleDown = sc.now()
	sc.markLeaving(g)
	sc.recount(g)
}

// withinMinimums takes back those of some removals without which the cluster would be below its minimums now: these may have
// been raised, or Nodes lost, since the removals began (SPEC C41, RELIABILITY 2d). It returns all removals that are left, and
// those of the given ones.
func (sc *scan) withinMinimums(empty []autoscaling.Removal) (all, left []autoscaling.Removal) {
	rest := sc.staying() // without everything that is about to go
	short := map[string]bool{}
	for _, r := range empty {
		n := sc.nodes[r.NodeUID]
		with := rest.plus(sc.sizeOf(n), 1)
		if sc.spare(with, sc.sizeOf(n)) {
			left = append(left, r)
			continue
		}
		sc.takeBack(r, n, "the cluster is at its minimum: "+sc.underMinimum(with, sc.sizeOf(n)))
		short[r.Plan], rest = true, with
	}
	return slices.DeleteFunc(sc.state.Removals, func(r autoscaling.Removal) bool { return short[r.Plan] }), left
}

// recount counts a group again after its target and its members have changed together.
func (sc *scan) recount(g *group) {
	g.ready, g.starting, g.unready, g.failed, g.fallen, g.gone, g.late = 0, 0, 0, 0, 0, 0, 0
	sc.count(g)
	g.upcoming = min(g.upcoming, g.awaited())
}

// takeBack undoes a scale-down: nothing more was done than a taint and a cordon. The caller drops the removal.
func (sc *scan) takeBack(r autoscaling.Removal, n *corev1.Node, why string) {
	sc.state.LastFailure = sc.now()
	sc.dropTimer(r.NodeUID)
	sc.noteUnharmed(r)
	message := "Scale-down: node " + r.Node + " stays: " + why
	sc.tell(&sc.notes, corev1.EventTypeWarning, "ScaleDownFailed", message)
	if n != nil {
		message := "aborting ScaleDown: " + why
		if r.Drain {
			message = "failed to drain the node, " + message
		}
		sc.notes = append(sc.notes, plan.Warning(n, "ScaleDownFailed", message).From(source))
		if sc.forbidden(n) == "" { // else it is tried by itself, and what goes with this is done
			sc.untaint(n, "scale-down is taken back")
		}
	}
}

// taint marks a Node as about to go, so that nothing new is scheduled there, and reports whether it had to. Why it stayed it says no more.
func (sc *scan) taint(r autoscaling.Removal, n *corev1.Node) bool {
	want := corev1.Taint{Key: machine.TaintToBeDeleted, Value: r.Plan, Effect: corev1.TaintEffectNoSchedule}
	cordon := sc.settings.CordonNodeBeforeTerminating && !n.Spec.Unschedulable
	if slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == want.Key && t.Value == want.Value }) && !cordon {
		return false
	}
	next := n.DeepCopy()
	next.Spec.Taints = append(slices.DeleteFunc(next.Spec.Taints, isRemoval), want)
	delete(next.Annotations, machine.AnnotationScaleDownReason)
	if cordon {
		next.Spec.Unschedulable = true
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[machine.AnnotationCordonedBy] = r.Plan
	}
	sc.do = append(sc.do, plan.Update{Old: n, New: next, Why: "scale-down"})
	return true
}

func isRemoval(t corev1.Taint) bool { return t.Key == machine.TaintToBeDeleted }

// untaint gives a Node back. A cordon that somebody else made stays.
func (sc *scan) untaint(n *corev1.Node, why string) {
	if next, changed := sc.mine.givenBack(n); changed {
		sc.do = append(sc.do, plan.Update{Old: n, New: next, Why: why})
	}
}

// dropStaleTaints frees Nodes whose taint belongs to no current plan (R-S11). Those of Machines that are being
// deleted are left: they go anyway.
func (sc *scan) dropStaleTaints() {
	for _, n := range sc.Nodes {
		_, current := sc.state.RemovalOf(n, machine.TaintToBeDeleted)
		if current || sc.deleting(n) || removalOf(sc.state.Removals, n.UID) != nil {
			continue
		}
		if slices.ContainsFunc(sc.do, func(a plan.Action) bool { return touches(a, n) }) {
			continue
		}
		if next, stale := sc.mine.givenBack(n); stale {
			a := plan.Update{Old: n, New: next, Why: "no plan stands behind the taint"}
			sc.redo = append(sc.redo, plan.Sequence{Do: []plan.Action{a}, Notes: []plan.Note{
				plan.Normal(n, "ClusterAutoscalerCleanup", "marking the node as schedulable").From(source),
			}})
		}
	}
}

func touches(a plan.Action, n *corev1.Node) bool {
	u, ok := a.(plan.Update)
	return ok && u.Old == plan.Object(n)
}

// deleting reports whether the Machine behind a Node is on its way out.
func (sc *scan) deleting(n *corev1.Node) bool { return sc.goes[n] }
