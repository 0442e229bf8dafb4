// SPDX-License-Identifier: Apache-2.0

// Package drainnode empties a Node before its instance goes.
//
//	wakes on  Machine, Node; scan
//	reads     Machine, Node, Pod, PodDisruptionBudget, VolumeAttachment, PersistentVolumeClaim,
//	          ConfigMap (cluster-autoscaler-status, machine-disruption)
//	writes    Machine (condition Drained, phase Deleting with it), Node (cordon), Pod (evict), ConfigMap (machine-disruption)
//
// It drains for a Machine that is being deleted, until the Machine's condition Drained is True, and for a plan of
// evaluate-autoscale, which sees by itself when the Node is empty. Pods leave by eviction only, so that disruption
// budgets hold (R-S8). Nothing is waited for: what is not done yet is looked at again by the next event or scan. Where the
// Machine's annotation node-drain-timeout says so, a drain that does not end is ended with what is left.
package drainnode

import (
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Function is the deployable function.
var Function = function.Function{Name: "drain-node", Reads: reads, Decide: Decide}

// source is the component that Events about draining come from (SPEC S65).
const source = "machine-drain-controller"

// Decide takes every Machine that has to be drained, and every Node that a scale-down wants empty, one step further.
func Decide(s snapshot.Snapshot) plan.Plan {
	var p plan.Plan
	claimed := false // the control-plane slot is claimed by this plan
	inDoubt := doubts{Snapshot: s}
	draining := map[*corev1.Node]bool{} // those of deleted Machines: whether one of these has it emptied
	for _, m := range due(s) {
		s.Apart(m, func() {
			n := nodeOf(s, m)
			if n == nil && machine.FoundNoNode(m) {
				return
			}
			if _, _, err := limitOf(m); err != nil {
				p.Notes = append(p.Notes, plan.Warning(m, "FailedValidate", err.Error()).From(source))
			}
			if n != nil && draining[n] {
				return // another Machine claims the same Node: one plan is enough
			}
			d := drain{Snapshot: s, m: m, n: n, others: others(s, m, n), doubted: inDoubt.of(m, n)}
			for _, its := range append([]*corev1.Node{n}, d.others...) {
				draining[its] = draining[its] || !held(m) // another Machine of it that no hook holds is not kept waiting
			}
			p.Add(d.step(&claimed)...)
		})
	}
	for _, m := range undeleted(s) {
		s.Apart(m, func() {
			next := m.DeepCopy()
			forget(next)
			p.Then(plan.UpdateStatus{Old: m, New: next, Why: "it is not being deleted: what it says of a drain is of another time"})
		})
	}
	for _, m := range reopened(s) {
		s.Apart(m, func() { p.Add(drain{Snapshot: s, m: m, n: s.NodeOf(m)}.anew()...) })
	}
	for _, n := range s.Nodes {
		s.Apart(n, func() {
			_, deleted := draining[n]
			if r, ok := removalOf(s, n); ok && !deleted {
				p.Add(empty(s, n, r)...)
			}
		})
	}
	return p.Untried(s.Outcomes)
}

// drain is one Machine in one decision. Without a Node there is nothing to empty.
type drain struct {
	snapshot.Snapshot
	m       *machine.Machine
	n       *corev1.Node
	doubted *corev1.Node   // without n: it may be the Machine's, as far as anybody knows, and Pods may run on it
	others  []*corev1.Node // of the same instance, which are emptied next
	later   bool           // n is one of those: the drain has begun
	back    []string       // Pods that came back to Nodes that are emptied
}

// step: skip or wait for hooks, take the slot, cordon, evict, see everything go (B28–B34, RELIABILITY 2e).
func (d drain) step(claimed *bool) []plan.Sequence {
	_, excluded := d.m.Annotations[machine.AnnotationExcludeDrain]
	switch {
	case excluded:
		return d.drained("DrainSkipped", d.note("DrainSkipped", "Node drain skipped"))
	case d.n == nil && d.m.Status.NodeRef == nil && d.doubted == nil:
		return d.drained(machine.ReasonNoNode, d.note("DrainSkipped", "Node drain skipped"))
	case len(d.m.Spec.LifecycleHooks.PreDrain) > 0:
		return d.shown("hooks before the drain", d.note("DrainBlocked", "Drain blocked by pre-drain hooks: "+hooks(d.m)))
	case d.n == nil && unlinked(d.Snapshot, d.m) != nil:
		return d.awaitLink("node " + d.m.Status.NodeRef.Name + ", which registered anew,")
	case d.n == nil && d.doubted != nil:
		return d.awaitLink("node " + d.doubted.Name + ", which may be this machine's or another's,")
	case d.n == nil: // gone (B31)
		return d.set(machine.NodeGone(d.m.Status.NodeRef.UID), []plan.Note{d.note("DrainSucceeded", "Node drain succeeded")})
	}
	return d.empty(claimed)
}

// empty has the Node left by its Pods, once it is its turn.
func (d drain) empty(claimed *bool) []plan.Sequence {
	if seq, wait := d.takeSlot(claimed); wait {
		return seq
	}
	if seq := d.begin(d.proceeds()...); seq != nil {
		return seq
	}
	if !closed(d.n) {
		return d.cordon()
	}
	return d.evict(claimed)
}

// anew takes back that the Node is drained: whatever holds the instance, it is not to go with the Pods that came since.
func (d drain) anew() []plan.Sequence {
	why := "node " + d.n.Name + " was drained and takes pods again: it is drained anew"
	return d.undrained(machine.False(machine.ConditionDrained, machinev1beta1.ConditionSeverityInfo, "Draining", why), requeued(d.m, why))
}

// awaitLink waits until it is known whose a Node is: one that registered anew under the name of the linked one, or that fits several Machines.
func (d drain) awaitLink(node string) []plan.Sequence {
	if seq := d.begin(); seq != nil {
		return seq
	}
	if d.late() {
		return d.timedOut(node + " is not linked to its machine")
	}
	return d.undrained(machine.False(machine.ConditionDrained, machinev1beta1.ConditionSeverityInfo, "Draining", "waits for "+node+" to be linked to its machine"))
}

// closed reports that n takes no new Pods, and that no plan of evaluate-autoscale which is called off can change that: it takes
// back what its annotation says is its own, by compare-and-swap on the Node.
func closed(n *corev1.Node) bool {
	_, lent := n.Annotations[machine.AnnotationCordonedBy]
	return n.Spec.Unschedulable && !lent
}

// closedSince returns since when m is drained and n takes no Pods, as far as both say so: the cluster writes on n when it saw the cordon. It is
// the zero time before that, as who came by then was never evicted. A backup may have brought back what m says of an earlier deletion.
func closedSince(m *machine.Machine, n *corev1.Node) time.Time {
	c := machine.FindCondition(m.Status.Conditions, machine.ConditionDrained)
	seen := slices.IndexFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == corev1.TaintNodeUnschedulable })
	if c == nil || c.Status == corev1.ConditionTrue || c.Reason == reasonQueued || seen < 0 {
		return time.Time{}
	}
	since := c.LastTransitionTime.Time
	for _, later := range []*metav1.Time{m.DeletionTimestamp, n.Spec.Taints[seen].TimeAdded} {
		if later != nil && later.After(since) {
			since = later.Time
		}
	}
	return since
}

