// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Reasons why a Pod does not fit a Node, in the scheduler's words where it has some.
const (
	ReasonUnschedulable = "node(s) were unschedulable"
	ReasonAffinity      = "node(s) didn't match Pod's node affinity/selector"
	ReasonPorts         = "node(s) didn't have free ports for the requested pod ports"
	ReasonName          = "node(s) didn't match the requested node name"
	ReasonVolume        = "node(s) didn't match PersistentVolume's node affinity"
	ReasonVolumeZone    = "node(s) had no available volume zone"
	ReasonBinding       = "node(s) didn't find available persistent volumes to bind"
	ReasonUnbound       = "pod has unbound immediate PersistentVolumeClaims"
	ReasonNoVolume      = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
	ReasonExclusive     = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
	ReasonDisk          = "node(s) had no available disk"
	ReasonAttach        = "node(s) exceed max volume count"
	ReasonTooMany       = "Too many pods"
	ReasonSpread        = "node(s) didn't match pod topology spread constraints"
	ReasonSpreadLabel   = ReasonSpread + " (missing required label)"
	ReasonNear          = "node(s) didn't match pod affinity rules"
	ReasonFar           = "node(s) didn't match pod anti-affinity rules"
	ReasonBarred        = "node(s) didn't satisfy existing pods anti-affinity rules"
)

// ReasonUseless says that a Node like this came for such a Pod, and could not hold it.
const ReasonUseless = "a node that came for such pods could not hold them"

// Reasons why a Pod cannot be planned for at all. The answer is no although the scheduler might say yes.
const (
	reasonDevices     = "claims of devices (spec.resourceClaims) are not planned for"
	reasonSeveralKeys = "constraints on several topology keys at once are not planned for"
	reasonNamespaces  = "pod affinity by labels of namespaces that are not known is not planned for"
	reasonOdd         = "more extended resources are in use at once than are planned for, among them "
	reasonOthers      = "waits for pods that it must keep apart from in a topology domain"
)

func insufficient(name corev1.ResourceName) string {
	switch {
	case name == corev1.ResourcePods:
		return ReasonTooMany
	case strings.HasPrefix(string(name), attachPrefix):
		return ReasonAttach
	}
	return "Insufficient " + string(name)
}

func untolerated(t corev1.Taint) string {
	return "node(s) had untolerated taint {" + t.Key + ": " + t.Value + "}"
}
