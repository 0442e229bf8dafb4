// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// members are the Machines that concern one set, each list sorted by name.
type members struct {
	owned    []*machine.Machine // controlled by the set, with labels that match
	released []*machine.Machine // controlled by the set, with labels that no longer match
	orphans  []*machine.Machine // without a controller, alive, with labels that match
	masters  []*machine.Machine // those that would be orphans, and are of a control plane for which the set makes none
	free     []*machine.Machine // without a controller, whosever: the orphans and all others
	byName   map[string]*machine.Machine
	byUID    map[types.UID]*machine.Machine
}

// herd is all Machines of a snapshot by who controls them, so that many sets cost one pass.
type herd struct {
	owned map[controller][]*machine.Machine
	free  []*machine.Machine // without a controller
}

// controller is who controls a Machine: an owner is one of the Machine's own namespace, whatever a copy in another one says.
type controller struct {
	namespace string
	uid       types.UID
}

// of returns the Machines that the set controls.
func (h herd) of(set *machine.MachineSet) []*machine.Machine {
	return h.owned[controller{set.Namespace, set.UID}]
}

func herdOf(s snapshot.Snapshot) herd {
	h := herd{owned: map[controller][]*machine.Machine{}}
	for _, m := range s.Machines {
		if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
			by := controller{m.Namespace, owner.UID}
			h.owned[by] = append(h.owned[by], m)
		} else {
			h.free = append(h.free, m)
		}
	}
	return h
}

func (h herd) membersOf(set *machine.MachineSet, selector labels.Selector) members {
	m := members{free: h.free}
	for _, x := range h.of(set) {
		if x.DeletionTimestamp != nil || selector.Matches(labels.Set(x.Labels)) {
			m.owned = append(m.owned, x)
		} else {
			m.released = append(m.released, x)
		}
	}
	for _, x := range h.free {
		switch {
		case machine.Adopts(set, selector, x):
			m.orphans = append(m.orphans, x)
		case machine.Selects(set, selector, x):
			m.masters = append(m.masters, x)
		}
	}
	m.byName, m.byUID = map[string]*machine.Machine{}, map[types.UID]*machine.Machine{}
	for _, list := range [][]*machine.Machine{m.owned, m.orphans, m.released} {
		for _, x := range list {
			m.byName[x.Name], m.byUID[x.UID] = x, x
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
	if adopted, ok := l.Adopted[k]; ok {
		return m.byUID[adopted.UID]
	}
	return m.byName[l.Name(set.Name, k)]
}

// strangers returns the living Machines that belong to the set but stand at none of its ordinals: orphans whose labels
// match, and Machines that somebody else made for it, or that were released and adopted anew since the ledger was written.
func (m members) strangers(set *machine.MachineSet, l machine.Ledger) []*machine.Machine {
	var out []*machine.Machine
	ordinalOf := l.Finder(set.Name)
	for _, x := range m.alive() {
		if k, ok := ordinalOf(x); !ok || !l.Active.Has(k) && l.MadeAnew(x, k) {
			out = append(out, x)
		}
	}
	for _, x := range m.orphans {
		if k, ok := ordinalOf(x); !ok || !l.Active.Has(k) {
			out = append(out, x)
		}
	}
	return out
}