// cordon keeps new Pods off the Node, or takes over the cordon of a plan that does. What the API server has against that is told
// of the Machine, which waits for it.
func (d drain) cordon() []plan.Sequence {
	next := d.n.DeepCopy()
	next.Spec.Unschedulable = true
	delete(next.Annotations, machine.AnnotationCordonedBy)
	a := plan.Update{Old: d.n, New: next, Why: "cordon for machine " + d.m.Name}
	if why, refused := d.Refused(a); refused {
		if d.late() {
			return d.timedOut(d.uncordoned() + why)
		}
		return d.hindered(d.uncordoned(), why)
	}
	return []plan.Sequence{{Do: []plan.Action{a}, Notes: []plan.Note{d.note("DrainProceeds", "Node drain proceeds")}}}
}

// uncordoned begins what is told of a Node whose cordon the API server refuses.
func (d drain) uncordoned() string { return "node " + d.n.Name + " cannot be cordoned: " }

// evict empties the Node, sees the volumes go, then does the same with the others of the instance.
func (d drain) evict(claimed *bool) []plan.Sequence {
	e := evictionOf(d.Snapshot, d.n, nil, closedSince(d.m, d.n))
	var begins []plan.Note
	if e.vain() { // the first eviction that comes to something tells it
		begins = d.proceeds()
	}
	now, left := e.now(), e.left()
	if left != "" && d.late() {
		if now = e.all(); len(now) == 0 {
			return d.timedOut("there are still " + left)
		}
	}
	if len(now) > 0 {
		if machine.Phase(d.m) != machine.PhaseDeleting { // nobody's Pods go before everybody can see why (B27)
			return d.undrained(machine.False(machine.ConditionDrained, machinev1beta1.ConditionSeverityInfo, "Draining", e.after(len(now))), begins...)
		}
		now[0].Notes = begins
		if d.overdue(inVain) {
			now = append(now, d.timedOut("there are still "+left)...)
		}
		return now
	}
	if of, words := e.obstacle(); of != "" {
		return d.hindered(of, words, begins...)
	}
	if progress := e.progress(); progress != "" {
		return d.undrained(machine.False(machine.ConditionDrained, machinev1beta1.ConditionSeverityInfo, "Draining", progress))
	}
	if volumes := strings.Join(attached(d.Snapshot, d.n, e.staying), ", "); volumes != "" {
		if d.late() {
			return d.timedOut("there are still volumes " + volumes)
		}
		return d.undrained(machine.False(machine.ConditionDrained, machinev1beta1.ConditionSeverityInfo, "Draining",
			"waits for volumes to be detached: "+volumes))
	}
	if !besideRead(d.Snapshot, d.m, d.n) { // the scan ends it
		return d.shown("other nodes of its instance are looked for")
	}
	for _, p := range e.back {
		d.back = append(d.back, p.Namespace+"/"+p.Name)
	}
	if len(d.others) > 0 {
		d.n, d.others, d.later = d.others[0], d.others[1:], true
		return d.empty(claimed)
	}
	linked := d.n.UID
	if ref := d.m.Status.NodeRef; ref != nil {
		linked = ref.UID
	}
	if len(d.back) > 0 {
		begins = append(begins, plan.Warning(d.m, "DrainLeavesPods", "pods "+plan.Few(d.back, fewPods)+" tolerate the cordon, came back and go with the node").From(source))
	}
	return d.set(machine.NodeDrained(linked), append(begins,
		d.note("Deleted", fmt.Sprintf("Node %q drained", d.n.Name)), d.note("DrainSucceeded", "Node drain succeeded")))
}

