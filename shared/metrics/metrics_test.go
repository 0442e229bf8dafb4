// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// clock is a time that tests move.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func measured(t *testing.T, function string) (*Metrics, *clock) {
	t.Helper()
	c := &clock{start}
	m, err := New(function, c.Now)
	if err != nil {
		t.Fatal(err)
	}
	return m, c
}

func scrape(t *testing.T, m *Metrics) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != contentType {
		t.Fatalf("%d %s: %s", w.Code, w.Header(), w.Body)
	}
	return w.Body.String()
}

// parsed is what Prometheus' own parser makes of a scrape.
func parsed(t *testing.T, m *Metrics) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(scrape(t, m)))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// series returns the lines of one metric.
func series(t *testing.T, m *Metrics, name string) string {
	t.Helper()
	var lines strings.Builder
	for line := range strings.Lines(scrape(t, m)) {
		if strings.HasPrefix(line, name+" ") || strings.HasPrefix(line, name+"{") {
			lines.WriteString(line)
		}
	}
	return lines.String()
}

func want(t *testing.T, m *Metrics, name string, lines ...string) {
	t.Helper()
	text := ""
	for _, line := range lines {
		text += name + line + "\n"
	}
	if diff := cmp.Diff(text, series(t, m, name)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func running(name string) *machine.Machine {
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: machine.Namespace, Name: name, UID: types.UID(name + "-uid"), CreationTimestamp: metav1.NewTime(start),
	}}
	m.Status.Phase = new(machine.PhaseRunning)
	m.Status.NodeRef = &corev1.ObjectReference{Name: "node-" + name}
	m.Spec.ProviderID = new("cloud://" + name)
	return m
}

func scan(of plan.Kind, objects ...plan.Object) Invocation {
	s := snapshot.Snapshot{}
	s.Add(objects...)
	return Invocation{Seen: s.Answered(snapshot.All(of)), Rounds: 1, Duration: 30 * time.Millisecond}
}

// What is served is what Prometheus reads: types, buckets that add up, values with every character that has a meaning.
func TestPrometheusReadsIt(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, provisions)
	odd := running("a")
	odd.Spec.ProviderID = new("x\\y\"z\n{a=\"b\"} 1")
	m.Invoked(scan("Machine", odd, running("b")))
	m.Invoked(Invocation{Duration: 3 * time.Second, Rounds: 9})
	families := parsed(t, m)
	created := families["mapi_machine_created_timestamp_seconds"]
	if created.GetType() != dto.MetricType_GAUGE || len(created.GetMetric()) != 2 || created.GetMetric()[0].GetGauge().GetValue() != float64(start.Unix()) {
		t.Fatalf("%v", created)
	}
	got := map[string]string{}
	for _, l := range created.GetMetric()[0].GetLabel() {
		got[l.GetName()] = l.GetValue()
	}
	if diff := cmp.Diff(map[string]string{
		"name": "a", "namespace": machine.Namespace, "spec_provider_id": *odd.Spec.ProviderID, "node": "node-a",
		"api_version": "machine.openshift.io/v1beta1", "phase": "Running",
	}, got); diff != "" {
		t.Errorf("labels (-want +got)\n%s", diff)
	}
	duration := families["machines_provision_machine_invocation_duration_seconds"].GetMetric()[0].GetHistogram()
	if n := len(duration.GetBucket()); duration.GetSampleCount() != 2 || duration.GetSampleSum() != 3.03 || n != len(secondsOfInvocation)+1 ||
		duration.GetBucket()[n-1].GetCumulativeCount() != 2 || duration.GetBucket()[3].GetCumulativeCount() != 1 {
		t.Errorf("%v", duration)
	}
	if c := families["machines_provision_machine_invocations_total"]; c.GetType() != dto.MetricType_COUNTER || c.GetHelp() == "" {
		t.Errorf("%v", c)
	}
}

// Only the function whose scan reads all of a kind tells how many there are, and only for as long as it looks.
func TestGaugesAreThoseOfTheLastScan(t *testing.T) {
	t.Parallel()
	m, now := measured(t, provisions)
	other, _ := measured(t, "link-node")
	for _, each := range []*Metrics{m, other} {
		each.Invoked(scan("Machine", running("a"), running("b")))
	}
	want(t, m, "mapi_machine_items", " 2")
	want(t, other, "mapi_machine_items")
	m.Invoked(Invocation{Seen: snapshot.Snapshot{Request: snapshot.Request{Kind: "Machine", Name: "a"}}})
	want(t, m, "mapi_machine_items", " 2")
	now.now = now.now.Add(10 * time.Second)
	m.Invoked(Invocation{}) // a scan that could not list
	want(t, m, "mapi_machine_items", " 2")
	want(t, m, "mapi_mao_collector_up", `{kind="mapi_machine_items"} 0`)
	now.now = now.now.Add(scanned)
	want(t, m, "mapi_machine_items")
	want(t, m, "mapi_mao_collector_up", `{kind="mapi_machine_items"} 0`)
	now.now = now.now.Add(time.Second)
	want(t, m, "mapi_mao_collector_up")
}

