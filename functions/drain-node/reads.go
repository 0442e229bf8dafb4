// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"hash/fnv"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// maxDrains bounds the Machines of one scan, so that it ends in time; every Machine has its own events besides, for all but the last step
	// beside a silent Node.
	maxDrains = 50
	// maxLate is how many of those that had no Node have their turn in a scan however many drains there are: they may be stuck.
	maxLate = 10
	// settle is how old a scale-down must be before it is drained for: evaluate-autoscale has then seen the Pods that
	// came before its taint (SPEC C63, R-B24).
	settle = 5 * time.Second
)

var (
	stateQuery = snapshot.One("ConfigMap", machine.Namespace, machine.ConfigMapStatus)
	allNodes   = snapshot.All("Node")
)

// reads asks, in this order: who wakes, its Node, the Pods on it, then what stands in the way of those.
func reads(s snapshot.Snapshot) snapshot.Scope {
	ask := woken(s)
	for _, m := range due(s) {
		s.Apart(m, func() {
			n := nodeOf(s, m)
			if n == nil && !allRead(s) && slices.ContainsFunc(s.Nodes, func(n *corev1.Node) bool { return machine.Bears(m, n) }) { // is it in doubt?
				ask = append(ask, allNodes, snapshot.All("Machine"))
			}
			if n == nil || held(m) {
				return
			}
			if !machine.IsNodeOf(m, n) { // is it another Machine's?
				ask = append(ask, snapshot.All("Machine"))
			}
			ask = append(ask, emptying(s, m, n)...)
			ask = append(ask, beside(s, m, n)...)
		})
	}
	for _, n := range s.Nodes {
		s.Apart(n, func() {
			if r, ok := removalOf(s, n); ok {
				ask = append(ask, removing(s, n, r)...)
			}
		})
	}
	return snapshot.Scope{Objects: ask}
}

// allRead reports whether all Machines and all Nodes are known.
func allRead(s snapshot.Snapshot) bool { return s.Has(allNodes) && s.Has(snapshot.All("Machine")) }

// doubts finds whose Nodes are in doubt, of all Machines at once, when the first of them asks.
type doubts struct {
	snapshot.Snapshot
	found map[*machine.Machine]machine.Candidates
}

// of returns what may be the Node of m, as far as all are known, where n, its Node, is nil; or nil.
func (d *doubts) of(m *machine.Machine, n *corev1.Node) *corev1.Node {
	if n != nil || !allRead(d.Snapshot) {
		return nil
	}
	if d.found == nil {
		d.found = machine.CandidatesOf(d.Machines, d.Nodes)
	}
	return d.found[m].Doubted()
}

// removing asks for what a Node is emptied by for a scale-down: first its Machine, which a scan has read, then the Pods.
func removing(s snapshot.Snapshot, n *corev1.Node, r autoscaling.Removal) (ask []snapshot.Query) {
	if m := snapshot.One("Machine", r.Namespace(), r.Machine); !s.Request.Scan() && m.Namespace != "" {
		if ask = append(ask, m); !s.Has(m) {
			return ask
		}
	}
	return append(ask, pods(s, n, r.At.Time)...)
}

// handedOver reports that the Machine of a scale-down is paused by now, by another API or by people, of which evaluate-autoscale may not
// know yet (SPEC B7).
func handedOver(s snapshot.Snapshot, r autoscaling.Removal) bool {
	m := s.Machine(r.Namespace(), r.Machine)
	return m != nil && m.UID == r.MachineUID && machine.IsPaused(m)
}

// emptying asks for what one Node is emptied by: whose turn it is, then, once it is cordoned, the Pods on it.
func emptying(s snapshot.Snapshot, m *machine.Machine, n *corev1.Node) []snapshot.Query {
	ask := slotReads(s, m, n)
	if closed(n) {
		ask = append(ask, pods(s, n, closedSince(m, n))...)
	}
	return ask
}

