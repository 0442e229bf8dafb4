// SPDX-License-Identifier: Apache-2.0

package machine

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// LegacyGroup is where health checks lived before machine.openshift.io had them (SPEC S88).
const LegacyGroup = "healthchecking.openshift.io"

// LegacyHealthCheck is the MachineHealthCheck of LegacyGroup: a selector. Its rules are in the ConfigMap of name
// ConfigMapUnhealthy (SPEC B61); its status is that of today.
type LegacyHealthCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   LegacyHealthCheckSpec                   `json:"spec,omitempty"`
	Status machinev1beta1.MachineHealthCheckStatus `json:"status,omitempty"`
}

// LegacyHealthCheckSpec says which Machines are looked at.
type LegacyHealthCheckSpec struct {
	Selector metav1.LabelSelector `json:"selector"`
}

// DeepCopyObject returns a copy that shares nothing with h.
func (h *LegacyHealthCheck) DeepCopyObject() runtime.Object { return h.DeepCopy() }

// DeepCopy returns a copy that shares nothing with h.
func (h *LegacyHealthCheck) DeepCopy() *LegacyHealthCheck {
	c := *h
	h.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	h.Spec.Selector.DeepCopyInto(&c.Spec.Selector)
	h.Status.DeepCopyInto(&c.Status)
	return &c
}