func TestActionsAndResults(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, provisions)
	a, b := running("a"), running("b")
	actions := []plan.Action{plan.Delete{Object: a}, plan.Create{Object: b}, plan.Evict{Pod: &corev1.Pod{}}}
	i := scan("Machine")
	i.Planned.Then(actions...)
	i.Outcomes = map[plan.Key]plan.Outcome{actions[0].Key(): {}, actions[1].Key(): {Result: plan.Exists}}
	m.Invoked(i)
	i.Err = fmt.Errorf("etcd is gone")
	m.Invoked(i)
	m.Invoked(scan("Machine"))
	m.Panicked()
	m.Coalesced()
	m.Called("create", nil)
	m.Called("create", provider.Errorf(provider.Exhausted, "no network named x"))
	const own = "machines_provision_machine_"
	want(t, m, own+"actions_total", `{action="create",result="exists"} 2`, `{action="delete",result="done"} 2`, `{action="evict",result="untried"} 2`)
	want(t, m, own+"invocations_total", `{result="acted"} 1`, `{result="panicked"} 1`, `{result="quiet"} 1`, `{result="repeated"} 1`)
	want(t, m, own+"requests_coalesced_total", ` 1`)
	want(t, m, own+"cloud_calls_total", `{code="Exhausted",op="create"} 1`, `{code="OK",op="create"} 1`)
}

func TestPhaseTransitions(t *testing.T) {
	t.Parallel()
	for _, f := range []string{provisions, links} {
		phaseTransitions(t, f)
	}
}

func phaseTransitions(t *testing.T, function string) {
	t.Helper()
	m, _ := measured(t, function)
	into := func(from, to string, age time.Duration, result plan.Result) {
		before, after := running("a"), running("a")
		before.Status.Phase, after.Status.Phase = &from, &to
		after.Status.LastUpdated = new(metav1.NewTime(start.Add(age)))
		a := plan.UpdateStatus{Old: before, New: after}
		i := scan("Machine")
		i.Planned.Then(a)
		i.Outcomes = map[plan.Key]plan.Outcome{a.Key(): {Result: result}}
		m.Invoked(i)
	}
	into(machine.PhaseProvisioned, machine.PhaseRunning, 45*time.Second, plan.Done)
	into(machine.PhaseProvisioned, machine.PhaseRunning, 45*time.Second, plan.Conflict) // it will be decided anew
	into(machine.PhaseRunning, machine.PhaseRunning, time.Hour, plan.Done)
	into(machine.PhaseRunning, machine.PhaseDeleting, time.Hour, plan.Done)
	h := parsed(t, m)["mapi_machine_phase_transition_seconds"].GetMetric()
	if len(h) != 1 || h[0].GetHistogram().GetSampleCount() != 1 || h[0].GetHistogram().GetSampleSum() != 45 || h[0].GetLabel()[0].GetValue() != "Running" {
		t.Errorf("%v", h)
	}
}

