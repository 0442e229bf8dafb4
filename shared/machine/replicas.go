// SPDX-License-Identifier: Apache-2.0

package machine

// Replicas returns how many Machines set wants. A number that is left out means "as it is": as many as its ledger has
// active, or 1 where there is no ledger of its own yet, or none that can be read. It changes nothing about set.
func Replicas(set *MachineSet) int32 {
	if set.Spec.Replicas != nil {
		return *set.Spec.Replicas
	}
	if l, err := ParseLedger(set.Annotations[AnnotationLedger]); err == nil && l.SetUID == set.UID {
		return int32(len(l.Active)) //nolint:gosec // a ledger holds maxOrdinals at most
	}
	return 1
}
