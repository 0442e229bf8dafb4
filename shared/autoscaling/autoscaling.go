// SPDX-License-Identifier: Apache-2.0

// Package autoscaling is the API of ClusterAutoscaler and MachineAutoscaler: types, defaults, validation.
package autoscaling

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of both kinds.
const Group = "autoscaling.openshift.io"

// The two kinds live in different versions of the group, as in OpenShift (SPEC B.9, B.10).
var (
	ClusterAutoscalerVersion = schema.GroupVersion{Group: Group, Version: "v1"}
	MachineAutoscalerVersion = schema.GroupVersion{Group: Group, Version: "v1beta1"}
)

// AddToScheme makes both kinds known to s. It never fails; the error satisfies runtime.SchemeBuilder.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(ClusterAutoscalerVersion, &ClusterAutoscaler{}, &ClusterAutoscalerList{})
	s.AddKnownTypes(MachineAutoscalerVersion, &MachineAutoscaler{}, &MachineAutoscalerList{})
	metav1.AddToGroupVersion(s, ClusterAutoscalerVersion)
	metav1.AddToGroupVersion(s, MachineAutoscalerVersion)
	return nil
}
