// SPDX-License-Identifier: Apache-2.0

// Package evaluateautoscale resizes MachineSets, so that Pods that do not fit get Nodes, while Nodes that nobody needs go.
//
//	wakes on  ClusterAutoscaler, MachineAutoscaler; scan; question (what would be decided if)
//	reads     ClusterAutoscaler, ConfigMap (cluster-autoscaler-status, machine-disruption,
//	          cluster-autoscaler-priority-expander, cluster-autoscaler-prices), MachineAutoscaler, MachineSet, Machine, Node, Pod, DaemonSet, PodDisruptionBudget,
//	          PersistentVolumeClaim, PersistentVolume, StorageClass, CSINode, VolumeAttachment, Namespace,
//	          PodTemplate, Deployment, ReplicaSet, StatefulSet, ResourceQuota (what CapacityBuffers refer to and are held to, where these are installed)
//	watches   Pod, Node (lists too long to be read anew each time)
//	writes    ConfigMap (cluster-autoscaler-status, machine-disruption), MachineSet (replicas, victims, bounds, capacity keys, backoff, last Node),
//	          Node (scale-down taint, cordon, reason), MachineAutoscaler (finalizer, status), ClusterAutoscaler (status)
//	          (CapacityBuffer: status, where its API is installed)
//
// What it decides is committed to its state first, in one write by compare-and-swap, then carried out on the objects at
// the revisions that the decision saw. Whoever finds a decision that was committed but not carried out finishes it; one
// whose objects moved on is void (RELIABILITY 2d). It never evicts a Pod and never touches a cloud.
package evaluateautoscale

