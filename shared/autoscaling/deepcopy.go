// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// DeepCopyObject returns a copy that shares nothing with a.
func (a *ClusterAutoscaler) DeepCopyObject() runtime.Object { return a.DeepCopy() }

// DeepCopyObject returns a copy that shares nothing with l.
func (l *ClusterAutoscalerList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = copied(l.Items, (*ClusterAutoscaler).DeepCopy)
	return &c
}

// DeepCopyObject returns a copy that shares nothing with a.
func (a *MachineAutoscaler) DeepCopyObject() runtime.Object { return a.DeepCopy() }

// DeepCopyObject returns a copy that shares nothing with l.
func (l *MachineAutoscalerList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = copied(l.Items, (*MachineAutoscaler).DeepCopy)
	return &c
}

// DeepCopy returns a copy that shares nothing with a.
func (a *ClusterAutoscaler) DeepCopy() *ClusterAutoscaler {
	c := *a
	a.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec = a.Spec.DeepCopy()
	c.Status.Conditions = slices.Clone(a.Status.Conditions)
	return &c
}

// DeepCopy returns a copy that shares nothing with a.
func (a *MachineAutoscaler) DeepCopy() *MachineAutoscaler {
	c := *a
	a.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.LastTargetRef = clone(a.Status.LastTargetRef)
	c.Status.Conditions = slices.Clone(a.Status.Conditions)
	return &c
}

// DeepCopy returns a copy that shares nothing with s.
func (s ClusterAutoscalerSpec) DeepCopy() ClusterAutoscalerSpec {
	if s.ResourceLimits = clone(s.ResourceLimits); s.ResourceLimits != nil {
		s.ResourceLimits.MaxNodesTotal = clone(s.ResourceLimits.MaxNodesTotal)
		s.ResourceLimits.Cores = clone(s.ResourceLimits.Cores)
		s.ResourceLimits.Memory = clone(s.ResourceLimits.Memory)
		s.ResourceLimits.GPUs = slices.Clone(s.ResourceLimits.GPUs)
	}
	if s.ScaleDown = clone(s.ScaleDown); s.ScaleDown != nil {
		s.ScaleDown.DelayAfterAdd = clone(s.ScaleDown.DelayAfterAdd)
		s.ScaleDown.DelayAfterDelete = clone(s.ScaleDown.DelayAfterDelete)
		s.ScaleDown.DelayAfterFailure = clone(s.ScaleDown.DelayAfterFailure)
		s.ScaleDown.UnneededTime = clone(s.ScaleDown.UnneededTime)
		s.ScaleDown.UtilizationThreshold = clone(s.ScaleDown.UtilizationThreshold)
	}
	if s.ScaleUp = clone(s.ScaleUp); s.ScaleUp != nil {
		s.ScaleUp.NewPodScaleUpDelay = clone(s.ScaleUp.NewPodScaleUpDelay)
	}
	s.MaxPodGracePeriod = clone(s.MaxPodGracePeriod)
	s.MaxNodeProvisionTime = clone(s.MaxNodeProvisionTime)
	s.PodPriorityThreshold = clone(s.PodPriorityThreshold)
	s.BalanceSimilarNodeGroups = clone(s.BalanceSimilarNodeGroups)
	s.BalancingIgnoredLabels = slices.Clone(s.BalancingIgnoredLabels)
	s.IgnoreDaemonsetsUtilization = clone(s.IgnoreDaemonsetsUtilization)
	s.SkipNodesWithLocalStorage = clone(s.SkipNodesWithLocalStorage)
	s.Expanders = slices.Clone(s.Expanders)
	s.StartupTaints = slices.Clone(s.StartupTaints)
	s.LogVerbosity = clone(s.LogVerbosity)
	return s
}

// clone returns a pointer to a copy of what p points to, which must hold no pointers that are not cloned after.
func clone[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func copied[T any](items []T, deepCopy func(*T) *T) []T {
	if items == nil {
		return nil
	}
	out := make([]T, len(items))
	for i := range items {
		out[i] = *deepCopy(&items[i])
	}
	return out
}
