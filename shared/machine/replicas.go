// SPDX-License-Identifier: Apache-2.0

package machine

// Replicas returns how many Machines set wants. A number that is left out means "as it is": as many as its ledger has
// active, or 1 where there is no ledger of its own yet, or none that can be read. It changes nothing about set.
func Replicas(set *MachineSet) int32 {
	if set.Spec.Replicas != nil {
		return *set.Spec.Replicas
	}
	if l, own := ownLedger(set); own {
		return int32(len(l.Active)) //nolint:gosec // a ledger holds maxOrdinals at most
	}
	return 1
}

// Unsized reports that nobody can say yet how many Machines set wants: the number is left out, and no ledger of its own tells it.
// scale-machineset sees whom the set adopts, and says it. Another number would be taken for people's word, and Machines go for it.
func Unsized(set *MachineSet) bool {
	if set.Spec.Replicas != nil {
		return false
	}
	_, own := ownLedger(set)
	return !own
}

func ownLedger(set *MachineSet) (l Ledger, own bool) {
	l, err := ParseLedger(set.Annotations[AnnotationLedger])
	return l, err == nil && l.SetUID == set.UID
}
