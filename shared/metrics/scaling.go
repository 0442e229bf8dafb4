// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"context"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opentelemetry.io/otel/metric"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// The autoscaler's metrics (SPEC C79) under upstream's names and labels. What they tell stands in the objects: bounds
// and targets on the sets, timers, backoffs and removals in the state, reasons on the Nodes.
var (
	ofGroup  = []string{"node_group"}
	scalings = []family{
		{autoscales, "cluster_autoscaler_nodes_count", "Nodes by state.", "Node", scanned, []string{"state"}, nodesByState},
		{autoscales, "cluster_autoscaler_node_groups_count", "Sets that are resized.", "MachineSet", scanned, []string{"node_group_type"}, groupsCount},
		{autoscales, "cluster_autoscaler_max_nodes_count", "Nodes that the cluster may have at most; 0: no limit.", "Node", scanned, nil, maxNodes},
		{autoscales, "cluster_autoscaler_cluster_cpu_current_cores", "Cores of all Nodes.", "Node", scanned, nil, currentOf(corev1.ResourceCPU)},
		{autoscales, "cluster_autoscaler_cpu_limits_cores", "Cores that the cluster may have.", "Node", scanned, []string{"direction"}, limitsOf(func(s autoscaling.Settings) autoscaling.Bounds { return s.Cores })},
		{autoscales, "cluster_autoscaler_cluster_memory_current_bytes", "Memory of all Nodes.", "Node", scanned, nil, currentOf(corev1.ResourceMemory)},
		{autoscales, "cluster_autoscaler_memory_limits_bytes", "Memory that the cluster may have.", "Node", scanned, []string{"direction"}, limitsOf(func(s autoscaling.Settings) autoscaling.Bounds { return s.Memory })},
		{autoscales, "cluster_autoscaler_node_group_min_count", "Lowest size of a set.", "MachineSet", scanned, ofGroup, boundOfGroups(machine.AnnotationMinSize)},
		{autoscales, "cluster_autoscaler_node_group_max_count", "Highest size of a set.", "MachineSet", scanned, ofGroup, boundOfGroups(machine.AnnotationMaxSize)},
		{autoscales, "cluster_autoscaler_node_group_target_count", "Wanted size of a set.", "MachineSet", scanned, ofGroup, targetOfGroups},
		{autoscales, "cluster_autoscaler_node_group_backoff_status", "Whether a set is left alone after it could not grow (0: no, 1: yes).", "MachineSet", scanned, ofGroup, backoffOfGroups},
		{autoscales, "cluster_autoscaler_node_group_healthiness", "Whether enough Nodes of a set are ready for it to grow (0: no, 1: yes).", "MachineSet", scanned, ofGroup, healthOfGroups},
		{autoscales, "cluster_autoscaler_unneeded_nodes_count", "Nodes that nobody needs.", "Node", scanned, nil, ofState(func(s autoscaling.State) float64 { return float64(len(s.Unneeded)) })},
		{autoscales, "cluster_autoscaler_unremovable_nodes_count", "Nodes that stay, by the reason that stands on them.", "Node", scanned, []string{"reason"}, unremovable},
		{autoscales, "cluster_autoscaler_pending_node_deletions", "Nodes whose removal is under way.", "Node", scanned, nil, ofState(func(s autoscaling.State) float64 { return float64(len(s.Removals)) })},
		{autoscales, "cluster_autoscaler_scale_down_in_cooldown", "Whether scale-down waits after something else (0: no, 1: yes).", "Node", scanned, nil, cooldown},
		{autoscales, "cluster_autoscaler_last_activity", "When something was done last.", "Node", scanned, []string{"activity"}, lastActivity},
	}
)

func nodesByState(s snapshot.Snapshot) []point {
	counts := map[string]float64{"ready": 0, "unready": 0, "notStarted": 0, "unregistered": 0}
	for _, n := range s.Nodes {
		switch {
		case machine.NodeReady(n):
			counts["ready"]++
		case s.Now.Before(n.CreationTimestamp.Add(15 * time.Minute)):
			counts["notStarted"]++
		default:
			counts["unready"]++
		}
	}
	for _, m := range s.Machines {
		if m.Status.NodeRef == nil && m.DeletionTimestamp == nil {
			counts["unregistered"]++
		}
	}
	var all []point
	for _, state := range []string{"notStarted", "ready", "unready", "unregistered"} {
		all = append(all, point{counts[state], []string{state}})
	}
	return all
}

