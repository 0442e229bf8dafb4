// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// Of Machines that were made elsewhere a ledger remembers as many as it has room for: an object has 262,144 bytes for all its annotations.
const (
	maxAdopted      = 2_000
	maxAdoptedBytes = 200_000
	longestMember   = 253 + 36 + memberFrame
	memberFrame     = 34 // what stands around a name and a UID
	spareMembers    = 50 // for those that are let go: they are out of it again once nothing controls them
)

// room is what of it is taken.
type room struct{ members, bytes int }

func taken(adopted map[int]machine.Member) (r room) {
	for _, a := range adopted {
		r.add(a)
	}
	return r
}

func (r *room) add(a machine.Member) {
	r.members, r.bytes = r.members+1, r.bytes+len(a.Name)+len(a.UID)+memberFrame
}

// full reports whether there may be none for another Machine, whatever its name.
func (r room) full() bool {
	return r.members >= maxAdopted || r.bytes > maxAdoptedBytes-longestMember
}

// take reports whether there was room for a Machine, which has it now.
func (r *room) take(a machine.Member) bool {
	if r.full() {
		return false
	}
	r.add(a)
	return true
}

// spare is take for a Machine that is let go, for which some room is kept: of a set that adopted as many as it can it would be controlled for
// ever, and nobody would take its place.
func (r *room) spare(a machine.Member) bool {
	if r.members >= maxAdopted+spareMembers || r.bytes > maxAdoptedBytes+(spareMembers-1)*longestMember {
		return false
	}
	r.add(a)
	return true
}

// forget drops adopted members that are gone, and those that were let go once the set controls them no more. It is no reason to write by itself.
func forget(set *machine.MachineSet, l machine.Ledger, m members) machine.Ledger {
	l.Adopted = maps.Clone(l.Adopted)
	maps.DeleteFunc(l.Adopted, func(k int, a machine.Member) bool {
		if a.LetGo() {
			x := m.byName[a.Name]
			return x == nil || metav1.GetControllerOfNoCopy(x) == nil
		}
		return !l.Active.Has(k) && m.at(l, set, k) == nil
	})
	return l
}
