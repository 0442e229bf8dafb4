// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// resizeTTL is how long a committed change of replicas that nobody carried out is still right.
const resizeTTL = time.Minute

// planID names a decision: the same for the same decision in the same second, whoever takes it.
func (sc *scan) planID(prefix string, about ...string) string {
	return planIDAt(sc.now().Time, prefix, about...)
}

func planIDAt(at time.Time, prefix string, about ...string) string {
	h := sha256.New()
	fmt.Fprintln(h, at.Unix(), about)
	return prefix + "-" + hex.EncodeToString(h.Sum(nil)[:5])
}

// settle finds out what became of the decisions of earlier scans, and of the Nodes that they brought.
//
//	set carries the plan's id                   → carried out
//	set at the revision that was seen, in time  → to be carried out: its target counts already
//	anything else                               → void
func (sc *scan) settle() {
	for _, g := range sc.groups {
		r := sc.state.Groups[g.id].Resize
		if r == nil || r.Plan == g.set.Annotations[machine.AnnotationLastPlan] {
			continue
		}
		update := sc.resized(g, *r)
		o, tried := sc.Outcome(update)
		current := r.SetUID == g.set.UID && r.ResourceVersion == g.set.ResourceVersion && sc.Now.Before(r.At.Add(resizeTTL))
		switch {
		case tried && o.Result != plan.Done && o.Result != plan.Failed: // what got no clear answer may come to pass yet
			sc.refused(g, *r, o)
			sc.void(g, *r)
		case current:
			g.target = r.To
			sc.unsettled = sc.unsettled || r.To > r.From
			sc.redo = append(sc.redo, plan.Sequence{Do: []plan.Action{update}, Notes: sc.done(g, *r)})
		default:
			sc.void(g, *r)
		}
	}
	for _, g := range sc.groups {
		sc.forgetFormer(g)
		sc.grantRetry(g)
		sc.noticeLowered(g)
		sc.markLeaving(g)
		sc.count(g)
		sc.followRequest(g)
	}
}

// noteGrowths notes when the cluster last grew, once that was carried out: a growth that is refused, or void, cools nothing down (SPEC C53). One
// whose set has the replicas was, though who replaced the set by a manifest took the plan's id off.
// By itself that is no reason to write. Of a set that is resized no more, or was made anew, it is not known, and taken for carried out.
func (sc *scan) noteGrowths() {
	last := sc.state.LastScaleUp
	for id, n := range sc.state.Groups {
		if g := sc.byID[id]; g == nil || !pendingResize(g, n) || n.Resize.SetUID != g.set.UID || n.Resize.To <= g.target {
			last = n.GrownSince(last)
		}
	}
	if last != sc.state.LastScaleUp {
		sc.state.LastScaleUp, sc.before.LastScaleUp = last, last
	}
}

// pendingResize reports that a committed change of a group was not carried out yet.
func pendingResize(g *group, n autoscaling.NodeGroup) bool {
	return n.Resize != nil && n.Resize.Plan != g.set.Annotations[machine.AnnotationLastPlan]
}

// naming reports that a committed change of a group is still to name the Machine of a removal: without that name the set would choose
// another one (R-S5).
func (sc *scan) naming(r autoscaling.Removal) bool {
	g, n := sc.byID[r.Group], sc.state.Groups[r.Group]
	return g != nil && r.Committed != nil && pendingResize(g, n) && n.Resize.Plan == r.Resize
}

// void forgets a decision that can no longer be carried out, and the wave of Nodes that were never asked for with it. Nodes that were to be
// removed by it stay tainted: they are decided about anew. Not so of a set that has the replicas which were committed: who replaced it
// by a manifest took the plan's id and the victims off. Its wave is on its way, and lowered again it would lose one more.
func (sc *scan) void(g *group, r autoscaling.Resize) {
	sc.change(g, func(n *autoscaling.NodeGroup) {
		n.Resize = nil
		if r.To > r.From && !(r.SetUID == g.set.UID && g.target >= r.To) {
			n.Waves = slices.DeleteFunc(slices.Clone(n.Waves), func(w autoscaling.Wave) bool { return w.To > r.From })
		}
	})
	if r.To < r.From && r.SetUID == g.set.UID && g.target == r.To { // it was lowered: what is chosen now tells whom that takes
		return
	}
	for i := range sc.state.Removals {
		if sc.state.Removals[i].Resize == r.Plan {
			sc.state.Removals[i].Resize, sc.state.Removals[i].Committed = "", nil
		}
	}
}

// refused notes that the API server did not let a set be resized. One that grows is left alone for a while (SPEC C33).
func (sc *scan) refused(g *group, r autoscaling.Resize, o plan.Outcome) {
	if o.Result == plan.Conflict {
		return
	}
	if r.To > r.From {
		sc.tell(&sc.notes, corev1.EventTypeWarning, "FailedToScaleUpGroup", fmt.Sprintf("Scale-up failed for group %s: %s", g.id, o.Message))
		sc.fail(g, o.Message)
		return
	}
	if strings.HasPrefix(r.Plan, revert+"-") {
		sc.notReverted(g, r, o.Message)
		return
	}
	sc.state.LastFailure = sc.now()
	for _, x := range sc.state.Removals {
		if x.Resize == r.Plan {
			sc.tell(&sc.notes, corev1.EventTypeWarning, "ScaleDownFailed", fmt.Sprintf("Scale-down: node %s was not removed: %s", x.Node, o.Message))
		}
	}
}