// resized calls f with the sets that are resized, by the id that the autoscaler has for them.
func resized(s snapshot.Snapshot, f func(id string, set *machine.MachineSet)) {
	for _, set := range s.MachineSets {
		if set.Annotations[machine.AnnotationAutoscaler] != "" && set.Annotations[machine.AnnotationMaxSize] != "" {
			f("MachineSet/"+set.Namespace+"/"+set.Name, set)
		}
	}
}

func groupsCount(s snapshot.Snapshot) []point {
	n := 0.0
	resized(s, func(string, *machine.MachineSet) { n++ })
	return []point{{n, []string{"autoscaled"}}}
}

// settings returns what is in effect, if there is a ClusterAutoscaler.
func settings(s snapshot.Snapshot) (autoscaling.Settings, bool) {
	for _, ca := range s.ClusterAutoscalers {
		if ca.Name == autoscaling.Name {
			return autoscaling.Effective(ca.Spec), true
		}
	}
	return autoscaling.Settings{}, false
}

func maxNodes(s snapshot.Snapshot) []point {
	e, ok := settings(s)
	if !ok {
		return nil
	}
	return []point{{value: float64(e.MaxNodesTotal)}}
}

func currentOf(name corev1.ResourceName) func(snapshot.Snapshot) []point {
	return func(s snapshot.Snapshot) []point {
		sum := 0.0
		for _, n := range s.Nodes {
			amount := scheduling.Amount(name, n.Status.Capacity[name])
			if name == corev1.ResourceCPU {
				amount = scheduling.Cores(n.Status.Capacity[name])
			}
			sum += float64(amount)
		}
		return []point{{value: sum}}
	}
}

func limitsOf(of func(autoscaling.Settings) autoscaling.Bounds) func(snapshot.Snapshot) []point {
	return func(s snapshot.Snapshot) []point {
		e, ok := settings(s)
		if !ok {
			return nil
		}
		b := of(e)
		return []point{{float64(b.Max), []string{"maximum"}}, {float64(b.Min), []string{"minimum"}}}
	}
}

func boundOfGroups(annotation string) func(snapshot.Snapshot) []point {
	return func(s snapshot.Snapshot) (all []point) {
		resized(s, func(id string, set *machine.MachineSet) {
			if n, err := strconv.Atoi(set.Annotations[annotation]); err == nil {
				all = append(all, point{float64(n), []string{id}})
			}
		})
		return all
	}
}

func targetOfGroups(s snapshot.Snapshot) (all []point) {
	resized(s, func(id string, set *machine.MachineSet) {
		all = append(all, point{float64(machine.Replicas(set)), []string{id}})
	})
	return all
}

func backoffOfGroups(s snapshot.Snapshot) (all []point) {
	resized(s, func(id string, set *machine.MachineSet) {
		value := 0.0
		if set.Annotations[machine.AnnotationBackoff] != "" {
			value = 1
		}
		all = append(all, point{value, []string{id}})
	})
	return all
}

func healthOfGroups(s snapshot.Snapshot) (all []point) {
	for _, g := range statusOf(s).NodeGroups {
		all = append(all, point{healthiness(g.Health), []string{g.Name}})
	}
	return all
}

// stateOf reads what the autoscaler remembers. What cannot be read tells nothing.
func stateOf(s snapshot.Snapshot) (autoscaling.State, bool) {
	return stateIn(s.ConfigMap(machine.Namespace, machine.ConfigMapStatus))
}

func ofState(value func(autoscaling.State) float64) func(snapshot.Snapshot) []point {
	return func(s snapshot.Snapshot) []point {
		state, ok := stateOf(s)
		if !ok {
			return nil
		}
		return []point{{value: value(state)}}
	}
}

func cooldown(s snapshot.Snapshot) []point {
	state, okState := stateOf(s)
	e, ok := settings(s)
	if !ok || !okState {
		return nil
	}
	within := func(t *metav1.Time, d time.Duration) bool { return t != nil && s.Now.Before(t.Add(d)) }
	if within(state.ScaledUp(), e.DelayAfterAdd) || within(state.LastScaleDown, e.DelayAfterDelete) || within(state.LastFailure, e.DelayAfterFailure) {
		return []point{{value: 1}}
	}
	return []point{{value: 0}}
}

