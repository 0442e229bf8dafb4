// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// daemonAnnotation "true" on a Pod says that it counts as a DaemonSet's, whoever keeps one such Pod on each Node, as Cluster Autoscaler has it
// (SPEC C70).
const daemonAnnotation = "cluster-autoscaler.kubernetes.io/daemonset-pod"

// OfDaemonSet reports whether a Pod is of a DaemonSet, or counts as one: it goes with its Node, and nobody waits for it.
func OfDaemonSet(p *corev1.Pod) bool {
	return DaemonSetOf(p) != nil || p.Annotations[daemonAnnotation] == "true"
}

// DaemonSetOf returns who made a Pod, if that is a DaemonSet, or nil.
func DaemonSetOf(p *corev1.Pod) *metav1.OwnerReference {
	if c := metav1.GetControllerOfNoCopy(p); c != nil && c.Kind == "DaemonSet" {
		return c
	}
	return nil
}