// unchangeable is told of a Node that cannot be tainted.
const unchangeable = "the node cannot be changed: "

// forbidden returns why an object cannot be changed, if the API server said so in this invocation; else "". Who plans such a write all the
// same has nothing carried out that goes with it.
func (sc *scan) forbidden(o plan.Object) string {
	if why, refused := sc.Refused(plan.Update{Old: o}); refused {
		return cmp.Or(clip(why), "it is refused")
	}
	return ""
}

// unwritable returns why a group's set cannot be changed, its size or its bounds.
func (sc *scan) unwritable(g *group) string {
	if why := sc.forbidden(g.set); why != "" {
		return "its machine set cannot be changed: " + why
	}
	return ""
}

// resize commits a new size of a group and plans the write that carries it out.
func (sc *scan) resize(g *group, id string, to int32) {
	sc.commitResize(g, autoscaling.Resize{Plan: id, To: to})
}

// commitResize is resize with victims that are no removals.
func (sc *scan) commitResize(g *group, r autoscaling.Resize) {
	r.SetUID, r.ResourceVersion, r.From, r.At = g.set.UID, g.set.ResourceVersion, g.target, *sc.now()
	sc.change(g, func(n *autoscaling.NodeGroup) { n.Resize = &r })
	g.target = r.To
	sc.do = append(sc.do, sc.resized(g, r))
	sc.told = append(sc.told, sc.done(g, r)...)
}

// resized is the write that carries out a committed change: replicas, who wanted it, the Machines that are to go.
func (sc *scan) resized(g *group, r autoscaling.Resize) plan.Action {
	next := g.set.DeepCopy()
	next.Spec.Replicas = &r.To
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[machine.AnnotationLastPlan] = r.Plan
	sc.withBackoff(g, next)
	sc.withMemory(g, next)
	victims, _ := machine.Victims(g.set) // unreadable: the set grows, and nobody is named
	named := len(victims)
	victims = append(victims, victimsOf(r)...)
	for _, x := range sc.state.Removals {
		if x.Resize == r.Plan {
			victims = append(victims, machine.Victim{Name: x.Machine, UID: x.MachineUID, Plan: x.Plan})
		}
	}
	why := fmt.Sprintf("%d → %d replicas", r.From, r.To)
	if len(victims) > named {
		if text, err := json.Marshal(victims); err == nil { // strings marshal
			next.Annotations[machine.AnnotationVictims] = string(text)
		}
	}
	return plan.Update{Old: g.set, New: next, Why: why}
}

// victimsOf returns the Machines that a change names and that are no removals.
func victimsOf(r autoscaling.Resize) (all []machine.Victim) {
	for _, x := range r.Lost {
		all = append(all, machine.Victim{Name: x.Machine, UID: x.UID, Plan: r.Plan})
	}
	return all
}

// done is what is told once a change was carried out (SPEC S67–S69).
func (sc *scan) done(g *group, r autoscaling.Resize) (notes []plan.Note) {
	if r.To > r.From {
		sc.tell(&notes, corev1.EventTypeNormal, "ScaledUpGroup", fmt.Sprintf("Scale-up: group %s size set to %d instead of %d (max: %d)", g.id, r.To, r.From, g.max))
		return notes
	}
	notes = sc.reverted(g, r)
	for _, x := range sc.state.Removals {
		if x.Resize != r.Plan {
			continue
		}
		reason, message := "ScaleDownEmpty", fmt.Sprintf("Scale-down: empty node %s removed", x.Node)
		if x.Drain {
			reason, message = "ScaleDown", fmt.Sprintf("Scale-down: node %s removed with drain", x.Node)
		}
		sc.tell(&notes, corev1.EventTypeNormal, reason, message)
		if n := sc.nodes[x.NodeUID]; n != nil {
			notes = append(notes, plan.Normal(n, "ScaleDown", "node removed by cluster autoscaler").From(source))
		}
	}
	return notes
}

// markLeaving marks the Machines that are on their way out: deleted, chosen by the ledger, named as victims, or about to be.
func (sc *scan) markLeaving(g *group) {
	victims, _ := machine.Victims(g.set) // unreadable: the set loses nobody
	if r := sc.state.Groups[g.id].Resize; r != nil && pendingResize(g, sc.state.Groups[g.id]) {
		victims = append(victims, victimsOf(*r)...)
	}
	for _, x := range sc.state.Removals {
		if x.Committed != nil && !sc.spared(x) {
			victims = append(victims, machine.Victim{Name: x.Machine, UID: x.MachineUID})
		}
	}
	is := namedIn(victims)
	for i := range g.members {
		m := g.members[i].machine
		g.members[i].leaving = m.DeletionTimestamp != nil || sc.retired[m.UID] || is(m)
	}
}

// sortedGroups returns the groups of a map, sorted by id.
func sortedGroups[V any](m map[*group]V) []*group {
	return slices.SortedFunc(maps.Keys(m), func(a, b *group) int {
		if a.id < b.id {
			return -1
		}
		return 1
	})
}