// What the cloud said may hold anything; only its class becomes a label.
func TestFailuresByReason(t *testing.T) {
	t.Parallel()
	m, now := measured(t, provisions)
	refused, unreachable, recorded, unknown := running("a"), running("b"), running("c"), running("d")
	metav1.SetMetaDataAnnotation(&recorded.ObjectMeta, machine.AnnotationIntent,
		`{"schema":1,"attempt":1,"token":"`+machine.Token(recorded.UID, 1, "x")+`","account":"x","startedAt":"2026-01-01T00:00:00Z","outcome":"refused","code":"Denied"}`)
	i := scan("Machine", refused, unreachable, recorded, unknown)
	create := plan.CreateInstance{Ref: provider.Ref{UID: refused.UID, Token: "t"}}
	i.Outcomes = map[plan.Key]plan.Outcome{create.Key(): {Result: plan.Refused, Code: provider.Exhausted, Message: "password=hunter2"}}
	i.Seen.Clouds = map[types.UID]snapshot.Cloud{unreachable.UID: {Err: &snapshot.Refusal{Code: provider.Throttled}}}
	i.Planned.Add(plan.Sequence{Do: []plan.Action{create}, Notes: []plan.Note{plan.Warning(refused, "FailedCreate", "password=hunter2")}})
	i.Planned.Notes = []plan.Note{
		plan.Warning(refused, "FailedCreate", "password=hunter2"), // told in two rounds of one invocation
		plan.Warning(unreachable, "FailedDelete", "hunter2"), plan.Warning(recorded, "FailedUpdate", "hunter2"),
		plan.Warning(unknown, "FailedUpdate", "hunter2"), plan.Log("a line"),
		plan.Warning(&machine.MachineSet{}, "FailedUpdate", "capacity is unknown"),
	}
	i.Told = i.Planned.Notes[:2] // the rest were told a moment ago
	m.Invoked(i)
	in := `namespace="` + machine.Namespace + `",`
	want(t, m, "mapi_instance_create_failed", `{name="a",`+in+`reason="Exhausted"} 1`)
	want(t, m, "mapi_instance_delete_failed", `{name="b",`+in+`reason="Throttled"} 1`)
	want(t, m, "mapi_instance_update_failed", `{name="c",`+in+`reason="Denied"} 1`, `{name="d",`+in+`reason="Unknown"} 1`)
	want(t, m, "machines_provision_machine_events_total",
		`{reason="FailedCreate",type="Warning"} 1`, `{reason="FailedDelete",type="Warning"} 1`)
	if text := scrape(t, m); strings.Contains(text, "hunter2") {
		t.Errorf("a secret is told:\n%s", text)
	}
	m.Invoked(scan("Machine", unreachable))
	want(t, m, "mapi_instance_create_failed", `{name="a",`+in+`reason="Exhausted"} 1`)
	now.now = now.now.Add(mourned + time.Second)
	m.Invoked(scan("Machine", unreachable))
	want(t, m, "mapi_instance_create_failed") // the Machine is gone
	want(t, m, "mapi_instance_delete_failed", `{name="b",`+in+`reason="Throttled"} 1`)
}

// That a cloud refuses thousands at once costs a look at each.
func TestManyFailuresAreToldAtOnce(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, provisions)
	i := Invocation{Outcomes: map[plan.Key]plan.Outcome{}}
	for k := range 5000 {
		o := running(fmt.Sprint("m-", k))
		i.Planned.Notes = append(i.Planned.Notes, plan.Warning(o, "FailedCreate", "no"))
		i.Outcomes[plan.CreateInstance{Ref: provider.Ref{UID: o.UID, Token: "t"}}.Key()] = plan.Outcome{Result: plan.Refused, Code: provider.Exhausted}
	}
	took := time.Hour
	for try := 0; try < 5 && took > time.Second; try++ { // other programs hold up one, not all
		begin := time.Now()
		m.Invoked(i)
		took = time.Since(begin)
	}
	if took > time.Second {
		t.Errorf("it took %v", took)
	}
	if got := series(t, m, "mapi_instance_create_failed"); strings.Count(got, `reason="Exhausted"`) != maxFailures+1 {
		t.Error("not everybody has the code of the answer")
	}
}

func TestFailuresAreBounded(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, provisions)
	for k := range maxFailures + 10 {
		i := Invocation{}
		i.Planned.Notes = []plan.Note{plan.Warning(running(fmt.Sprint("m-", k)), "FailedCreate", "no")}
		m.Invoked(i)
	}
	if lines := strings.Count(series(t, m, "mapi_instance_create_failed"), "\n"); lines != maxFailures+1 {
		t.Errorf("%d series", lines)
	}
	if got := series(t, m, "mapi_instance_create_failed"); !strings.Contains(got, `{name="",namespace="",reason="Unknown"} 10`) {
		t.Error("what is beyond the bound is not counted")
	}
}

// inFlight is what a check remembers of Machine a, which it remediates.
const inFlight = `{"schema":1,"inFlight":[{"machine":"a","uid":"a-uid"}]}`

// remediated has an invocation measured that saw these checks and deleted Machine a.
func remediated(m *Metrics, checks ...plan.Object) {
	sick := running("a")
	a := plan.Delete{Object: sick}
	i := scan("MachineHealthCheck", append(checks, sick)...)
	i.Planned.Then(a)
	i.Outcomes = map[plan.Key]plan.Outcome{a.Key(): {}}
	m.Invoked(i)
}

