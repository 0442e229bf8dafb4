// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OwningSet returns which MachineSet controls m, or nil. What another API calls so keeps no ledger, and has no say.
func OwningSet(m *Machine) *metav1.OwnerReference {
	owner := metav1.GetControllerOf(m)
	if owner == nil || owner.Kind != "MachineSet" {
		return nil
	}
	if group, _, _ := strings.Cut(owner.APIVersion, "/"); group != machinev1beta1.GroupName {
		return nil
	}
	return owner
}

// Controls reports whether set controls m: an owner is of the Machine's own namespace, whatever a copy in another one says.
func Controls(set *MachineSet, m *Machine) bool {
	return m.Namespace == set.Namespace && metav1.IsControlledBy(m, set)
}
