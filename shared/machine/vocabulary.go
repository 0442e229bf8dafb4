// SPDX-License-Identifier: Apache-2.0

// Package machine is the vocabulary of the machine layer: the API types, labels, annotations, conditions, derived
// names, with the small records that functions keep on objects.
package machine

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
)

// The API types are OpenShift's own (SPEC B.1–B.3), so that manifests and clients written for it work unchanged.
type (
	// Machine is the wish for one Node, and the record of the instance that stands behind it.
	Machine = machinev1beta1.Machine
	// MachineSet keeps a number of Machines alive.
	MachineSet = machinev1beta1.MachineSet
	// MachineHealthCheck says when a Machine is replaced.
	MachineHealthCheck = machinev1beta1.MachineHealthCheck
	// Condition is one observed fact about a Machine, a MachineSet or a MachineHealthCheck.
	Condition = machinev1beta1.Condition
)

// Phases of a Machine, in the order a healthy one visits them (SPEC B14). The empty phase means: not yet seen.
const (
	PhaseProvisioning = machinev1beta1.PhaseProvisioning
	PhaseProvisioned  = machinev1beta1.PhaseProvisioned
	PhaseRunning      = machinev1beta1.PhaseRunning
	PhaseDeleting     = machinev1beta1.PhaseDeleting
	PhaseFailed       = machinev1beta1.PhaseFailed
)

// Finalizer keeps a Machine until its instance is proven gone (SPEC B13).
const Finalizer = machinev1beta1.MachineFinalizer

// Namespace is where the objects, the functions and their state live unless configured otherwise (SPEC S2).
const Namespace = "openshift-machine-api"

// Labels (SPEC B.5).
const (
	LabelCluster       = "machine.openshift.io/cluster-api-cluster"
	LabelRole          = "machine.openshift.io/cluster-api-machine-role"
	LabelType          = "machine.openshift.io/cluster-api-machine-type"
	LabelMachineSet    = "machine.openshift.io/cluster-api-machineset"
	LabelRegion        = "machine.openshift.io/region"
	LabelZone          = "machine.openshift.io/zone"
	LabelInstanceType  = "machine.openshift.io/instance-type"
	LabelInterruptible = "machine.openshift.io/interruptible-instance"
	// LabelOrdinal carries the ledger ordinal that a Machine was created for (RELIABILITY 2a.2).
	LabelOrdinal = "machine.openshift.io/ordinal"
	// LabelControlPlane and LabelMaster mark control-plane Nodes (SPEC B32).
	LabelControlPlane = "node-role.kubernetes.io/control-plane"
	LabelMaster       = "node-role.kubernetes.io/master"
)

