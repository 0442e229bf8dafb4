// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// reads asks for the Machine, the ledger that allows it, then the cloud; settled Machines cost one list per account in
// a scan and nothing when an event wakes us. Nodes are read when one has to go with its instance.
func reads(s snapshot.Snapshot) snapshot.Scope {
	var sc snapshot.Scope
	ask := func(q ...snapshot.Query) { sc.Objects = append(sc.Objects, q...) }
	switch {
	case s.Request.Scan():
		ask(snapshot.All("Machine"), snapshot.All("MachineSet"), snapshot.Infrastructure, snapshot.System)
	case s.Request.Is("MachineSet"):
		ask(snapshot.One("MachineSet", s.Request.Namespace, s.Request.Name), snapshot.Infrastructure, snapshot.System)
	case s.Request.Is("Machine"):
		ask(snapshot.One("Machine", s.Request.Namespace, s.Request.Name), snapshot.Infrastructure, snapshot.System)
	}
	known := &claims{}
	for _, m := range s.Machines {
		if asked(s, m) {
			s.Apart(m, func() { readFor(s, m, known, &sc) })
		}
	}
	if s.Request.Scan() || s.Request.Is("MachineSet") {
		for _, set := range s.MachineSets {
			s.Apart(set, func() {
				if capacity, stock := wantsCapacity(s, set), wantsStock(s, set); capacity || stock {
					sc.Lookups = append(sc.Lookups, snapshot.Lookup{UID: set.UID, Type: capacity, Fresh: contradicted(s, set), Stock: stock, Open: true})
				}
			})
		}
	}
	sc.Objects = snapshot.Few(sc.Objects, "Node")
	return sc
}

// readFor asks for what is decided about m with.
func readFor(s snapshot.Snapshot, m *machine.Machine, known *claims, sc *snapshot.Scope) {
	ask := func(q ...snapshot.Query) { sc.Objects = append(sc.Objects, q...) }
	if owner := machine.OwningSet(m); owner != nil && !s.Request.Scan() {
		ask(snapshot.One("MachineSet", m.Namespace, owner.Name))
	}
	if lookup, ok := lookupOf(s, m); ok {
		sc.Lookups = append(sc.Lookups, lookup)
		if machine.ProviderID(m) == "" && m.DeletionTimestamp == nil {
			ask(sweepQuery)
		}
	}
	l := life{Snapshot: s, m: m, intent: readable(s, m), cloud: s.Clouds[m.UID], claims: known}
	l.in = l.found()
	ask(l.reads()...)
}

// reads returns what the cloud's answer about m makes necessary to know: whose an instance is, and which Node goes with it.
func (l life) reads() (all []snapshot.Query) {
	if l.foreignTag() != nil {
		all = append(all, heirQueries...)
	} else if l.aboutToFail() {
		all = append(all, nodeOf(l.Snapshot, l.m)...)
	}
	if l.doubled() || l.aboutToFail() && len(l.carriers()) > 0 {
		all = append(all, snapshot.All("Node"))
	}
	if leaving(l.m) && !l.gone() {
		all = append(all, drainedOf(l.Snapshot, l.m)...)
	}
	if leaving(l.m) && l.unproved() {
		all = append(all, claimQuery)
	}
	if leaving(l.m) && l.gone() && l.mayComeLate() {
		all = append(all, sweepQuery)
	}
	if leaving(l.m) && (l.gone() || machine.FoundNoNode(l.m)) || l.m.DeletionTimestamp == nil && cycling(l.m) && l.wantsNode() {
		all = append(all, nodeOf(l.Snapshot, l.m)...)
		doubtful := func(n *corev1.Node) bool {
			return n != nil && (!machine.IsNodeOf(l.m, n) || leaving(l.m) && machine.NodeReady(n))
		}
		if slices.ContainsFunc(append(l.nodes(), l.LateNodeOf(l.m)), doubtful) { // is it another Machine's?
			all = append(all, snapshot.All("Machine"))
		}
	}
	return all
}