// hindered shows what the drain cannot go on for, and the API server's words about that; the next event or scan tries again. An answer
// that is worded anew each time, as with the port of the connection to a webhook that broke, is no change: who writes it wakes us for it.
func (d drain) hindered(of, words string, notes ...plan.Note) []plan.Sequence {
	why := plan.Reworded(d.begun(), of, words)
	return d.undrained(machine.False(machine.ConditionDrained, machinev1beta1.ConditionSeverityWarning, machinev1beta1.MachineDrainError, why), append(notes, requeued(d.m, of+words))...)
}

// requeued tells that Pods of o, a Machine or a Node, wait for the next try.
func requeued(o plan.Object, why string) plan.Note {
	return plan.Warning(o, "DrainRequeued", "Node drain requeued: "+why).From(source)
}

// drained ends the drain: provision-machine goes on from here (B17).
func (d drain) drained(reason string, notes ...plan.Note) []plan.Sequence {
	return d.set(machine.True(machine.ConditionDrained, reason, ""), notes)
}

// undrained shows on the Machine what it waits for. The texts hold no durations, so that waiting writes nothing.
func (d drain) undrained(c machine.Condition, notes ...plan.Note) []plan.Sequence {
	have := machine.FindCondition(d.m.Status.Conditions, c.Type)
	if have != nil && have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
		return d.shown(c.Reason, notes...)
	}
	return d.set(c, notes)
}

func (d drain) set(c machine.Condition, notes []plan.Note) []plan.Sequence {
	next := d.deleting()
	if have := d.begun(); have != nil && d.waited(have) && c.Reason != have.Reason { // its turn has come: the queue does not count
		forget(next)
	}
	next.Status.Conditions = machine.SetCondition(next.Status.Conditions, c, d.Now)
	return []plan.Sequence{{Do: []plan.Action{plan.UpdateStatus{Old: d.m, New: next, Why: c.Reason}}, Notes: notes}}
}

// deleting returns a copy of the Machine in phase Deleting. The first word about a drain says so too: the Machine's other
// writer would do it at the same moment, and one of the two would come too late (B17).
func (d drain) deleting() *machine.Machine {
	next := d.m.DeepCopy()
	if machine.Phase(next) != machine.PhaseDeleting {
		now := metav1.NewTime(d.Now)
		next.Status.Phase, next.Status.LastUpdated = new(machine.PhaseDeleting), &now
	}
	return next
}

// shown tells notes of a drain that has nothing to write but, where it is not shown yet, the phase.
func (d drain) shown(why string, notes ...plan.Note) []plan.Sequence {
	if machine.Phase(d.m) == machine.PhaseDeleting {
		return []plan.Sequence{{Notes: notes}}
	}
	return []plan.Sequence{{Do: []plan.Action{plan.UpdateStatus{Old: d.m, New: d.deleting(), Why: why}}, Notes: notes}}
}

// begun returns the condition of a drain that is under way, or waits for its turn; nil if there is none yet.
func (d drain) begun() *machine.Condition {
	c := machine.FindCondition(d.m.Status.Conditions, machine.ConditionDrained)
	if c == nil || c.Status == corev1.ConditionTrue {
		return nil
	}
	return c
}

// proceeds tells once that the drain begins of a Node that is cordoned already. Else the cordon tells it, whatever was waited for.
func (d drain) proceeds() []plan.Note {
	if !closed(d.n) {
		return nil
	}
	cordon, outrun := "update "+plan.NameOf(d.n)+"@", false
	for key, o := range d.Outcomes {
		if !strings.HasPrefix(string(key), cordon) {
			continue
		}
		if o.Result == plan.Done {
			return nil
		}
		outrun = true // by whoever did cordon it, which is told nowhere yet
	}
	if c := d.begun(); c != nil && c.Reason != reasonQueued && !outrun && !strings.HasPrefix(c.Message, d.uncordoned()) {
		return nil
	}
	return []plan.Note{d.note("DrainProceeds", "Node drain proceeds")}
}

func (d drain) note(reason, message string) plan.Note {
	return plan.Normal(d.m, reason, message).From(source)
}

func hooks(m *machine.Machine) string {
	var names []string
	for _, h := range m.Spec.LifecycleHooks.PreDrain {
		names = append(names, fmt.Sprintf("%s (owner %s)", h.Name, h.Owner))
	}
	return strings.Join(names, ", ")
}
