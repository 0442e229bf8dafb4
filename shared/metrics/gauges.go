// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"go.opentelemetry.io/otel/attribute"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Functions whose scans read everything of a kind anyway: each is the one that tells how many there are.
const (
	provisions = "provision-machine"
	links      = "link-node"
	scales     = "scale-machineset"
	remediates = "remediate"
	autoscales = "evaluate-autoscale"
	sweeps     = "sweep-instances"
)

const (
	// scanned is how long what a scan saw is told. The tick comes every ten seconds, to any one of the processes.
	scanned = 90 * time.Second
	// swept is that of a sweep, which comes every five minutes.
	swept = 11 * time.Minute
)

// family is one gauge: which function's scan it is computed from, and how.
type family struct {
	function, name, help string
	kind                 plan.Kind // of which all must have been read; empty: none
	keep                 time.Duration
	labels               []string
	of                   func(snapshot.Snapshot) []point
}

// point is one series: its value, and the values of the family's labels.
type point struct {
	value  float64
	labels []string
}

// view is what a scan saw of a family.
type view struct {
	at     time.Time
	points []point
}

var (
	named    = []string{"name", "namespace"}
	families = slices.Concat(scalings, []family{
		{provisions, "mapi_machine_items", "Machines.", "Machine", scanned, nil, machineItems},
		{
			provisions, "mapi_machine_created_timestamp_seconds", "When a Machine was created; those without a phase are left out.", "Machine", scanned,
			[]string{"name", "namespace", "spec_provider_id", "node", "api_version", "phase"}, machinesCreated,
		},
		{provisions, "mapi_mao_collector_up", "Whether the last scan could read all objects.", "", scanned, []string{"kind"}, up(kindUp{"Machine", "mapi_machine_items"})},
		{scales, "mapi_machineset_items", "MachineSets.", "MachineSet", scanned, nil, setItems},
		{
			scales, "mapi_machineset_created_timestamp_seconds", "When a MachineSet was created.", "MachineSet", scanned,
			[]string{"name", "namespace", "api_version"}, setsCreated,
		},
		{scales, "mapi_machine_set_status_replicas", "Machines of a MachineSet.", "MachineSet", scanned, named, ofSets(func(st machinev1beta1.MachineSetStatus) int32 { return st.Replicas })},
		{scales, "mapi_machine_set_status_replicas_ready", "Machines of a MachineSet whose Node is Ready.", "MachineSet", scanned, named, ofSets(func(st machinev1beta1.MachineSetStatus) int32 { return st.ReadyReplicas })},
		{scales, "mapi_machine_set_status_replicas_available", "Machines of a MachineSet whose Node was Ready for minReadySeconds.", "MachineSet", scanned, named, ofSets(func(st machinev1beta1.MachineSetStatus) int32 { return st.AvailableReplicas })},
		{scales, "mapi_mao_collector_up", "Whether the last scan could read all objects.", "", scanned, []string{"kind"}, up(kindUp{"MachineSet", "mapi_machineset_items"})},
		{remediates, "mapi_machinehealthcheck_nodes_covered", "Machines that a MachineHealthCheck looks at.", "MachineHealthCheck", scanned, named, covered},
		{remediates, "mapi_machinehealthcheck_short_circuit", "Whether a MachineHealthCheck is kept from remediating (0: no, 1: yes).", "MachineHealthCheck", scanned, named, shortCircuit},
		{remediates, "mapi_mao_collector_up", "Whether the last scan could read all objects.", "", scanned, []string{"kind"}, up(
			kindUp{"MachineHealthCheck", "mapi_machinehealthcheck_items"}, kindUp{plan.LegacyHealthCheck, "mapi_legacymachinehealthcheck_items"})},
		{autoscales, "cluster_autoscaler_unschedulable_pods_count", "Pods that the scheduler found no Node for.", "Pod", scanned, nil, unschedulable},
		{autoscales, "cluster_autoscaler_cluster_safe_to_autoscale", "Whether enough Nodes are ready for scaling (0: no, 1: yes).", "Pod", scanned, nil, safe},
		{sweeps, "machines_sweep_instances_orphans", "Instances that no Machine owns.", "", swept, nil, orphans},
		{sweeps, "machines_sweep_instances_insecure_account", "Whether the credentials of an account let its cloud not prove who it is.", "", swept, []string{"account"}, insecure},
	})
)

// look computes every gauge of the function from a scan. What could not be read leaves the gauge as it was, until that
// is too old.
func (m *Metrics) look(s snapshot.Snapshot) {
	now := m.clock()
	for _, f := range families {
		if f.function == m.function && (f.kind == "" || s.Has(snapshot.All(f.kind))) {
			v := view{at: now, points: f.of(s)}
			m.mu.Lock()
			m.views[f.name] = v
			m.mu.Unlock()
		}
	}
	if m.function == provisions && s.Has(snapshot.All("Machine")) {
		m.forget(s)
	}
}

