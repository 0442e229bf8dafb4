// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// reads asks for the set before its Machines, so that the list is never older than the ledger. Before something is done by the ledger the
// set is read again: one that was written to meanwhile is left to the next look, and of one that was not, and still does not know an
// ordinal at which a Machine stands, the ledger went backwards (RELIABILITY 2a.7).
func reads(s snapshot.Snapshot) snapshot.Scope {
	sc := snapshot.Scope{Objects: woken(s)}
	ask := func(q ...snapshot.Query) { sc.Objects = append(sc.Objects, q...) }
	all := herdOf(s)
	for _, set := range s.MachineSets {
		s.Apart(set, func() { ask(readsOf(s, set, all)...) })
	}
	if !s.Request.Scan() {
		ask(nodes(s)...)
	}
	return sc
}

// readsOf asks for what is decided about one set with.
func readsOf(s snapshot.Snapshot, set *machine.MachineSet, all herd) (sc []snapshot.Query) {
	ask := func(q ...snapshot.Query) { sc = append(sc, q...) }
	if s.Request.Is("Machine") && concerns(s, set) || s.Request.Is("MachineSet") && !settled(s, set) {
		ask(machinesOf(set))
	}
	if _, told := set.Spec.Template.Labels[machine.LabelCluster]; !told || misfit(s, set) != "" {
		ask(snapshot.Infrastructure) // which may say the name, or the region, that is missing
	}
	if acts(s, set, all) {
		ask(snapshot.Query{Kind: "MachineSet", Namespace: set.Namespace, Name: set.Name, Again: true})
	}
	return sc
}

// woken asks for what a request names, and for the set of a Machine.
func woken(s snapshot.Snapshot) []snapshot.Query {
	switch {
	case s.Request.Scan():
		return []snapshot.Query{snapshot.All("MachineSet"), snapshot.All("Machine"), snapshot.All("Node")}
	case s.Request.Is("MachineSet"):
		return []snapshot.Query{snapshot.One("MachineSet", s.Request.Namespace, s.Request.Name)}
	case s.Request.Is("Machine"):
		self := snapshot.One("Machine", s.Request.Namespace, s.Request.Name)
		ask := []snapshot.Query{self}
		if name := setOf(s); s.Has(self) && name != "" {
			ask = append(ask, snapshot.One("MachineSet", s.Request.Namespace, name))
		}
		return ask
	}
	return nil
}

// ledgerOn returns the ledger that stands on the set, and whether it can be read and is the set's own.
func ledgerOn(s snapshot.Snapshot, set *machine.MachineSet) (l machine.Ledger, own bool) {
	l, err := s.Records.Ledger(set)
	return l, err == nil && l.SetUID == set.UID
}

// acts reports that something is to be done by the ledger: one of the set's Machines stands at an ordinal that was not allocated (2a.7), or
// has to go, unless it was released and adopted anew since, at another one (2a.1), or one without an owner stands at an ordinal of the
// set, unless people deleted that since and kept its Machines (2a.6: with an owner that is no more it would be garbage).
func acts(s snapshot.Snapshot, set *machine.MachineSet, all herd) bool {
	l, own := ledgerOn(s, set)
	if !own {
		return false
	}
	ordinalOf := l.Finder(set.Name)
	return slices.ContainsFunc(all.of(set), func(m *machine.Machine) bool {
		k, ok := ordinalOf(m)
		return ok && (k >= l.Next || m.DeletionTimestamp == nil && l.Retired(k))
	}) || slices.ContainsFunc(all.free, func(m *machine.Machine) bool {
		if m.Namespace != set.Namespace || m.DeletionTimestamp != nil {
			return false
		}
		k, ok := ordinalOf(m)
		return ok && l.Active.Has(k)
	})
}

// machinesOf asks for every Machine that may belong to the set.
func machinesOf(set *machine.MachineSet) snapshot.Query {
	return snapshot.Query{Kind: "Machine", Namespace: set.Namespace}
}

// complete reports whether all Machines of the set were read; with less nothing can be decided about it.
func complete(s snapshot.Snapshot, set *machine.MachineSet) bool {
	return s.Has(snapshot.All("Machine")) || s.Has(machinesOf(set))
}

// concerns reports whether something about the set may follow from the waking Machine, so that the others are worth
// reading: nothing does if the ledger holds as many as are wanted and the Machine is where the ledger says, or gone
// where it says so. Who is ready is counted by the scan.
func concerns(s snapshot.Snapshot, set *machine.MachineSet) bool {
	l, own := ledgerOn(s, set)
	_, victims := set.Annotations[machine.AnnotationVictims]
	if !own || victims || len(l.Active) != wanted(set, l) {
		return true
	}
	m := s.Machine(s.Request.Namespace, s.Request.Name)
	if m == nil {
		return slices.ContainsFunc(l.Active, func(k int) bool { return l.Name(set.Name, k) == s.Request.Name })
	}
	k, ok := l.OrdinalOf(set.Name, m)
	active := ok && l.Active.Has(k)
	if m.DeletionTimestamp != nil {
		return active
	}
	selector, err := machine.SelectorOf(set)
	return err != nil || !active || mislabeled(m, k) || !machine.Controls(set, m) || !selector.Matches(labels.Set(m.Labels))
}

// settled reports whether an event about the set can only tell what this function wrote itself, its status first of all:
// nothing is wanted that was not done, and this invocation has done nothing. To count its Machines again for it would be
// another write, and that another event; who became ready is counted by the scan.
func settled(s snapshot.Snapshot, set *machine.MachineSet) bool {
	l, own := ledgerOn(s, set)
	_, victims := set.Annotations[machine.AnnotationVictims]
	return own && l.Rebuilt == "" && !victims && len(s.Outcomes) == 0 && set.Status.ObservedGeneration == set.Generation &&
		len(l.Active) == wanted(set, l) && int(set.Status.Replicas) == len(l.Active)
}

// setOf returns the name of the set that the waking Machine belongs, belonged or would belong to.
func setOf(s snapshot.Snapshot) string {
	m := s.Machine(s.Request.Namespace, s.Request.Name)
	if m == nil {
		return machine.SetName(s.Request.Name)
	}
	if owner := metav1.GetControllerOf(m); owner != nil {
		return owner.Name
	}
	return m.Labels[machine.LabelMachineSet]
}

func nodes(s snapshot.Snapshot) []snapshot.Query {
	var ask []snapshot.Query
	for _, set := range s.MachineSets {
		for _, m := range s.Machines {
			if m.Status.NodeRef != nil && machine.Controls(set, m) {
				ask = append(ask, snapshot.One("Node", "", m.Status.NodeRef.Name))
			}
		}
	}
	return snapshot.Few(ask, "Node")
}

// beyond reports whether one of the set's own Machines stands at an ordinal that l has not allocated.
func beyond(l machine.Ledger, set *machine.MachineSet, owned []*machine.Machine) bool {
	ordinalOf := l.Finder(set.Name) // of thousands that lost their labels each would be searched for alone
	return slices.ContainsFunc(owned, func(m *machine.Machine) bool {
		k, ok := ordinalOf(m)
		return ok && k >= l.Next
	})
}
