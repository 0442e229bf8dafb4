// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// terminate takes a deleted Machine one step on its way out, in this order (B17, RELIABILITY 2e): phase, drained,
// hooks, instance and children gone, Node gone, finalizer. unreadable is why the intent cannot be read, if so. That it is
// deleted is told with the finalizer, whose write succeeds once, however often the cloud was asked (B68).
func (l life) terminate(unreadable error) plan.Sequence {
	switch {
	case !machine.HasFinalizer(l.m):
		return plan.Sequence{}
	case phase(l.m) != machine.PhaseDeleting && l.announced():
		return plan.Sequence{}
	case phase(l.m) != machine.PhaseDeleting:
		return l.status(l.m.DeepCopy(), machine.PhaseDeleting, "")
	case !machine.Drained(l.m) && l.hooksMoved():
		return l.awaitDrain()
	case !machine.Drained(l.m):
		return plan.Sequence{}
	case len(l.m.Spec.LifecycleHooks.PreTerminate) > 0:
		return l.status(l.m.DeepCopy(), machine.PhaseDeleting, "hooks before termination")
	}
	return l.dismantle(unreadable)
}

// hooksMoved reports whether the conditions about hooks are out of date (B26). A Machine without them gets them with the next word
// about it.
func (l life) hooksMoved() bool {
	moved := func(want machine.Condition) bool {
		have := machine.FindCondition(l.m.Status.Conditions, want.Type)
		return have != nil && (have.Status != want.Status || have.Message != want.Message)
	}
	return moved(l.drainable()) || moved(hooks(machine.ConditionTerminable, l.m.Spec.LifecycleHooks.PreTerminate))
}

// awaitDrain shows what holds the drain: other hooks, or that nobody drains, which is told as well.
func (l life) awaitDrain() plan.Sequence {
	c := l.drainable()
	seq := l.status(l.m.DeepCopy(), machine.PhaseDeleting, "what the drain waits for")
	if c.Reason == reasonUndrained {
		seq.Notes = []plan.Note{l.warning(reasonUndrained, c.Message)}
	}
	return seq
}

// drainable says whether hooks hold the drain, or that drain-node, which begins it, has said nothing for long.
func (l life) drainable() machine.Condition {
	c := hooks(machine.ConditionDrainable, l.m.Spec.LifecycleHooks.PreDrain)
	if at := l.m.DeletionTimestamp; c.Status == corev1.ConditionTrue && at != nil && !l.Now.Before(at.Add(longWordOfDrain)) &&
		machine.FindCondition(l.m.Status.Conditions, machine.ConditionDrained) == nil {
		c.Reason = reasonUndrained
		c.Message = "drain-node has said nothing since " + machine.Stamp(at.Time) + ": does it run, and is " + l.m.Namespace + " in its MACHINE_NAMESPACES?"
	}
	return c
}

// dismantle has the cloud remove what was made for a Machine that is drained and that no hook holds.
func (l life) dismantle(unreadable error) plan.Sequence {
	switch {
	case l.intent.ClaimedByOther(l.Invocation, l.Now):
		return plan.Sequence{}
	case errors.Is(unreadable, machine.ErrNewer):
		return l.blocked(unreadable.Error() + ": it is left to that version, and the machine stays")
	case unreadable != nil:
		return l.blocked(unreadable.Error() + ": mend or remove it once no instance of this Machine exists")
	case l.elsewhere():
		return l.misled()
	case l.moved(): // once it is gone nothing else says where it was
		return plan.Sequence{Do: []plan.Action{l.withIntent(l.readdressed(*l.intent), "its instance is in account "+l.cloud.Account)}}
	case machine.ProviderID(l.m) == "" && l.in != nil && l.intent.Unresolved() && !l.gone():
		return l.surfaced(*l.in)
	case l.begun() != nil && !l.gone():
		return l.surfaced(*l.begun())
	case !l.gone() && l.unseen(): // what surfaces is recorded first: its Node has to be found, drained and deleted
		return l.blocked(l.lostAnswer())
	case !l.gone() && (l.LateNodeOf(l.m) != nil || l.reopened()): // drain-node drains it
		return plan.Sequence{}
	case !l.gone():
		return l.remove()
	}
	return l.release()
}