func TestHealthChecks(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, remediates)
	h := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "workers"}}
	metav1.SetMetaDataAnnotation(&h.ObjectMeta, machine.AnnotationInFlight, inFlight)
	h.Status.ExpectedMachines = new(3)
	h.Status.Conditions = []machine.Condition{{Type: "RemediationAllowed", Status: corev1.ConditionFalse}}
	idle := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "idle"}}
	idle.Status.Conditions = []machine.Condition{{Type: "RemediationAllowed", Status: corev1.ConditionFalse, Reason: machine.ReasonPaused}}
	remediated(m, h, idle)
	in := `",namespace="` + machine.Namespace + `"}`
	want(t, m, "mapi_machinehealthcheck_nodes_covered", `{name="workers`+in+` 3`)
	want(t, m, "mapi_machinehealthcheck_short_circuit", `{name="idle`+in+` 0`, `{name="workers`+in+` 1`)
	want(t, m, "mapi_machinehealthcheck_remediation_success_total", `{name="workers`+in+` 1`)
}

// A check of before stops remediating as one of today does, and is told as one; of two with one name the one that is stopped is (SPEC B61).
func TestHealthChecksOfBefore(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, remediates)
	old := &machine.LegacyHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "old"}}
	metav1.SetMetaDataAnnotation(&old.ObjectMeta, machine.AnnotationInFlight, inFlight)
	old.Status.ExpectedMachines = new(3)
	old.Status.Conditions = []machine.Condition{{Type: "RemediationAllowed", Status: corev1.ConditionFalse}}
	both := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "both"}}
	both.Status = *old.Status.DeepCopy()
	same := &machine.LegacyHealthCheck{ObjectMeta: both.ObjectMeta}
	same.Status.ExpectedMachines = new(2)
	remediated(m, old, both, same)
	in := `",namespace="` + machine.Namespace + `"}`
	want(t, m, "mapi_machinehealthcheck_nodes_covered", `{name="both`+in+` 3`, `{name="old`+in+` 3`)
	want(t, m, "mapi_machinehealthcheck_short_circuit", `{name="both`+in+` 1`, `{name="old`+in+` 1`)
	want(t, m, "mapi_machinehealthcheck_remediation_success_total", `{name="old`+in+` 1`)
}

// Where the checks of before cannot be read, those of today are told, and that of the others nobody knows.
func TestHealthChecksOfBeforeThatCannotBeRead(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, remediates)
	h := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "workers"}}
	h.Status.ExpectedMachines = new(3)
	m.Invoked(scan("MachineHealthCheck", h))
	want(t, m, "mapi_machinehealthcheck_nodes_covered", `{name="workers",namespace="`+machine.Namespace+`"} 3`)
	want(t, m, "mapi_mao_collector_up", `{kind="mapi_legacymachinehealthcheck_items"} 0`, `{kind="mapi_machinehealthcheck_items"} 1`)
}

// A Node that outlived its Machine is remembered beside the instances without an owner, and is none; neither is what carries
// no Machine's tag (RELIABILITY 2b.10).
func TestOrphansAreInstances(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, sweeps)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapSweep}}
	cm.Data = map[string]string{machine.SweepKey: machine.SweepState{Schema: 1, Sightings: map[string]metav1.Time{
		machine.SightingKey("nova", "i-1"): {}, machine.SightingKey("nova", "i-2"): {}, machine.SightingKey(machine.SweptNodes, "worker/n-1"): {},
		machine.ForeignKey("nova", "i-3"): {},
	}}.String()}
	m.Invoked(scan("Machine", cm))
	want(t, m, "machines_sweep_instances_orphans", ` 2`)
}

// Only accounts whose cloud need not prove who it is are told, by their keys, which hold no secret (RELIABILITY 4).
func TestInsecureAccountsAreTold(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, sweeps)
	i := scan("Machine")
	i.Seen.Accounts = map[string]snapshot.Account{"nova/a/n/s": {Insecure: "key clouds.yaml: verify is false"}, "nova/b/n/s": {}}
	m.Invoked(i)
	want(t, m, "machines_sweep_instances_insecure_account", `{account="nova/a/n/s"} 1`)
}

