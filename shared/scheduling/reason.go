// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	corev1 "k8s.io/api/core/v1"
)

// Reasons why a Pod does not fit a Node, in the scheduler's words where it has some.
const (
	ReasonUnschedulable = "node(s) were unschedulable"
	ReasonAffinity      = "node(s) didn't match Pod's node affinity/selector"
	ReasonPorts         = "node(s) didn't have free ports for the requested pod ports"
	ReasonVolume        = "node(s) had volume node affinity conflict"
	ReasonTooMany       = "Too many pods"
	ReasonSpread        = "node(s) didn't match pod topology spread constraints"
	ReasonNear          = "node(s) didn't match pod affinity rules"
	ReasonFar           = "node(s) didn't match pod anti-affinity rules"
	ReasonBarred        = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// Reasons why a Pod cannot be planned for at all. The answer is no although the scheduler might say yes.
const (
	reasonSeveralKeys = "constraints on several topology keys at once are not planned for"
	reasonNamespaces  = "pod affinity by namespace labels is not planned for"
	reasonOdd         = "more extended resources are in use at once than are planned for, among them "
	reasonOthers      = "waits for pods that it must keep apart from in a topology domain"
)

func insufficient(name corev1.ResourceName) string {
	if name == corev1.ResourcePods {
		return ReasonTooMany
	}
	return "Insufficient " + string(name)
}

func untolerated(t corev1.Taint) string {
	return "node(s) had untolerated taint {" + t.Key + ": " + t.Value + "}"
}