// reopened reports whether the Node that was drained takes Pods again, as somebody uncordoned it before the last hook was taken off.
func (l life) reopened() bool {
	return takesPods(l.Snapshot, l.m) && !machine.ClaimedByAnother(l.m, l.Node(l.m.Status.NodeRef.Name), l.Machines)
}

// located writes the addresses of an instance that is to go before any were on record: a Node that names no instance is found by nothing else.
func (l life) located() plan.Sequence {
	if !unlocated(l.m) || l.in == nil || len(l.in.Addresses) == 0 {
		return plan.Sequence{}
	}
	next := l.m.DeepCopy()
	next.Status.Addresses = l.in.Addresses
	return l.status(next, machine.PhaseDeleting, "addresses of instance "+l.in.ID)
}

// unlocated reports whether m has an instance, and nobody knows its addresses, nor its Node.
func unlocated(m *machine.Machine) bool {
	return machine.ProviderID(m) != "" && m.Status.NodeRef == nil && len(m.Status.Addresses) == 0
}

// release lets a Machine go of which the cloud has nothing, with its Node, once nothing can surface any more.
func (l life) release() plan.Sequence {
	if l.intent.Unresolved() && l.cloud.Horizon == 0 && l.cloud.Err != nil { // nobody says for how long it may: the account cannot be opened
		return l.blocked(fmt.Sprintf("the answer to attempt %d was lost, and what it made may surface: %s", l.intent.Attempt, l.cloud.Err.Message))
	}
	if until := l.surfaces(); l.confirmed().Before(until) {
		return l.blocked(l.lostAnswer())
	}
	if l.doubted() {
		if n := l.alive(); n != nil {
			return l.kept(n)
		}
	}
	if l.mayHaveOthers() && !l.Has(snapshot.All("Node")) {
		return plan.Sequence{} // the scan, which reads all Nodes once for all Machines, lets it go
	}
	told := l.ended()
	for _, n := range l.nodes() { // each that its host was, whatever it was called
		if l.foreign(n) {
			told = append(told, l.foreignKept(n))
			continue
		}
		told = append(told, l.cordoned(n)...) // of those that stay
		if l.passedOn(n) {
			continue
		}
		if n.DeletionTimestamp == nil && l.claimant() == nil {
			return l.removeNode(n)
		}
	}
	if l.mayComeLate() && !l.fresh.remembered(l) {
		return plan.Sequence{} // in the next round
	}
	next := l.m.DeepCopy()
	next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == machine.Finalizer })
	seq := l.update(next, "nothing of it is left")
	seq.Notes = told
	return seq
}

// mayComeLate reports whether a call was made for a Machine that never got its instance: one that was held up, or over which a clock was set,
// may come after the Horizon. The Machine may be gone before any sweep has seen it, and then what comes is for the sweep.
func (l life) mayComeLate() bool {
	return l.cloud.Account != "" && l.intent.Called() && l.intent.Outcome != machine.OutcomeCreated
}

// mayHaveOthers reports whether the host may be another Node beside the linked one: link-node saw such, or the linked one was silent before
// it was drained already. One that fell silent later, as its instance went, was the host's then.
func (l life) mayHaveOthers() bool {
	if machine.SeveralNodes(l.m) {
		return true
	}
	drained := machine.FindCondition(l.m.Status.Conditions, machine.ConditionDrained)
	return drained != nil && machine.ProviderID(l.m) != "" && slices.ContainsFunc(l.Nodes, func(n *corev1.Node) bool {
		ready := machine.NodeCondition(n, corev1.NodeReady)
		return machine.IsNodeOf(l.m, n) && !machine.NodeHeard(n, l.Now) &&
			(ready == nil || ready.Status == corev1.ConditionTrue || ready.LastTransitionTime.IsZero() || ready.LastTransitionTime.Before(&drained.LastTransitionTime))
	})
}

// removeNode deletes the Node of an instance that is gone, as it was read: its host's next kubelet may be Ready there since (R-S3). What the API
// server has against that is told of the Machine.
func (l life) removeNode(n *corev1.Node) plan.Sequence {
	a := plan.Delete{Object: n, IfUnchanged: true, Why: "the instance of " + l.m.Name + " is gone"}
	why, refused := l.Refused(a)
	if !refused {
		return plan.Sequence{Do: []plan.Action{a}}
	}
	of := "node " + n.Name + " cannot be deleted: "
	seq := l.blocked(plan.Reworded(machine.FindCondition(l.m.Status.Conditions, machine.ConditionInstanceExists), of, why))
	seq.Notes = append(seq.Notes, l.warning("FailedDelete", of+why))
	return seq
}