// What the autoscaler is up to can be read from the objects alone, under upstream's names (SPEC C79).
func TestScalingIsMeasured(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, autoscales)
	set := &machine.MachineSet{}
	set.Namespace, set.Name, set.Spec.Replicas = machine.Namespace, "worker", new(int32(2))
	set.Annotations = map[string]string{
		machine.AnnotationAutoscaler: "x/worker", machine.AnnotationMinSize: "1", machine.AnnotationMaxSize: "4", machine.AnnotationBackoff: "until later: timed out",
	}
	ca := &autoscaling.ClusterAutoscaler{}
	ca.Name = autoscaling.Name
	ca.Spec.ResourceLimits = &autoscaling.ResourceLimits{MaxNodesTotal: new(int32(12)), Cores: &autoscaling.Range{Min: 20, Max: 48}}
	state := autoscaling.State{Schema: 1, LastScaleUp: new(metav1.NewTime(start)), Unneeded: map[types.UID]metav1.Time{"a": {}}, Removals: []autoscaling.Removal{{Node: "a"}, {Node: "b"}}}
	cm := &corev1.ConfigMap{Data: map[string]string{autoscaling.StateKey: state.String(), autoscaling.StatusKey: `
nodeGroups: [{name: MachineSet/openshift-machine-api/worker, health: {status: Unhealthy}}, {name: other, health: {status: Healthy}}]`}}
	cm.Namespace, cm.Name = machine.Namespace, machine.ConfigMapStatus
	n := &corev1.Node{}
	n.Name, n.Annotations = "a", map[string]string{machine.AnnotationScaleDownReason: "NotUnderutilized: cpu above 0.60, threshold 0.5"}
	n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3500m"), corev1.ResourceMemory: resource.MustParse("1Ki")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	i := scan("Node", set, ca, cm, n)
	i.Seen = i.Seen.Answered(snapshot.All("MachineSet"))
	grown := set.DeepCopy()
	grown.Spec.Replicas = new(int32(4))
	grown.Annotations[machine.CapacityGPUCount] = "2"
	a := plan.Update{Old: set, New: grown}
	i.Planned.Then(a)
	i.Planned.Notes = append(i.Planned.Notes, plan.Warning(cm, "ScaleUpTimedOut", "late"), plan.Normal(cm, "DeleteUnregistered", "gone"))
	i.Outcomes = map[plan.Key]plan.Outcome{a.Key(): {}}
	m.Invoked(i)
	const group = `{node_group="MachineSet/openshift-machine-api/worker"} `
	for name, lines := range map[string][]string{
		"nodes_count":               {`{state="notStarted"} 0`, `{state="ready"} 1`, `{state="unready"} 0`, `{state="unregistered"} 0`},
		"node_groups_count":         {`{node_group_type="autoscaled"} 1`},
		"max_nodes_count":           {` 12`},
		"cluster_cpu_current_cores": {` 4`}, "cpu_limits_cores": {`{direction="maximum"} 48`, `{direction="minimum"} 20`},
		"cluster_memory_current_bytes": {` 1024`}, "node_group_min_count": {group + "1"}, "node_group_max_count": {group + "4"},
		"node_group_target_count": {group + "2"}, "node_group_backoff_status": {group + "1"}, "unneeded_nodes_count": {` 1`},
		"unremovable_nodes_count": {`{reason="NotUnderutilized"} 1`}, "pending_node_deletions": {` 2`}, "scale_down_in_cooldown": {` 1`},
		"node_group_healthiness": {group + "0", `{node_group="other"} 1`}, "scaled_up_gpu_nodes_total": {` 2`},
		"scaled_up_nodes_total": {` 2`}, "failed_scale_ups_total": {`{reason="timeout"} 1`}, "old_unregistered_nodes_removed_count": {` 1`},
	} {
		want(t, m, "cluster_autoscaler_"+name, lines...)
	}
}

// Where nothing may scale, nobody knows whether sets and cluster are well enough to: that is not told, as if it were known (SPEC C77, C79).
func TestHealthIsNotToldWhileNothingIsScaled(t *testing.T) {
	t.Parallel()
	for text, tells := range map[string]bool{
		"clusterWide: {health: {status: Healthy}}\nnodeGroups: [{name: a, health: {status: Healthy}}]\n": true,
		"time: \"2026-01-01T12:00:00Z\"\nautoscalerStatus: Stopped\nmessage: \"there is none\"\n":        false,
	} {
		m, _ := measured(t, autoscales)
		cm := &corev1.ConfigMap{Data: map[string]string{autoscaling.StatusKey: text}}
		cm.Namespace, cm.Name = machine.Namespace, machine.ConfigMapStatus
		i := scan("Pod", cm)
		i.Seen = i.Seen.Answered(snapshot.All("MachineSet"))
		m.Invoked(i)
		var cluster, group []string
		if tells {
			cluster, group = []string{" 1"}, []string{`{node_group="a"} 1`}
		}
		want(t, m, "cluster_autoscaler_cluster_safe_to_autoscale", cluster...)
		want(t, m, "cluster_autoscaler_node_group_healthiness", group...)
	}
}

