// SPDX-License-Identifier: Apache-2.0

// Package linknode ties each Machine to its Node, and gives the Node what the Machine's spec wants it to carry.
//
//	wakes on  Node, Machine; scan
//	reads     Node, Machine
//	writes    Machine (nodeRef, phase Running with it, lastUpdated, condition SoleNode), Node (labels, annotations, taints, a host's providerID and cordon)
//
// A Node is never guessed: where more than one Machine, or more than one Node, fits, a Warning says so and no link is
// written (B63); one says it too where name and address fit, and not the instance (B5). An event about a Node reads no other ones: it links
// the first of two that come at once, and the next scan says of the Machine that more than one fits. A nodeRef stays when its Node is
// gone; that is how remediate learns of it (B65).
package linknode

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Function is the deployable function.
var Function = function.Function{Name: "link-node", Reads: reads, Decide: Decide}

// reads stops after one Node and one Machine where both agree; only a Node that is not linked yet, under another name than
// its Machine's, costs a list. A Machine that is not linked yet costs nothing more: its Node's own event, or the scan, does it.
func reads(s snapshot.Snapshot) snapshot.Scope {
	switch {
	case s.Request.Scan():
		return snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine"), snapshot.All("Node")}}
	case s.Request.Is("Machine"):
		return readsOfMachine(s)
	case s.Request.Is("Node"):
		return readsOfNode(s)
	}
	return snapshot.Scope{}
}

func readsOfMachine(s snapshot.Snapshot) snapshot.Scope {
	ask := []snapshot.Query{snapshot.One("Machine", s.Request.Namespace, s.Request.Name)}
	if m := s.Machine(s.Request.Namespace, s.Request.Name); m != nil && m.Status.NodeRef != nil {
		ask = append(ask, snapshot.One("Node", "", m.Status.NodeRef.Name))
	}
	return snapshot.Scope{Objects: ask}
}

func readsOfNode(s snapshot.Snapshot) snapshot.Scope {
	ask := []snapshot.Query{snapshot.One("Node", "", s.Request.Name)}
	n := s.Node(s.Request.Name)
	if n == nil {
		return snapshot.Scope{Objects: ask}
	}
	hint, enough := hintOf(s, n)
	if ask = append(ask, hint); enough || !s.Has(hint) {
		return snapshot.Scope{Objects: ask}
	}
	ask = append(ask, snapshot.All("Machine"))
	if !s.Has(snapshot.All("Machine")) {
		return snapshot.Scope{Objects: ask}
	}
	for _, m := range machine.IndexOf(s.Machines).Of(n) { // is the Node that it is linked to still there?
		if m.Status.NodeRef != nil && m.Status.NodeRef.Name != n.Name {
			ask = append(ask, snapshot.One("Node", "", m.Status.NodeRef.Name))
		}
	}
	return snapshot.Scope{Objects: ask}
}

// hintOf asks for the Machine that n is probably of: the one that its annotation names, else the one of its name. It is
// enough if both agree.
func hintOf(s snapshot.Snapshot, n *corev1.Node) (hint snapshot.Query, enough bool) {
	if namespace, name, ok := machine.AnnotatedMachine(n); ok {
		m := s.Machine(namespace, name)
		return snapshot.One("Machine", namespace, name), m != nil && machine.IsNodeOf(m, n) && !machine.OtherInstance(m, n)
	}
	m := s.Machine(machine.Namespace, n.Name)
	return snapshot.One("Machine", machine.Namespace, n.Name), m != nil && named(m, n)
}

// named reports whether n has m's name and providerID, and m no other Node: then nobody else can be meant, unless m gave the instance up.
func named(m *machine.Machine, n *corev1.Node) bool {
	ref := m.Status.NodeRef
	return m.Name == n.Name && machine.SameInstance(m, n) && (ref == nil || ref.Name == n.Name) && (ref != nil || machine.LostAt(m) == nil)
}