// beside asks for the other Nodes of the instance of n, which must be empty too before the drain is over: a host that got another
// name is another Node, and the former one stays while there is the instance. While the kubelet is n's, that costs nothing; else the
// scan reads them once for all Machines, as a thousand of a zone that is silent would each read thousands in every event.
func beside(s snapshot.Snapshot, m *machine.Machine, n *corev1.Node) []snapshot.Query {
	if !mayHaveOthers(s, m, n) || !closed(n) || !s.Request.Scan() && !s.Has(allNodes) {
		return nil
	}
	ask := []snapshot.Query{allNodes}
	for _, other := range others(s, m, n) {
		ask = append(ask, snapshot.All("Machine")) // is it another Machine's?
		ask = append(ask, emptying(s, m, other)...)
	}
	return ask
}

// besideRead reports whether the other Nodes of the instance of n are known, if it can have any.
func besideRead(s snapshot.Snapshot, m *machine.Machine, n *corev1.Node) bool {
	return !mayHaveOthers(s, m, n) || s.Has(allNodes)
}

// others returns the other Nodes of m's instance, as far as Nodes and Machines are known, but those of other Machines.
func others(s snapshot.Snapshot, m *machine.Machine, n *corev1.Node) []*corev1.Node {
	if n == nil || !mayHaveOthers(s, m, n) {
		return nil
	}
	var all []*corev1.Node
	for _, other := range s.Nodes {
		if other.Name != n.Name && machine.SameInstance(m, other) && !machine.ClaimedByAnother(m, other, s.Machines) {
			all = append(all, other)
		}
	}
	return all
}

// mayHaveOthers reports whether m's instance, if it is known, may be another Node than n by now: it has one kubelet, which is n's while
// that says so. One that is not heard of costs a look, even if it is Ready: the node controller may have been down.
func mayHaveOthers(s snapshot.Snapshot, m *machine.Machine, n *corev1.Node) bool {
	return machine.ProviderID(m) != "" && !machine.NodeHeard(n, s.Now)
}

// woken asks for what a request names, and for the Nodes of its Machines.
func woken(s snapshot.Snapshot) []snapshot.Query {
	var ask []snapshot.Query
	switch {
	case s.Request.Scan():
		ask = append(ask, snapshot.All("Machine"), stateQuery)
		ask = append(ask, nodes(s)...)
	case s.Request.Is("Machine"):
		ask = append(ask, snapshot.One("Machine", s.Request.Namespace, s.Request.Name))
		ask = append(ask, nodes(s)...)
	case s.Request.Is("Node"):
		ask = append(ask, snapshot.One("Node", "", s.Request.Name))
		if n := s.Node(s.Request.Name); n != nil && tainted(n) {
			ask = append(ask, stateQuery)
		}
	}
	return ask
}

// due returns the Machines to drain (B27), those too whose phase nobody has shown yet, then those that had no Node to drain: at
// most maxDrains of them, others every time, so that none that is stuck holds up the rest for ever (R-L4).
func due(s snapshot.Snapshot) []*machine.Machine {
	var all, nodeless []*machine.Machine
	for _, m := range s.Machines {
		switch {
		case !wakes(s, m), machine.IsPaused(m), m.DeletionTimestamp == nil, !machine.HasFinalizer(m):
		case !machine.Drained(m):
			all = append(all, m)
		case machine.FoundNoNode(m):
			nodeless = append(nodeless, m)
		}
	}
	all = someOf(s, all, maxDrains-min(len(nodeless), maxLate))
	return append(all, someOf(s, nodeless, maxDrains-len(all))...)
}

// undeleted returns the Machines that say what became of a drain though nobody deletes them, as when they were restored together with
// their status: a later deletion would count that as its own (R-S7).
func undeleted(s snapshot.Snapshot) []*machine.Machine {
	var all []*machine.Machine
	for _, m := range s.Machines {
		if wakes(s, m) && m.DeletionTimestamp == nil && !machine.IsPaused(m) && machine.FindCondition(m.Status.Conditions, machine.ConditionDrained) != nil {
			all = append(all, m)
		}
	}
	return someOf(s, all, maxDrains)
}

// reopened returns the Machines whose Node was drained and takes Pods again, while a hook, or a cloud that does not remove the instance, still
// holds them: somebody uncordoned it. Only the scan looks, which knows whether the Node is another Machine's by now.
func reopened(s snapshot.Snapshot) []*machine.Machine {
	var all []*machine.Machine
	for _, m := range s.Machines {
		if !emptied(s, m) {
			continue
		}
		n := s.Node(m.Status.NodeRef.Name)
		if machine.TakesPods(m, n) && !machine.ClaimedByAnother(m, n, s.Machines) {
			all = append(all, m)
		}
	}
	return someOf(s, all, maxDrains)
}

