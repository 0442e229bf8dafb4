// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Name is the only name that a ClusterAutoscaler may have (SPEC B112).
const Name = "default"

// SoftTaintAnnotation on the ClusterAutoscaler, with the value Enabled, marks Nodes that nobody needs with the taint
// DeletionCandidateOfClusterAutoscaler (SPEC C60).
const SoftTaintAnnotation = "machine.openshift.io/soft-taint"

// ClusterAutoscaler says whether, when and within which limits the cluster grows and shrinks. There is at most one.
type ClusterAutoscaler struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   ClusterAutoscalerSpec   `json:"spec,omitempty"`
	Status ClusterAutoscalerStatus `json:"status,omitempty"`
}

// ClusterAutoscalerList is a list of ClusterAutoscaler.
type ClusterAutoscalerList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []ClusterAutoscaler `json:"items"`
}

// ClusterAutoscalerSpec is what a user asks for (SPEC B91–B109). What is left out has a default: see [Effective].
// Durations are written as Go does.
type ClusterAutoscalerSpec struct {
	ResourceLimits *ResourceLimits `json:"resourceLimits,omitempty"`
	ScaleDown      *ScaleDown      `json:"scaleDown,omitempty"`
	ScaleUp        *ScaleUp        `json:"scaleUp,omitempty"`

	MaxPodGracePeriod    *int32  `json:"maxPodGracePeriod,omitempty"` // seconds
	MaxNodeProvisionTime *string `json:"maxNodeProvisionTime,omitempty"`
	PodPriorityThreshold *int32  `json:"podPriorityThreshold,omitempty"`

	BalanceSimilarNodeGroups    *bool    `json:"balanceSimilarNodeGroups,omitempty"`
	BalancingIgnoredLabels      []string `json:"balancingIgnoredLabels,omitempty"`
	IgnoreDaemonsetsUtilization *bool    `json:"ignoreDaemonsetsUtilization,omitempty"`
	SkipNodesWithLocalStorage   *bool    `json:"skipNodesWithLocalStorage,omitempty"`

	Expanders               []Expander `json:"expanders,omitempty"`
	EnforceNodeGroupMinSize Toggle     `json:"enforceNodeGroupMinSize,omitempty"`
	StartupTaints           []string   `json:"startupTaints,omitempty"` // keys
	LogVerbosity            *int32     `json:"logVerbosity,omitempty"`
}

// ResourceLimits bounds the whole cluster, control plane and unmanaged Nodes included (SPEC B91–B94, C7).
type ResourceLimits struct {
	MaxNodesTotal *int32     `json:"maxNodesTotal,omitempty"`
	Cores         *Range     `json:"cores,omitempty"`
	Memory        *Range     `json:"memory,omitempty"` // GiB
	GPUs          []GPULimit `json:"gpus,omitempty"`
}

// Range is a closed interval.
type Range struct {
	Min int32 `json:"min"`
	Max int32 `json:"max"`
}

// GPULimit bounds the GPUs of one type; the type is the value of a Node's accelerator label (SPEC B94, C42).
type GPULimit struct {
	Type string `json:"type"`
	Min  int32  `json:"min"`
	Max  int32  `json:"max"`
}

// ScaleDown says when Nodes go (SPEC B95–B98). Not enabled, its other fields mean nothing.
type ScaleDown struct {
	Enabled                     bool    `json:"enabled"`
	DelayAfterAdd               *string `json:"delayAfterAdd,omitempty"`
	DelayAfterDelete            *string `json:"delayAfterDelete,omitempty"`
	DelayAfterFailure           *string `json:"delayAfterFailure,omitempty"`
	UnneededTime                *string `json:"unneededTime,omitempty"`
	UtilizationThreshold        *string `json:"utilizationThreshold,omitempty"`
	CordonNodeBeforeTerminating Toggle  `json:"cordonNodeBeforeTerminating,omitempty"`
}

// ScaleUp says how soon new Pods count (SPEC B99).
type ScaleUp struct {
	NewPodScaleUpDelay *string `json:"newPodScaleUpDelay,omitempty"`
}

// Expander ranks the node groups that could take the waiting Pods (SPEC B106).
type Expander string

// The expanders that a ClusterAutoscaler may list. Price is ours: OpenShift knows the other three.
const (
	LeastWaste Expander = "LeastWaste"
	Priority   Expander = "Priority"
	Random     Expander = "Random"
	Price      Expander = "Price"
)

// Toggle turns one behavior on or off; empty means its default.
type Toggle string

// The values of a Toggle.
const (
	Enabled  Toggle = "Enabled"
	Disabled Toggle = "Disabled"
)

// ClusterAutoscalerStatus holds what is wrong with the object itself; what the autoscaler does is told in the status
// ConfigMap, in Events and metrics (SPEC B110).
type ClusterAutoscalerStatus struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}