// asked reports whether m is to be decided about; the others are read for their claims to a Node alone.
func asked(s snapshot.Snapshot, m *machine.Machine) bool {
	return s.Request.Scan() || s.Request.Is("Machine") && s.Request.Name == m.Name && s.Request.Namespace == m.Namespace
}

// lookupOf returns what the cloud has to say about m for the next step, if anything.
func lookupOf(s snapshot.Snapshot, m *machine.Machine) (snapshot.Lookup, bool) {
	if settled(m) && len(s.Outcomes) == 0 && !cycling(m) { // the most, so nothing else is looked at
		return snapshot.Lookup{UID: m.UID, Bulk: true}, s.Request.Scan() && validate(m) == ""
	}
	intent := readable(s, m)
	o, tried := created(s, m, intent)
	switch {
	case machine.IsPaused(m):
		return snapshot.Lookup{}, false
	case m.DeletionTimestamp != nil:
		known := machine.ProviderID(m) != "" || !open(intent) // else what surfaced, or is not complete, is recorded before it goes
		alone := life{Snapshot: s, m: m}.takenUp()
		return snapshot.Lookup{UID: m.UID, Bulk: s.Request.Scan(), Alone: alone, Open: !s.Request.Scan() && known && !unlocated(m) && (machine.ProviderID(m) == "" || intent.Made(m) && s.OtherClusterID(m) == "")}, leaving(m) && (intent.Called() || machine.ProviderID(m) != "" || unrecorded(s, m))
	case phase(m) == machine.PhaseFailed:
		return snapshot.Lookup{UID: m.UID, Bulk: s.Request.Scan(), Alone: true}, leaves(s, m, intent) && validate(m) == ""
	case !machine.HasFinalizer(m), validate(m) != "", hopeless(s, m):
		return snapshot.Lookup{}, false
	case tried && o.Result == plan.Done && (machine.ProviderID(m) == "" || machine.SameID(machine.ProviderID(m), o.Instance.ProviderID)):
		return snapshot.Lookup{UID: m.UID, Open: true}, true // the answer is newer than any list
	case settled(m):
		return snapshot.Lookup{UID: m.UID, Bulk: s.Request.Scan()}, s.Request.Scan() || cycling(m)
	case machine.ProviderID(m) != "", unrecorded(s, m):
		return snapshot.Lookup{UID: m.UID}, true
	case phase(m) == "", waits(s, m, intent):
		return snapshot.Lookup{}, false
	}
	fresh := intent == nil && young(s, m)
	return snapshot.Lookup{UID: m.UID, New: fresh, Resolve: intent == nil || intent.Over()}, true
}

// Young is how old a Machine without a record may be to be believed that nothing was made for it: its record can only be
// missing because the API server's storage was set back to a time before it, which takes longer (2b.3). Nor is one believed that a clock
// made which was ahead by more than that: it may be of any age. Clocks can be set back with the storage, as where whole machines
// are; there a repeated call finds what it made by its token, and a cloud without tokens is asked however young a Machine is.
const Young = time.Minute

// young reports that m was made less than Young ago, by a clock that was not ahead by as much.
func young(s snapshot.Snapshot, m *machine.Machine) bool {
	return s.Now.Sub(m.CreationTimestamp.Time).Abs() < Young
}

// settled reports whether m has its instance and everything that is known of it.
func settled(m *machine.Machine) bool {
	return m.DeletionTimestamp == nil && machine.ProviderID(m) != "" && len(m.Status.Addresses) > 0 && machine.HasFinalizer(m) &&
		(phase(m) == machine.PhaseProvisioned || phase(m) == machine.PhaseRunning) && !machine.IsPaused(m)
}

// unrecorded reports whether m has, or had, an instance that is on no record of ours: another system gave it addresses.
// Nothing is made for it again, and nothing of it is forgotten (B17, B21).
func unrecorded(s snapshot.Snapshot, m *machine.Machine) bool {
	return machine.ProviderID(m) == "" && len(m.Status.Addresses) > 0 && !readable(s, m).Called()
}