// announced reports whether drain-node is about to show the phase with its first word about the drain. Where it says
// nothing, as when it is not there, we do.
func (l life) announced() bool {
	return !machine.Drained(l.m) && l.Now.Sub(l.m.DeletionTimestamp.Time) < wordOfDrain
}

// wordOfDrain is how long drain-node takes at most, when nothing is wrong, to say something about a drain: where it missed the
// event, its next scan does.
const wordOfDrain = 15 * time.Second

// longWordOfDrain is how long it takes at most where very many drain at once. After that it does not run, or not for this namespace.
const longWordOfDrain = 10 * time.Minute

// reasonUndrained is why a deleted Machine waits whose drain nobody begins.
const reasonUndrained = "DrainNotBegun"

// instance names what was there, as far as it is on record.
func (l life) instance() string {
	if id := cmp.Or(l.removal().Ref.ID, machine.ProviderID(l.m)); id != "" {
		return "instance " + id
	}
	return "what was made for " + l.m.Name
}

// gone reports whether the cloud has confirmed in this invocation that nothing of the Machine is there, or was never
// asked to make anything: then neither credentials nor a readable spec are needed (R-B34).
func (l life) gone() bool {
	if !l.intent.Called() && machine.ProviderID(l.m) == "" && !unrecorded(l.Snapshot, l.m) {
		return true
	}
	o, tried := l.Outcome(l.removal())
	return tried && o.Result == plan.Gone
}

// confirmed returns when the cloud was asked what it says in this invocation: what is not there at one time may surface
// after it, also where the answer is read later (2b.9). A clock that was set back since is the one that the record's times are of.
func (l life) confirmed() time.Time {
	if o, tried := l.Outcome(l.removal()); tried && o.Asked.Before(l.Now) {
		return o.Asked
	}
	return l.Now
}

func (l life) removal() plan.DeleteInstance {
	a := plan.DeleteInstance{Account: l.cloud.Account, Cluster: l.cloud.Cluster, Why: "the Machine is deleted"}
	if o := l.claimant(); o != nil {
		a.Ref, a.Why = l.ownRef(), "only what carries its tag, machine "+o.Name+" records the same instance"
		return a
	}
	a.Ref = provider.Ref{UID: machine.InstanceUID(l.m), Name: l.m.Name, ProviderID: machine.ProviderID(l.m)}
	if l.intent != nil {
		a.Ref.ID, a.Ref.Token, a.Ref.Progress, a.Ref.Began = l.intent.Instance, l.intent.Token, l.intent.Progress, l.intent.StartedAt.Time
	}
	return a
}

// remove asks the cloud once in each invocation, until it says that nothing is left. What the Machine may take over it takes
// over first: by the tag that it has then it is removed. A cloud that refuses is asked less and less often, and not for the
// sake of the event about what we wrote of it.
func (l life) remove() plan.Sequence {
	if seq := l.located(); len(seq.Do) > 0 && !l.isRefused(seq.Do[0]) {
		return seq
	}
	if seq := l.inherit(); seq != nil && len(seq.Do) > 0 {
		return *seq
	}
	a := l.removal()
	o, tried := l.Outcome(a)
	switch {
	case !tried && l.cloud.Err != nil:
		return l.undeleted(silent + l.cloud.Err.Message)
	case !tried && l.going():
		if seq := l.fading(); len(seq.Do) > 0 {
			return seq
		}
		return l.slow()
	case !tried && (l.postponed() || removed(l.m) && !l.Request.Scan()): // the event may be that of our own last write
		return plan.Sequence{}
	case !tried:
		return plan.Sequence{Do: []plan.Action{a}}
	case o.Result == plan.Done:
		return l.accepted()
	}
	return l.undeleted("the cloud does not delete the instance: " + o.Message)
}

// going reports whether the cloud's list shows the instance on its way out: then it needs no further call until it is
// off the list.
func (l life) going() bool {
	return len(l.cloud.Found) > 0 && !slices.ContainsFunc(l.cloud.Found, func(in provider.Instance) bool { return !in.Going() })
}

