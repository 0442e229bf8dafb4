// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// members are the Machines that concern one set, each list sorted by name.
type members struct {
	owned    []*machine.Machine // controlled by the set, with labels that match
	released []*machine.Machine // controlled by the set, with labels that no longer match
	orphans  []*machine.Machine // without a controller, alive, with labels that match
}

func membersOf(s snapshot.Snapshot, set *machine.MachineSet, selector labels.Selector) members {
	var m members
	for _, x := range s.Machines {
		if x.Namespace != set.Namespace {
			continue
		}
		matches := selector.Matches(labels.Set(x.Labels))
		switch {
		case metav1.IsControlledBy(x, set) && (matches || x.DeletionTimestamp != nil):
			m.owned = append(m.owned, x)
		case metav1.IsControlledBy(x, set):
			m.released = append(m.released, x)
		case matches && metav1.GetControllerOf(x) == nil && x.DeletionTimestamp == nil:
			m.orphans = append(m.orphans, x)
		}
	}
	return m
}

// alive returns the owned Machines that are not being deleted.
func (m members) alive() []*machine.Machine {
	var alive []*machine.Machine
	for _, x := range m.owned {
		if x.DeletionTimestamp == nil {
			alive = append(alive, x)
		}
	}
	return alive
}

// at returns the Machine of ordinal k, in whatever state, or nil if there is none.
func (m members) at(l machine.Ledger, set *machine.MachineSet, k int) *machine.Machine {
	adopted, isAdopted := l.Adopted[k]
	name := l.Name(set.Name, k)
	for _, list := range [][]*machine.Machine{m.owned, m.orphans, m.released} {
		for _, x := range list {
			if isAdopted && x.UID == adopted.UID || !isAdopted && x.Name == name {
				return x
			}
		}
	}
	return nil
}

// strangers returns the living Machines that belong to the set but stand at none of its ordinals: orphans whose labels
// match, and Machines that somebody else made for it.
func (m members) strangers(set *machine.MachineSet, l machine.Ledger) []*machine.Machine {
	var out []*machine.Machine
	for _, x := range m.alive() {
		if _, ok := l.OrdinalOf(set.Name, x); !ok {
			out = append(out, x)
		}
	}
	for _, x := range m.orphans {
		if k, ok := l.OrdinalOf(set.Name, x); !ok || !l.Active.Has(k) {
			out = append(out, x)
		}
	}
	return out
}