// leaving reports whether the instance of a deleted Machine is the next to go: the Node is drained and nobody holds it.
func leaving(m *machine.Machine) bool {
	return m.DeletionTimestamp != nil && machine.HasFinalizer(m) && phase(m) == machine.PhaseDeleting &&
		machine.Drained(m) && len(m.Spec.LifecycleHooks.PreTerminate) == 0
}

// nodeOf asks for the Node that goes with the Machine's instance: the linked one, or all of them where none is linked,
// or where the linked one is gone and not by us: the instance may have another by now (R-B31).
func nodeOf(s snapshot.Snapshot, m *machine.Machine) []snapshot.Query {
	all := []snapshot.Query{snapshot.All("Node")}
	ref := m.Status.NodeRef
	if ref == nil || s.Request.Scan() {
		return all
	}
	linked := snapshot.One("Node", "", ref.Name)
	_, deleted := s.Outcome(plan.Delete{Object: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: ref.Name, UID: ref.UID}}})
	if !s.Has(linked) || deleted || machine.IsNodeOf(m, s.Node(ref.Name)) {
		return []snapshot.Query{linked}
	}
	return append(all, linked)
}

// drainedOf asks for the Node that was drained for m, whose instance is the next to go: it may take Pods again. Whose it is by then matters
// only if it does.
func drainedOf(s snapshot.Snapshot, m *machine.Machine) []snapshot.Query {
	switch {
	case !machine.NodeDrainedOf(m):
		return nil
	case takesPods(s, m):
		return []snapshot.Query{snapshot.One("Node", "", m.Status.NodeRef.Name), snapshot.All("Machine")}
	}
	return []snapshot.Query{snapshot.One("Node", "", m.Status.NodeRef.Name)}
}

// takesPods reports whether the Node that was drained for m is open to Pods.
func takesPods(s snapshot.Snapshot, m *machine.Machine) bool {
	return machine.NodeDrainedOf(m) && machine.TakesPods(m, s.Node(m.Status.NodeRef.Name))
}

// waits reports whether another's claim or a backoff forbids any call now. The backoff after a refusal is over when
// somebody mends the spec.
func waits(s snapshot.Snapshot, m *machine.Machine, i *machine.Intent) bool {
	return i.ClaimedByOther(s.Invocation, s.Now) || backsOff(s, m, i)
}

func backsOff(s snapshot.Snapshot, m *machine.Machine, i *machine.Intent) bool {
	return i != nil && i.NotBefore != nil && s.Now.Before(i.NotBefore.Time) && !i.Edited(m)
}

// created returns what this invocation's call for the current attempt answered.
func created(s snapshot.Snapshot, m *machine.Machine, i *machine.Intent) (plan.Outcome, bool) {
	if i == nil || len(s.Outcomes) == 0 { // in nearly every Machine of a scan
		return plan.Outcome{}, false
	}
	a := plan.CreateInstance{Account: i.Account}
	a.Ref.UID, a.Ref.Token = m.UID, i.Token
	return s.Outcome(a)
}

// intentOf reads the intent of m. Without a providerID one of another Machine, that m was made from, is none: under its token
// a cloud would answer with the other's instance.
func intentOf(s snapshot.Snapshot, m *machine.Machine) (*machine.Intent, error) {
	i, err := s.Records.Intent(m)
	if machine.ProviderID(m) == "" && !i.Own(m) {
		return nil, err
	}
	return i, err
}

// readable returns the intent of m, or nil if it has none that can be read.
func readable(s snapshot.Snapshot, m *machine.Machine) *machine.Intent {
	i, err := intentOf(s, m)
	if err != nil {
		return nil
	}
	return i
}

func withFinalizer(m *machine.Machine) *machine.Machine {
	next := m.DeepCopy()
	next.Finalizers = append(next.Finalizers, machine.Finalizer)
	return next
}