// undeleted says that the cloud refuses, or cannot be asked.
func (l life) undeleted(why string) plan.Sequence {
	next := l.m.DeepCopy()
	reason := reasonDelete
	next.Status.ErrorReason, next.Status.ErrorMessage = &reason, &why
	l.set(next, l.unsure(why))
	l.keepWords(next)
	seq := l.status(next, machine.PhaseDeleting, why)
	seq.Notes = append(seq.Notes, l.warning("FailedDelete", why))
	return seq
}

// accepted takes back what undeleted said, and remembers where a Node that is Ready would be in doubt otherwise, or an older one be kept.
func (l life) accepted() plan.Sequence {
	next := l.m.DeepCopy()
	failed := l.takeBack(next)
	switch {
	case machine.LostAt(l.m) != nil:
		if failed {
			l.set(next, missingCondition(unfound))
		}
	case l.mayBeDoubted(), l.mayBeKept():
		l.set(next, machine.True(machine.ConditionInstanceExists, reasonRemoved, "the cloud removes the instance"))
	case failed:
		l.set(next, machine.True(machine.ConditionInstanceExists, "", ""))
	}
	if seq := l.status(next, machine.PhaseDeleting, "the instance is going"); len(seq.Do) > 0 {
		return seq
	}
	return l.slow()
}

// takeBack takes the error back that undeleted told of, and reports whether there was one. Of an instance that was lost before that stays told.
func (l life) takeBack(next *machine.Machine) bool {
	r := next.Status.ErrorReason
	if r == nil || *r != reasonDelete {
		return false
	}
	next.Status.ErrorReason, next.Status.ErrorMessage = nil, nil
	if machine.LostAt(l.m) != nil {
		next.Status.ErrorMessage = new(unfound)
	}
	return true
}

// surfaces returns until when an instance of an unresolved attempt may still appear; zero if none can.
func (l life) surfaces() time.Time {
	if !l.intent.Unresolved() {
		return time.Time{}
	}
	return l.intent.SurfacesUntil(l.cloud.Horizon)
}

// unseen reports whether something may surface of which neither the record nor the cloud tells yet.
func (l life) unseen() bool {
	return machine.ProviderID(l.m) == "" && len(l.cloud.Found) == 0 && l.cloud.Err == nil && l.Now.Before(l.surfaces())
}

// node returns the first of the Machine's Nodes, or nil.
func (l life) node() *corev1.Node {
	if all := l.nodes(); len(all) > 0 {
		return all[0]
	}
	return nil
}

// nodes returns the Machine's Nodes: first the linked one, unless it names another instance, then those of its instance that no
// other Machine claims, as far as the others are known. A Node of the same name that came later is another Machine's
// (R-B32), as is one whose Machine was copied together with the id of its instance (R-S3). One that says by its address alone
// whose it is counts for a Machine that never was linked, and not if it came once that was deleted: addresses are given again.
func (l life) nodes() []*corev1.Node {
	var all []*corev1.Node
	for _, n := range l.Nodes {
		linked, same := machine.IsNodeOf(l.m, n), machine.SameInstance(l.m, n)
		there := l.m.Status.NodeRef == nil && machine.Fits(l.m, n) && (l.m.DeletionTimestamp == nil || !n.CreationTimestamp.After(l.m.DeletionTimestamp.Time))
		switch {
		case linked && !machine.OtherInstance(l.m, n):
			all = slices.Insert(all, 0, n)
		case (same || there) && !machine.ClaimedByAnother(l.m, n, l.Machines):
			all = append(all, n)
		}
	}
	return all
}

// blocked says on the Machine why it is still there. A cloud that answers does not fail to delete it any more, but for one that
// was asked alone since its list fails: that fails in the next round again (R-S14). One that refused and then says that nothing is left
// is not asked less often for that (R-L2).
func (l life) blocked(why string) plan.Sequence {
	next := l.m.DeepCopy()
	if answered := l.gone() && !unasked(l.m); l.cloud.Err == nil && l.Request.Scan() && (answered || !l.takenUp()) {
		l.takeBack(next)
	}
	l.set(next, l.unsure(why))
	return l.status(next, machine.PhaseDeleting, why)
}

// unsure is the condition of a deleted Machine whose instance cannot be asked for, or does not go. One that was lost stays missing
// since then: a Node that came to its address later is another's (R-B32).
func (l life) unsure(why string) machine.Condition {
	if machine.LostAt(l.m) != nil {
		return missingCondition(why)
	}
	return unknown(why)
}