// emptied reports whether m, which the scan asks about, is on its way out, and its Node was drained.
func emptied(s snapshot.Snapshot, m *machine.Machine) bool {
	return s.Request.Scan() && m.DeletionTimestamp != nil && machine.HasFinalizer(m) && !machine.IsPaused(m) && machine.NodeDrainedOf(m)
}

// wakes reports whether m is asked about.
func wakes(s snapshot.Snapshot, m *machine.Machine) bool {
	return s.Request.Scan() || s.Request.Is("Machine") && m.Name == s.Request.Name && m.Namespace == s.Request.Namespace
}

// someOf returns at most so many of all, others in every invocation.
func someOf(s snapshot.Snapshot, all []*machine.Machine, most int) []*machine.Machine {
	if len(all) <= most {
		return all
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(s.Invocation)) // a hash never fails
	start := int(h.Sum32()) % len(all)
	return append(all[start:], all[:start]...)[:most]
}

// nodeOf returns the Node to drain for m, or nil.
func nodeOf(s snapshot.Snapshot, m *machine.Machine) *corev1.Node {
	if machine.FoundNoNode(m) {
		return s.LateNodeOf(m)
	}
	return s.NodeOf(m)
}

// held reports that the Machine's Pods need not be looked at.
func held(m *machine.Machine) bool {
	_, excluded := m.Annotations[machine.AnnotationExcludeDrain]
	return excluded || len(m.Spec.LifecycleHooks.PreDrain) > 0
}

// nodes asks for the Nodes of the Machines to drain, or drained, and of the current scale-downs. A Machine without a nodeRef, or whose linked
// Node is gone, may have a Node that nobody linked yet (R-B31), unless it is another Machine's.
func nodes(s snapshot.Snapshot) []snapshot.Query {
	var ask []snapshot.Query
	for _, m := range due(s) {
		ref := m.Status.NodeRef
		switch {
		case ref == nil:
			return []snapshot.Query{allNodes}
		case s.Has(snapshot.One("Node", "", ref.Name)) && !machine.IsNodeOf(m, s.Node(ref.Name)):
			return []snapshot.Query{allNodes, snapshot.All("Machine")}
		}
		ask = append(ask, snapshot.One("Node", "", ref.Name))
	}
	if s.Request.Scan() {
		for _, r := range stateOf(s).Removals {
			ask = append(ask, snapshot.One("Node", "", r.Node))
		}
	}
	for _, m := range s.Machines {
		if emptied(s, m) {
			ask = append(ask, snapshot.One("Node", "", m.Status.NodeRef.Name))
		}
	}
	return snapshot.Few(ask, "Node")
}

// unlinked returns the Node that registered anew under the name of m's linked one and does not say yet which instance it
// is, or nil: it may be m's, with Pods on it, until it says so or is linked to another Machine.
func unlinked(s snapshot.Snapshot, m *machine.Machine) *corev1.Node {
	ref := m.Status.NodeRef
	if ref == nil {
		return nil
	}
	n := s.Node(ref.Name)
	others := func(other *machine.Machine) bool { return machine.IsNodeOf(other, n) }
	if n == nil || n.Spec.ProviderID != "" || slices.ContainsFunc(s.Machines, others) {
		return nil
	}
	return n
}

// stateOf returns what evaluate-autoscale remembers; what cannot be read orders nothing.
func stateOf(s snapshot.Snapshot) autoscaling.State {
	state, err := s.AutoscalerState()
	if err != nil {
		return autoscaling.State{}
	}
	return state
}

// removalOf returns the current scale-down that wants n empty.
func removalOf(s snapshot.Snapshot, n *corev1.Node) (autoscaling.Removal, bool) {
	if !tainted(n) {
		return autoscaling.Removal{}, false
	}
	r, ok := stateOf(s).RemovalOf(n, machine.TaintToBeDeleted)
	return r, ok && r.Drain && !r.Fresh && !s.Now.Before(r.At.Add(settle))
}

func tainted(n *corev1.Node) bool {
	for _, t := range n.Spec.Taints {
		if t.Key == machine.TaintToBeDeleted {
			return true
		}
	}
	return false
}