// Annotations (SPEC B.5; those of our own are written by the one function named).
const (
	AnnotationInstanceState  = "machine.openshift.io/instance-state"
	AnnotationExcludeDrain   = "machine.openshift.io/exclude-node-draining"
	AnnotationDelete         = "machine.openshift.io/delete-machine"
	AnnotationDeleteAlias    = "machine.openshift.io/cluster-api-delete-machine"
	AnnotationMachine        = "machine.openshift.io/machine"
	AnnotationMinSize        = "machine.openshift.io/cluster-api-autoscaler-node-group-min-size"
	AnnotationMaxSize        = "machine.openshift.io/cluster-api-autoscaler-node-group-max-size"
	AnnotationAutoscaler     = "autoscaling.openshift.io/machineautoscaler"
	AnnotationPaused         = "cluster.x-k8s.io/paused"
	AnnotationStrategy       = "machine.openshift.io/remediation-strategy"
	AnnotationExternalRepair = "host.metal3.io/external-remediation"
	// AnnotationPoweredOff is on a Machine from when its host is off and its Node gone until its Node is back; the value is
	// the claim of whoever remediates it. AnnotationNodeLabels and AnnotationNodeAnnotations are what that Node carried,
	// AnnotationNodeCordoned, which is ours, says that it took no Pods.
	AnnotationPoweredOff      = "remediation.metal3.io/powered-off-for-remediation"
	AnnotationNodeLabels      = "remediation.metal3.io/node-labels-backup"
	AnnotationNodeAnnotations = "remediation.metal3.io/node-annotations-backup"
	AnnotationNodeCordoned    = "machine.openshift.io/node-was-cordoned"
	AnnotationSkipRepair      = "cluster.x-k8s.io/skip-remediation"
	// AnnotationBareMetalHost on a Machine names its host, as namespace/name (SPEC B.5).
	AnnotationBareMetalHost = "metal3.io/BareMetalHost"

	// AnnotationFollowHosts on a MachineSet makes its replicas follow the number of hosts; its value means nothing (SPEC E37).
	AnnotationFollowHosts = "metal3.io/autoscale-to-hosts"

	// AnnotationDrainTimeout on a Machine, by the template of its set or by hand, is the longest that its drain may take,
	// as a Go duration. Without it a drain has no end (SPEC B33).
	AnnotationDrainTimeout = "machine.openshift.io/node-drain-timeout"

	// AnnotationLedger on a MachineSet is scale-machineset's committed decision.
	AnnotationLedger = "machine.openshift.io/ledger"
	// AnnotationVictims on a MachineSet names the Machines that evaluate-autoscale wants gone.
	AnnotationVictims = "machine.openshift.io/scale-down-victims"
	// AnnotationIntent on a Machine is provision-machine's claim, with the frozen request to the cloud.
	AnnotationIntent = "machine.openshift.io/provision-intent"
	// AnnotationCloudAccount on a Machine is what the cloud calls the account in which its instance is, or may be: a project,
	// with its region, an AWS account, a vCenter. Provision-machine writes it.
	AnnotationCloudAccount = "machine.openshift.io/cloud-account"
	// AnnotationCapacityOf on a MachineSet is provision-machine's: a digest of the providerSpec that its capacity annotations are
	// of. After "unknown:" it is one that the cloud tells no capacity of: what stands there is a person's word.
	AnnotationCapacityOf = "machine.openshift.io/capacity-of"
	// AnnotationTagsRefused on a Machine is provision-machine's: until when it asks for no tags, and why.
	AnnotationTagsRefused = "machine.openshift.io/tags-refused"
	// AnnotationInFlight on a MachineHealthCheck is remediate's list of remediations under way.
	AnnotationInFlight = "machine.openshift.io/in-flight"
	// AnnotationUnreadable on a MachineHealthCheck that was read says why its spec could not be: it stands there empty.
	// It is never written.
	AnnotationUnreadable = "machine.openshift.io/unreadable"
	// AnnotationRemediatedBy on a Machine is remediate's claim: which check, by which step, since when.
	AnnotationRemediatedBy = "machine.openshift.io/remediated-by"
	// AnnotationPreserve on a Machine keeps it from being remediated: people want to look at it.
	AnnotationPreserve = "machine.openshift.io/preserve"
	// These on a MachineHealthCheck are people's, beside its spec (docs/healing.md).
	AnnotationMaxInFlight   = "machine.openshift.io/max-in-flight"
	AnnotationSteps         = "machine.openshift.io/remediation-steps"
	AnnotationStormCooldown = "machine.openshift.io/storm-cooldown"
	AnnotationHealthyDelay  = "machine.openshift.io/healthy-delay"
	// AnnotationScaleDownReason on a Node says why it stays or goes (SPEC W2).
	AnnotationScaleDownReason = "machine.openshift.io/scale-down-reason"
	// AnnotationBackoff on a MachineSet says until when evaluate-autoscale does not grow it, and why.
	AnnotationBackoff = "machine.openshift.io/scale-up-backoff"
	// AnnotationRetryScaleUp on a MachineSet is a person's wish to end the backoff; evaluate-autoscale takes it off.
	AnnotationRetryScaleUp = "machine.openshift.io/retry-scale-up"
	// AnnotationLastPlan on a MachineSet is the id of evaluate-autoscale's plan that last changed its replicas.
	AnnotationLastPlan = "machine.openshift.io/last-autoscale-plan"
	// AnnotationLastNode on a MachineSet is what its Nodes were like, for the time when it has none.
	AnnotationLastNode = "machine.openshift.io/last-node"
	// AnnotationCordonedBy on a Node is the id of evaluate-autoscale's plan that cordoned it: who did may undo it.
	AnnotationCordonedBy = "machine.openshift.io/cordoned-by-plan"
)

// Capacity annotations of a MachineSet: the old keys and the new (SPEC B.5, B88).
const (
	AnnotationVCPU     = "machine.openshift.io/vCPU"
	AnnotationMemoryMb = "machine.openshift.io/memoryMb"
	AnnotationGPU      = "machine.openshift.io/GPU"
	AnnotationGPUType  = "machine.openshift.io/gpu-type" // ours, beside OpenShift's: the resource of these GPUs, where a cloud tells whose they are
	AnnotationMaxPods  = "machine.openshift.io/maxPods"

	CapacityPrefix     = "capacity.cluster-autoscaler.kubernetes.io/"
	CapacityCPU        = CapacityPrefix + "cpu"
	CapacityMemory     = CapacityPrefix + "memory"
	CapacityDisk       = CapacityPrefix + "ephemeral-disk"
	CapacityGPUType    = CapacityPrefix + "gpu-type"
	CapacityGPUCount   = CapacityPrefix + "gpu-count"
	CapacityMaxPods    = CapacityPrefix + "maxPods"
	CapacityLabels     = CapacityPrefix + "labels"
	CapacityTaints     = CapacityPrefix + "taints"
	AnnotationPrice    = "machine.openshift.io/price-per-hour"
	AnnotationArch     = "machine.openshift.io/arch"
	TaintToBeDeleted   = "ToBeDeletedByClusterAutoscaler"
	TaintCandidate     = "DeletionCandidateOfClusterAutoscaler"
	ConfigMapStatus    = "cluster-autoscaler-status"
	ConfigMapSweep     = "machine-sweep-state"
	ConfigMapDisrupt   = "machine-disruption"
	ConfigMapUnhealthy = "node-unhealthy-conditions"
	ConfigMapPriority  = "cluster-autoscaler-priority-expander"
	ConfigMapPrices    = "cluster-autoscaler-prices"
	InfrastructureName = "cluster"
	NamespaceSystem    = "kube-system" // whose UID is the cluster's mark
)

// SchemeBareMetal begins the provider id of a host: baremetalhost:///namespace/name/uid (SPEC E34).
const SchemeBareMetal = "baremetalhost:///"
