// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// fewNodes is how many Nodes are read one by one before listing them all is cheaper.
const fewNodes = 20

// reads asks for the set before its Machines, so that the list is never older than the ledger. Where a Machine stands
// at an ordinal that the ledger has not allocated, the set is read again: if that still does not know it, then the
// ledger went backwards (RELIABILITY 2a.7).
func reads(s snapshot.Snapshot) snapshot.Scope {
	var sc snapshot.Scope
	ask := func(q ...snapshot.Query) { sc.Objects = append(sc.Objects, q...) }
	switch {
	case s.Request.Scan():
		ask(snapshot.All("MachineSet"), snapshot.All("Machine"), snapshot.All("Node"))
	case s.Request.Is("MachineSet"):
		ask(snapshot.One("MachineSet", s.Request.Namespace, s.Request.Name))
	case s.Request.Is("Machine"):
		self := snapshot.One("Machine", s.Request.Namespace, s.Request.Name)
		ask(self)
		if name := setOf(s); s.Has(self) && name != "" {
			ask(snapshot.One("MachineSet", s.Request.Namespace, name))
		}
	}
	all := herdOf(s)
	for _, set := range s.MachineSets {
		if !s.Request.Scan() && (!s.Request.Is("Machine") || concerns(s, set)) {
			ask(machinesOf(set))
		}
		if misfit(s, set) != "" {
			ask(snapshot.One("Infrastructure", "", machine.InfrastructureName)) // which may say the region that is missing
		}
		if backwards(set, all.owned[set.UID]) {
			ask(snapshot.Query{Kind: "MachineSet", Namespace: set.Namespace, Name: set.Name, Again: true})
		}
	}
	if !s.Request.Scan() {
		ask(nodes(s)...)
	}
	return sc
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
	l, err := machine.ParseLedger(set.Annotations[machine.AnnotationLedger])
	_, victims := set.Annotations[machine.AnnotationVictims]
	if err != nil || l.SetUID != set.UID || victims || len(l.Active) != wanted(set, l) {
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
	selector, err := selectorOf(set)
	return err != nil || !active || mislabelled(m, k) || !metav1.IsControlledBy(m, set) || !selector.Matches(labels.Set(m.Labels))
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
			if m.Status.NodeRef != nil && metav1.IsControlledBy(m, set) {
				ask = append(ask, snapshot.One("Node", "", m.Status.NodeRef.Name))
			}
		}
	}
	if len(ask) > fewNodes {
		return []snapshot.Query{snapshot.All("Node")}
	}
	return ask
}

func backwards(set *machine.MachineSet, owned []*machine.Machine) bool {
	l, err := machine.ParseLedger(set.Annotations[machine.AnnotationLedger])
	return err == nil && l.SetUID == set.UID && beyond(l, set, owned)
}

// beyond reports whether one of the set's own Machines stands at an ordinal that l has not allocated.
func beyond(l machine.Ledger, set *machine.MachineSet, owned []*machine.Machine) bool {
	for _, m := range owned {
		if k, ok := l.OrdinalOf(set.Name, m); ok && k >= l.Next {
			return true
		}
	}
	return false
}