// Decide links every Node of the snapshot that exactly one Machine fits, if it is the only one that fits the Machine.
// Without the list of Machines nobody knows that, unless name and providerID both say so; then only links that stand are
// kept up.
func Decide(s snapshot.Snapshot) plan.Plan {
	var p plan.Plan
	machines := machine.IndexOf(s.Machines)
	fits := machines.NodesOf(s.Nodes)
	for _, n := range s.Nodes {
		s.Apart(n, func() {
			ms := machines.Of(n)
			switch {
			case len(ms) > 1:
				p.Notes = append(p.Notes, plan.Warning(n, "AmbiguousMachine", "more than one machine fits, nothing is written: "+names(ms)))
			case len(ms) == 0 && s.Has(snapshot.All("Machine")):
				p.Notes = append(p.Notes, denied(machines, fits, n)...)
			case len(ms) == 0 || s.Request.Is("Node") && s.Request.Name != n.Name || machine.IsPaused(ms[0]):
			case len(fits[ms[0]]) > 1:
				p.Notes = append(p.Notes, plan.Warning(ms[0], "AmbiguousNode", "more than one node fits, no link is written: "+names(fits[ms[0]])))
			case s.Has(snapshot.All("Machine")) || machine.IsNodeOf(ms[0], n) || named(ms[0], n):
				p.Add(link(s, ms[0], n))
			}
		})
	}
	for _, m := range s.Machines {
		s.Apart(m, func() { p.Then(counted(s, m, fits[m])...) })
	}
	return p.Untried(s.Outcomes)
}

// denied tells each Machine that no Node fits of one that would, if the two did not name different instances: who waits for the Machine's
// Node waits in vain, and one that was not linked before nobody drains.
func denied(machines machine.Index, fits map[*machine.Machine][]*corev1.Node, n *corev1.Node) (notes []plan.Note) {
	for _, m := range machines.Denied(n) {
		if len(fits[m]) == 0 && !machine.IsPaused(m) {
			notes = append(notes, plan.Warning(m, "MismatchedNode", fmt.Sprintf(
				"node %s has this machine's name and address, but its providerID is %s, and not %s: it is taken for another instance's", n.Name, n.Spec.ProviderID, machine.ProviderID(m))))
		}
	}
	return notes
}

// link commits the link to the Machine, then marks the Node; a Machine or Node on its way out is not marked any more
// (B66). A Machine that only waited for its Node runs with the same write (B20): what provision-machine would write next
// follows from nothing else.
func link(s snapshot.Snapshot, m *machine.Machine, n *corev1.Node) plan.Sequence {
	var seq plan.Sequence
	if linked := machine.IsNodeOf(m, n); !linked || !machine.RoleNoted(m, n) {
		next, why := m.DeepCopy(), "role of node "
		machine.NoteRole(next, n, s.Now)
		if !linked {
			now := metav1.NewTime(s.Now)
			next.Status.NodeRef, why = &corev1.ObjectReference{Kind: "Node", Name: n.Name, UID: n.UID}, "link to node "
			next.Status.LastUpdated = &now
			if m.DeletionTimestamp == nil && machine.Phase(m) == machine.PhaseProvisioned {
				next.Status.Phase = new(machine.PhaseRunning)
			}
		}
		seq.Do = append(seq.Do, plan.UpdateStatus{Old: m, New: next, Why: why + n.Name})
	}
	if m.DeletionTimestamp != nil || n.DeletionTimestamp != nil || marked(m, n, machine.CarriedBy(m)) || beingLinked(s, m) {
		return seq
	}
	fit, wrong := machine.CarriedBy(m).Fit()
	if len(wrong) > 0 {
		seq.Notes = append(seq.Notes, plan.Warning(m, "FailedUpdate", "left out on node "+n.Name+": "+wrong.ToAggregate().Error()))
	}
	a := plan.Update{Old: n, New: mark(m, n, fit), Why: fmt.Sprintf("node of machine %s/%s", m.Namespace, m.Name)}
	switch why, refused := s.Refused(a); {
	case marked(m, n, fit):
	case refused:
		seq.Notes = append(seq.Notes, plan.Warning(m, "FailedUpdate", "node "+n.Name+" cannot be given what the spec wants: "+why))
	default:
		seq.Do = append(seq.Do, a)
	}
	return seq
}

// linkedWithin is how long the invocation that links a Machine takes to mark its Node.
const linkedWithin = 5 * time.Second

// beingLinked reports whether the link, or another phase, has only now woken us for m: whoever wrote the link is marking
// the Node, and both would write it at once. If that one died, the Node's next event or the scan marks it.
func beingLinked(s snapshot.Snapshot, m *machine.Machine) bool {
	at := m.Status.LastUpdated
	return s.Request.Is("Machine") && at != nil && s.Now.Sub(at.Time) < linkedWithin
}

func names[T plan.Object](all []T) string {
	var s []string
	for _, o := range all {
		s = append(s, o.GetName())
	}
	return strings.Join(s, ", ")
}