import (
	"slices"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const name = "evaluate-autoscale"

// Function is the deployable function.
var Function = function.Function{Name: name, Reads: reads, Watches: []plan.Kind{"Pod", "Node"}, Decide: Decide, Answer: Answer}

// source is the component that Events about scaling come from (SPEC S67).
const source = "cluster-autoscaler"

// Decide keeps the bounds of MachineAutoscalers on their sets; where those are settled, it evaluates the cluster.
func Decide(s snapshot.Snapshot) plan.Plan {
	p := bounds(s)
	p.Add(notePruned(s))
	p = p.Untried(s.Outcomes)
	if !p.Quiet() || s.Request.Is("MachineAutoscaler") {
		return p
	}
	p.Add(evaluate(s)...)
	return p.Untried(s.Outcomes)
}

// evaluate is one look at the whole cluster: first what was begun is taken further, then the cluster grows, or shrinks.
func evaluate(s snapshot.Snapshot) []plan.Sequence {
	ca := clusterAutoscaler(s)
	if ca == nil {
		return abandon(s, whyNoSettings)
	}
	all := report(s, ca)
	switch {
	case len(ca.Validate()) > 0:
		return append(all, abandon(s, whyInvalid)...)
	case !s.Has(pods):
		return append(all, abandon(s, whyNoGroups)...)
	}
	sc, err := newScan(s, ca)
	if err != nil {
		return append(all, unreadable(s, err))
	}
	sc.decide()
	return append(all, sc.sequences()...)
}

// decide takes what was begun further, then grows the cluster, or shrinks it, and says why not.
func (sc *scan) decide() {
	sc.settle()
	sc.doubt = sc.doubtful()
	sc.continueRemovals()
	sc.followRepack()
	switch {
	case !sc.healthy(): // no set can grow, and Pods are told
		sc.look()
		if !sc.scaleUp() {
			sc.explain()
		}
		sc.untime()
	default:
		sc.giveUp()
		sc.look()
		if !sc.scaleUp() {
			sc.explain()
		}
		sc.reportBuffers()
		sc.scaleDown()
		sc.enforceMinimums()
		sc.writeReasons()
	}
	sc.tellDelays()
	sc.showBackoff()
	sc.keepMemory()
}

// What is read in any case, then what is read if there is something to scale. The state comes before everything that
// it speaks of.
var (
	settingsQuery = snapshot.One("ClusterAutoscaler", "", autoscaling.Name)
	stateQuery    = snapshot.One("ConfigMap", machine.Namespace, machine.ConfigMapStatus)
	pods          = snapshot.All("Pod")
	machinesQuery = snapshot.All("Machine")
	nodesQuery    = snapshot.All("Node")
)

// reads asks little where nothing can scale: without the ClusterAutoscaler default only what bounds are kept on, and
// the state, in case that scale-downs are to be called off (SPEC S81).
func reads(s snapshot.Snapshot) snapshot.Scope {
	ask := []snapshot.Query{snapshot.All("MachineAutoscaler"), snapshot.All("MachineSet")}
	if s.Request.Is("MachineAutoscaler") {
		return snapshot.Scope{Objects: ask}
	}
	ask = append([]snapshot.Query{settingsQuery, stateQuery}, ask...)
	if s.Request.Is(function.Question) { // it may bring what is missing
		ask = append(ask, prioritiesQuery, pricesQuery)
		return snapshot.Scope{Objects: append(ask, everything(s)...)}
	}
	ca := clusterAutoscaler(s)
	begun := len(removals(s)) > 0
	why := ""
	switch {
	case ca == nil:
		why = whyNoSettings
	case len(ca.Validate()) > 0:
		why = whyInvalid
	case !begun && !anyGroup(s):
		why = whyNoGroups
	}
	switch {
	case !s.Has(settingsQuery):
	case why != "":
		if restless(s, why) {
			ask = append(append(ask, budgetQuery, machinesQuery, nodesQuery), buffersQuery(s)...)
		}
	default:
		ask = append(ask, everything(s)...)
		if asksFor(s.ClusterAutoscalers, autoscaling.Priority) {
			ask = append(ask, prioritiesQuery)
		}
		if ca.Annotations[autoscaling.RepackAnnotation] != "" || wantsPrices(s, ca) {
			ask = append(ask, pricesQuery)
		}
	}
	return snapshot.Scope{Objects: ask}
}

// everything is what a decision about scaling needs beside settings and state.
func everything(s snapshot.Snapshot) []snapshot.Query {
	ask := []snapshot.Query{
		budgetQuery, machinesQuery, nodesQuery, pods, snapshot.All("DaemonSet"), snapshot.All("PodDisruptionBudget"),
	}
	volumes := []snapshot.Query{snapshot.All("PersistentVolumeClaim"), snapshot.All("PersistentVolume"), snapshot.All("StorageClass"), snapshot.All("CSINode"), snapshot.All("VolumeAttachment")}
	if s.Has(volumes[0]) || claims(s) { // what was asked once need not be found out again
		ask = append(ask, volumes...)
	}
	if namespaces := snapshot.All("Namespace"); s.Has(namespaces) || slices.ContainsFunc(s.Pods, scheduling.SelectsNamespaces) {
		ask = append(ask, namespaces)
	}
	return append(ask, bufferReads(s)...)
}

// clusterAutoscaler returns the settings' object, unless it is not there or on its way out.
func clusterAutoscaler(s snapshot.Snapshot) *autoscaling.ClusterAutoscaler {
	for _, ca := range s.ClusterAutoscalers {
		if ca.Name == autoscaling.Name && ca.DeletionTimestamp == nil {
			return ca
		}
	}
	return nil
}

// removals returns the scale-downs that are under way; none if the state cannot be read.
func removals(s snapshot.Snapshot) []autoscaling.Removal {
	state, err := s.AutoscalerState()
	if err != nil {
		return nil
	}
	return state.Removals
}

// stateOf reads the state for who changes it; without the ConfigMap it is empty.
func stateOf(s snapshot.Snapshot) (autoscaling.State, error) {
	text := ""
	if cm := s.ConfigMap(machine.Namespace, machine.ConfigMapStatus); cm != nil {
		text = cm.Data[autoscaling.StateKey]
	}
	return autoscaling.ParseState(text)
}

// claims reports whether some Pod's place may depend on its volumes.
func claims(s snapshot.Snapshot) bool {
	for _, p := range s.Pods {
		for i := range p.Spec.Volumes {
			if v := &p.Spec.Volumes[i]; v.PersistentVolumeClaim != nil || v.Ephemeral != nil {
				return true
			}
		}
	}
	return false
}