func lastActivity(s snapshot.Snapshot) []point {
	all := []point{{float64(s.Now.Unix()), []string{"main"}}}
	state, ok := stateOf(s)
	if last := state.ScaledUp(); ok && last != nil {
		all = append(all, point{seconds(*last), []string{"scaleUp"}})
	}
	if ok && state.LastScaleDown != nil {
		all = append(all, point{seconds(*state.LastScaleDown), []string{"scaleDown"}})
	}
	return all
}

// reasonForm is how the reasons are written that stand on Nodes.
var reasonForm = regexp.MustCompile(`^[A-Z][A-Za-z]{0,63}$`)

// unremovable counts Nodes by the first word of the reason that they carry: one of a closed set (SPEC C66). A kubelet may write anything
// there.
func unremovable(s snapshot.Snapshot) (all []point) {
	at := map[string]int{}
	for _, n := range s.Nodes {
		reason, _, _ := strings.Cut(n.Annotations[machine.AnnotationScaleDownReason], ":")
		if reason == "" {
			continue
		}
		if !reasonForm.MatchString(reason) {
			reason = "other"
		}
		i, ok := at[reason]
		if !ok {
			if len(all) == maxReasons { // somebody else writes there
				continue
			}
			i = len(all)
			at[reason] = i
			all = append(all, point{0, []string{reason}})
		}
		all[i].value++
	}
	return all
}

// maxReasons bounds the reasons that are told apart.
const maxReasons = 30

// scaling counts what the autoscaler did.
type scaling struct {
	up, gpus, down, failed, uncreated, lost metric.Int64Counter
	removal                                 metric.Float64Histogram
}

func (m *Metrics) openScaling(i *instruments) {
	m.scaling = scaling{
		up:        i.counter("cluster_autoscaler_scaled_up_nodes_total", "Nodes that were asked for."),
		gpus:      i.counter("cluster_autoscaler_scaled_up_gpu_nodes_total", "Nodes with GPUs that were asked for."),
		down:      i.counter("cluster_autoscaler_scaled_down_nodes_total", "Nodes that were given up."),
		failed:    i.counter("cluster_autoscaler_failed_scale_ups_total", "Scale-ups that failed, by reason."),
		uncreated: i.counter("cluster_autoscaler_failed_node_creations_total", "Machines that failed, or whose Node did not come in time, by reason."),
		removal:   i.histogram("cluster_autoscaler_node_removal_latency_seconds", "How long it took from the taint until the Node was gone, or was given back.", secondsOfRemoval),
		lost:      i.counter("cluster_autoscaler_old_unregistered_nodes_removed_count", "Machines that were given up because their Node did not come."),
	}
}

// resizedBy counts the Nodes of a set that the autoscaler changed.
func (m *Metrics) resizedBy(ctx context.Context, a plan.Update) {
	before, ok := a.Old.(*machine.MachineSet)
	after, isSet := a.New.(*machine.MachineSet)
	if m.scaling.up == nil || !ok || !isSet {
		return
	}
	switch n := int64(machine.Replicas(after)) - int64(machine.Replicas(before)); {
	case n > 0:
		m.scaling.up.Add(ctx, n)
		if gpus, err := strconv.Atoi(cmp.Or(after.Annotations[machine.CapacityGPUCount], after.Annotations[machine.AnnotationGPU])); err == nil && gpus > 0 {
			m.scaling.gpus.Add(ctx, n)
		}
	case n < 0:
		m.scaling.down.Add(ctx, -n)
	}
}

// failedToScale maps reasons of Events to those of the metric.
var failedToScale = map[string]string{"ScaleUpTimedOut": "timeout", "ScaleUpFailed": "other", "FailedToScaleUpGroup": "apiCallError"}

func (m *Metrics) scalingTold(ctx context.Context, notes map[plan.Note]bool) {
	if m.scaling.failed == nil {
		return
	}
	for n := range notes {
		if reason := failedToScale[n.Reason]; reason != "" {
			m.scaling.failed.Add(ctx, 1, with(keyReason.With(reason)))
		}
		if n.Reason == "DeleteUnregistered" {
			m.scaling.lost.Add(ctx, 1)
		}
	}
}
