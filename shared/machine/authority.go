// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
)

// Paused returns the condition Paused of a Machine or MachineSet; shown is false where its API has no authorities.
// While the condition is True nobody here touches the object (SPEC B7). What the status confirms counts; the spec only
// while there is no status.
func Paused(spec, status machinev1beta1.MachineAuthority) (c Condition, shown bool) {
	switch authority := cmp.Or(status, spec); authority {
	case "":
		return Condition{}, false
	case machinev1beta1.MachineAuthorityMachineAPI:
		return False(ConditionPaused, "", "AuthoritativeAPIMachineAPI", "this API has the say"), true
	default:
		return True(ConditionPaused, "AuthoritativeAPINotMachineAPI", fmt.Sprintf("the authoritative API is %s", authority)), true
	}
}

// IsPaused reports whether another system has the say over m.
func IsPaused(m *Machine) bool {
	c, _ := Paused(m.Spec.AuthoritativeAPI, m.Status.AuthoritativeAPI)
	return c.Status == corev1.ConditionTrue
}

// IsPausedSet reports whether another system has the say over set.
func IsPausedSet(set *MachineSet) bool {
	c, _ := Paused(set.Spec.AuthoritativeAPI, set.Status.AuthoritativeAPI)
	return c.Status == corev1.ConditionTrue
}

// IsHeldSet reports whether people keep automation from resizing set (C16).
func IsHeldSet(set *MachineSet) bool {
	_, held := set.Annotations[AnnotationPausedMHC]
	return held
}

// MayResize reports whether automation resizes set: neither people keep it from that, nor has another system the say over it (SPEC B7),
// nor is it on its way out.
func MayResize(set *MachineSet) bool {
	return !IsHeldSet(set) && !IsPausedSet(set) && set.DeletionTimestamp == nil
}
