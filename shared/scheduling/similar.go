// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// How far two templates may differ, as a part of the larger value (SPEC C37).
const (
	memoryTolerance = 0.015
	freeTolerance   = 0.05
)

// IgnoredLabels never make two groups differ (SPEC C38).
var IgnoredLabels = []string{
	corev1.LabelHostname, corev1.LabelTopologyZone, corev1.LabelFailureDomainBetaZone, corev1.LabelTopologyRegion,
	corev1.LabelFailureDomainBetaRegion, "beta.kubernetes.io/fluentd-ds-ready", "kops.k8s.io/instancegroup",
}

// PlatformLabels are those of the clouds that do not make two groups differ either, where balancing is spoken of at
// all (SPEC C38, B103).
var PlatformLabels = []string{
	"topology.ebs.csi.aws.com/zone", "lifecycle", "k8s.amazonaws.com/eniConfig", "eks.amazonaws.com/nodegroup",
	"alpha.eksctl.io/nodegroup-name", "alpha.eksctl.io/instance-id", "topology.k8s.aws/zone-id",
	"topology.disk.csi.azure.com/zone", "agentpool", "kubernetes.azure.com/agentpool", "topology.gke.io/zone",
	"ibm-cloud.kubernetes.io/worker-id", "vpc-block-csi-driver-labels", "ibm-cloud.kubernetes.io/vpc-instance-id",
	"nutanix.com/prism-element-name", "nutanix.com/prism-element-uuid", "nutanix.com/prism-host-name", "nutanix.com/prism-host-uuid",
}

// Similar reports whether two templates are of groups that may take each other's place, so that new Nodes are
// balanced between them (SPEC C37).
func (w *World) Similar(a, b Node, ignored []string) bool {
	return alike(a.Status.Capacity, b.Status.Capacity, 0, memoryTolerance) &&
		alike(a.Status.Allocatable, b.Status.Allocatable, freeTolerance, freeTolerance) &&
		w.alikeFree(a, b) && sameLabels(a, b, ignored)
}

func (w *World) alikeFree(a, b Node) bool {
	x, y := w.fresh(&a), w.fresh(&b)
	for i := range w.axes.names {
		if !near(x[i], y[i], freeTolerance) {
			return false
		}
	}
	return true
}

// alike compares two lists of the same resources; memory has a tolerance of its own.
func alike(a, b corev1.ResourceList, tolerance, forMemory float64) bool {
	if len(a) != len(b) {
		return false
	}
	for name, q := range a {
		other, ok := b[name]
		limit := tolerance
		if name == corev1.ResourceMemory {
			limit = forMemory
		}
		if !ok || !near(Amount(name, q), Amount(name, other), limit) {
			return false
		}
	}
	return true
}

func near(a, b int64, tolerance float64) bool {
	return float64(max(a, b)-min(a, b)) <= tolerance*float64(max(a, b))
}

// sameLabels compares the labels of two templates, but for those that each Node has of its own.
func sameLabels(a, b Node, ignored []string) bool {
	covers := func(a, b Node) bool {
		for k, v := range a.Labels {
			if other, ok := b.Labels[k]; (!ok || other != v) && v != a.Name && !slices.Contains(ignored, k) {
				return false
			}
		}
		return true
	}
	return covers(a, b) && covers(b, a)
}