// A write of the state says once what became of Machines that bring no Node, and of removals that are over (SPEC C79).
func TestWhatTheStateRemembersIsMeasured(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, autoscales)
	const group = "MachineSet/openshift-machine-api/worker"
	before := autoscaling.State{Schema: 1, Groups: map[string]autoscaling.NodeGroup{group: {FailedUIDs: []types.UID{"known"}}}}
	for _, name := range []string{"gone", "kept", "going"} {
		before.Removals = append(before.Removals, autoscaling.Removal{Node: name, NodeUID: types.UID(name), At: metav1.NewTime(start.Add(-time.Minute))})
	}
	after := before
	after.Groups = map[string]autoscaling.NodeGroup{
		group:                                    {LastFailure: new(metav1.NewTime(start)), FailedUIDs: []types.UID{"broken", "known", "late", "later"}},
		"MachineSet/openshift-machine-api/fixed": {FailedUIDs: []types.UID{"stranger"}}, // that is late in a set that is not resized: nobody scaled up
	}
	after.Removals = before.Removals[2:]
	written := func(s autoscaling.State) *corev1.ConfigMap {
		cm := &corev1.ConfigMap{Data: map[string]string{autoscaling.StateKey: s.String()}}
		cm.Namespace, cm.Name = machine.Namespace, machine.ConfigMapStatus
		return cm
	}
	broken := running("broken")
	broken.UID, broken.Status.Phase = "broken", new(machine.PhaseFailed)
	kept := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "kept", UID: "kept"}}
	i := scan("Node", broken, kept)
	i.Seen.Now = start
	a := plan.Update{Old: written(before), New: written(after)}
	i.Planned.Then(a)
	i.Outcomes = map[plan.Key]plan.Outcome{a.Key(): {Result: plan.Conflict}}
	m.Invoked(i) // somebody else wrote it
	i.Outcomes = map[plan.Key]plan.Outcome{a.Key(): {}}
	m.Invoked(i)
	want(t, m, "cluster_autoscaler_failed_node_creations_total", `{reason="other"} 1`, `{reason="timeout"} 2`)
	want(t, m, "cluster_autoscaler_node_removal_latency_seconds_sum", `{deleted="false"} 60`, `{deleted="true"} 60`)
	want(t, m, "cluster_autoscaler_node_removal_latency_seconds_count", `{deleted="false"} 1`, `{deleted="true"} 1`)
}

// However many Pods and groups a limit concerns, a scan hits it once.
func TestLimitsThatStopGrowth(t *testing.T) {
	t.Parallel()
	m, _ := measured(t, autoscales)
	const quota = `exceeded quota: "cluster-wide", resources: `
	i := Invocation{}
	for k, why := range []string{"2 " + quota + "cpu, memory, 1 max node group size reached", "1 " + quota + "cpu", "3 Insufficient memory"} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("p", k)}}
		i.Planned.Notes = append(i.Planned.Notes, plan.Normal(p, "NotTriggerScaleUp", "pod didn't trigger scale-up: "+why))
	}
	m.Invoked(i)
	want(t, m, "cluster_autoscaler_skipped_scale_events_count",
		`{direction="up",reason="CpuResourceLimit"} 1`, `{direction="up",reason="MemoryResourceLimit"} 1`)
}

func TestNoMetrics(t *testing.T) {
	t.Parallel()
	var none *Metrics
	none.Invoked(Invocation{})
	none.Panicked()
	none.Coalesced()
	none.Called("create", nil)
	w := httptest.NewRecorder()
	none.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusNotFound {
		t.Errorf("%d", w.Code)
	}
}

func BenchmarkScrape(b *testing.B) {
	m, err := New(provisions, func() time.Time { return start })
	if err != nil {
		b.Fatal(err)
	}
	i := scan("Machine")
	for k := range 5000 {
		i.Seen.Add(running(fmt.Sprintf("m-%05d", k)))
	}
	b.Run("scan/machines=5000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m.Invoked(i)
		}
	})
	b.Run("scrape/machines=5000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			w := httptest.NewRecorder()
			m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
			b.SetBytes(int64(w.Body.Len()))
		}
	})
}
