// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Finalizer keeps a MachineAutoscaler until its target has lost bounds and owner (SPEC B86).
const Finalizer = "machinetarget.autoscaling.openshift.io"

// MachineAutoscaler lets one MachineSet be resized within bounds. Sets without one are never touched (SPEC S31).
type MachineAutoscaler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MachineAutoscalerSpec   `json:"spec,omitempty"`
	Status MachineAutoscalerStatus `json:"status,omitempty"`
}

// MachineAutoscalerList is a list of MachineAutoscaler.
type MachineAutoscalerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []MachineAutoscaler `json:"items"`
}

// MachineAutoscalerSpec holds the bounds of one target (SPEC B84).
type MachineAutoscalerSpec struct {
	MinReplicas    int32          `json:"minReplicas"`
	MaxReplicas    int32          `json:"maxReplicas"`
	ScaleTargetRef ScaleTargetRef `json:"scaleTargetRef"`
}

// ScaleTargetRef names what is resized. It is always in the namespace where Machines live (SPEC B85).
type ScaleTargetRef struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
}

// MachineAutoscalerStatus remembers the target that carries the bounds now (SPEC B86), and what is wrong with it.
type MachineAutoscalerStatus struct {
	LastTargetRef *ScaleTargetRef    `json:"lastTargetRef,omitempty"`
	Conditions    []metav1.Condition `json:"conditions,omitempty"`
}

// IsMachineSet reports whether r names a MachineSet, the only kind of target there is (SPEC B85).
func (r ScaleTargetRef) IsMachineSet() bool {
	return r.APIVersion == "machine.openshift.io/v1beta1" && r.Kind == "MachineSet"
}