// points returns what the last scan saw of f, unless that was too long ago.
func (m *Metrics) points(f family) []point {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.views[f.name]
	if !ok || m.clock().Sub(v.at) > f.keep {
		return nil
	}
	return v.points
}

func (f family) attributes(p point) []attribute.KeyValue {
	labels := make([]attribute.KeyValue, len(f.labels))
	for i, key := range f.labels {
		labels[i] = attribute.String(key, short(p.labels[i]))
	}
	return labels
}

// maxLabel bounds a label's value, in bytes: the longest of Azure's ids has some 700.
const maxLabel = 1 << 10

func short(value string) string {
	if len(value) > maxLabel {
		return strings.ToValidUTF8(value[:maxLabel], "")
	}
	return value
}

func machineItems(s snapshot.Snapshot) []point { return []point{{value: float64(len(s.Machines))}} }

func setItems(s snapshot.Snapshot) []point { return []point{{value: float64(len(s.MachineSets))}} }

func machinesCreated(s snapshot.Snapshot) []point {
	var all []point
	for _, m := range s.Machines {
		if machine.Phase(m) == "" {
			continue
		}
		node := ""
		if m.Status.NodeRef != nil {
			node = m.Status.NodeRef.Name
		}
		all = append(all, point{seconds(m.CreationTimestamp), []string{
			m.Name, m.Namespace, machine.ProviderID(m), node, machinev1beta1.GroupVersion.String(), machine.Phase(m),
		}})
	}
	return all
}

func setsCreated(s snapshot.Snapshot) []point {
	var all []point
	for _, set := range s.MachineSets {
		all = append(all, point{seconds(set.CreationTimestamp), []string{set.Name, set.Namespace, machinev1beta1.GroupVersion.String()}})
	}
	return all
}

func seconds(t metav1.Time) float64 { return float64(t.Unix()) }

func ofSets(count func(machinev1beta1.MachineSetStatus) int32) func(snapshot.Snapshot) []point {
	return func(s snapshot.Snapshot) []point {
		var all []point
		for _, set := range s.MachineSets {
			all = append(all, point{float64(count(set.Status)), []string{set.Name, set.Namespace}})
		}
		return all
	}
}

func covered(s snapshot.Snapshot) []point {
	var all []point
	for _, h := range checks(s) {
		if n := h.Status.ExpectedMachines; n != nil {
			all = append(all, point{float64(*n), []string{h.Name, h.Namespace}})
		}
	}
	return highest(all)
}

func shortCircuit(s snapshot.Snapshot) []point {
	var all []point
	for _, h := range checks(s) {
		value := 0.0
		if c := machine.FindCondition(h.Status.Conditions, machinev1beta1.RemediationAllowedCondition); c != nil && c.Status == corev1.ConditionFalse && c.Reason != machine.ReasonPaused {
			value = 1
		}
		all = append(all, point{value, []string{h.Name, h.Namespace}})
	}
	return highest(all)
}

// checks returns the health checks of both groups (SPEC B61), of which two may have one name.
func checks(s snapshot.Snapshot) []*machine.MachineHealthCheck {
	all := slices.Clone(s.HealthChecks)
	for _, l := range s.LegacyHealthChecks {
		all = append(all, &machine.MachineHealthCheck{ObjectMeta: l.ObjectMeta, Status: l.Status})
	}
	return all
}

// highest leaves of points with the same labels the one with the highest value.
func highest(points []point) []point {
	slices.SortStableFunc(points, func(a, b point) int {
		return cmp.Or(slices.Compare(a.labels, b.labels), cmp.Compare(b.value, a.value))
	})
	return slices.CompactFunc(points, func(a, b point) bool { return slices.Equal(a.labels, b.labels) })
}

// kindUp is a kind under the name that OpenShift's alert knows.
type kindUp struct {
	kind plan.Kind
	name string
}

// up tells of each kind whether everything of it was read.
func up(kinds ...kindUp) func(snapshot.Snapshot) []point {
	return func(s snapshot.Snapshot) []point {
		var all []point
		for _, k := range kinds {
			value := 0.0
			if s.Has(snapshot.All(k.kind)) {
				value = 1
			}
			all = append(all, point{value, []string{k.name}})
		}
		return all
	}
}

// orphans counts the sightings on record; a record that cannot be read tells nothing.
func orphans(s snapshot.Snapshot) []point {
	cm := s.ConfigMap(machine.Namespace, machine.ConfigMapSweep)
	if cm == nil {
		return nil
	}
	state, err := machine.ParseSweepState(cm.Data[machine.SweepKey])
	if err != nil {
		return nil
	}
	return []point{{value: float64(state.Orphans())}}
}

// insecure tells the accounts whose credentials let their cloud not prove who it is; the others are left out.
func insecure(s snapshot.Snapshot) []point {
	var all []point
	for _, key := range slices.Sorted(maps.Keys(s.Accounts)) {
		if s.Accounts[key].Insecure != "" {
			all = append(all, point{1, []string{key}})
		}
	}
	return all
}
