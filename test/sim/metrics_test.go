// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	approvenode "github.com/machine-functions/machine-functions/functions/approve-node"
	deadletter "github.com/machine-functions/machine-functions/functions/dead-letter"
	evaluateautoscale "github.com/machine-functions/machine-functions/functions/evaluate-autoscale"
	"github.com/machine-functions/machine-functions/functions/remediate"
	sweepinstances "github.com/machine-functions/machine-functions/functions/sweep-instances"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/metrics"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// gauged is a world whose functions are measured, each as one process that lasts.
type gauged struct {
	*World
	metrics map[string]*metrics.Metrics
}

func measure(t *testing.T, w *World) gauged {
	t.Helper()
	g := gauged{w, map[string]*metrics.Metrics{}}
	for _, f := range w.Functions {
		m, err := metrics.New(f.Name, w.Now)
		if err != nil {
			t.Fatal(err)
		}
		g.metrics[f.Name] = m
	}
	return g
}

func (g gauged) tick(t *testing.T, n int) {
	t.Helper()
	for range n {
		g.Pass(10 * time.Second)
		if err := g.Kubelets(); err != nil {
			t.Fatal(err)
		}
		for _, f := range g.Functions {
			r := g.Runner(f)
			r.Metrics, r.Clouds.Metrics = g.metrics[f.Name], g.metrics[f.Name]
			_, err := r.Handle(t.Context(), snapshot.Request{})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

// scraped returns the lines of all functions.
func (g gauged) scraped() string {
	var all strings.Builder
	for _, f := range g.Functions {
		w := httptest.NewRecorder()
		g.metrics[f.Name].ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		all.WriteString(w.Body.String())
	}
	return all.String()
}

// undelivered returns what the dead-letter sink tells after an event.
func undelivered() string {
	sink, w := deadletter.New(slog.New(slog.DiscardHandler)), httptest.NewRecorder()
	sink.Handle(w, httptest.NewRequest(http.MethodPost, "/", http.NoBody))
	sink.Handle(w, httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody))
	return w.Body.String()
}

// decided returns what a function tells after the decisions of some of its scenarios, each with what it wrote.
func decided(t *testing.T, f function.Function, scenarios ...string) string {
	t.Helper()
	all := ""
	for _, name := range scenarios {
		s, _, err := scenario.Load("../../functions/" + f.Name + "/testdata/" + name + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		seen, _, err := scenario.Observe(f, s)
		if err != nil {
			t.Fatal(err)
		}
		m, err := metrics.New(f.Name, time.Now)
		if err != nil {
			t.Fatal(err)
		}
		p := f.Decide(seen)
		for _, a := range p.Actions() {
			if u, ok := a.(plan.Update); ok {
				seen.Add(u.New)
			}
		}
		m.Invoked(metrics.Invocation{Seen: seen, Planned: p, Told: notesOf(p)})
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		all += w.Body.String()
	}
	return all
}

// notesOf returns everything that a plan tells.
func notesOf(p plan.Plan) []plan.Note {
	all := slices.Clone(p.Notes)
	for _, seq := range p.Do {
		all = append(all, seq.Notes...)
	}
	return slices.DeleteFunc(all, func(n plan.Note) bool { return n.Object.Kind == "" })
}

func TestMetricsOfScaling(t *testing.T) {
	t.Parallel()
	all := decided(t, evaluateautoscale.Function, "unhealthy-cluster-is-not-scaled", "cores-limit-is-named")
	for _, want := range []string{
		"cluster_autoscaler_cluster_safe_to_autoscale 0\n", "cluster_autoscaler_unschedulable_pods_count 1\n",
		`cluster_autoscaler_skipped_scale_events_count{direction="up",reason="CpuResourceLimit"} 1` + "\n",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("nowhere: %s in\n%s", want, all)
		}
	}
}

// metricName is what can only be the name of a metric, ours or another's.
var metricName = regexp.MustCompile(`\b(?:mapi|machines|kube|cluster_autoscaler)_[a-z_.+]+`)

// alerting returns the names of the metrics that the alerts and the dashboard look at; those of kube-state-metrics are left out.
func alerting(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../config/monitoring/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var rules struct {
		Spec struct {
			Groups []struct {
				Rules []struct{ Alert, Expr string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &rules); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, g := range rules.Spec.Groups {
		for _, r := range g.Rules {
			used := metricName.FindAllString(strings.ReplaceAll(r.Expr, `kind="mapi_`, ""), -1)
			if r.Alert == "" || len(used) == 0 {
				t.Errorf("alert %q looks at no metric: %s", r.Alert, r.Expr)
			}
			for _, name := range used {
				if name = strings.ReplaceAll(name, ".+", "link_node"); name != "kube_node_info" {
					names = append(names, name)
				}
			}
		}
	}
	return append(names, charted(t)...)
}

// charted returns the names of the metrics that the dashboard shows.
func charted(t *testing.T) (names []string) {
	t.Helper()
	text, err := os.ReadFile("../../config/monitoring/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			used := metricName.FindAllString(target.Expr, -1)
			if len(used) == 0 {
				t.Errorf("panel %q shows no metric: %s", panel.Title, target.Expr)
			}
			for _, name := range used {
				names = append(names, strings.ReplaceAll(name, ".+", "link_node"))
			}
		}
	}
	return names
}

// A life with everything that can happen tells every metric of OpenShift, with its labels (SPEC B70).
func TestMetricsOfALife(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	w.Functions = append(w.Functions, remediate.Function, sweepinstances.Function)
	g := measure(t, w)
	refused := true
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		if refused && (c.Op == cloud.OpCreate || c.Op == cloud.OpDelete) && !c.After {
			return provider.Errorf(provider.Throttled, "too many requests: token=hunter2")
		}
		return nil
	}
	check := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "workers"}}
	check.Spec.MaxUnhealthy = new(intstr.FromInt32(1))
	check.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{
		{Type: "Ready", Status: corev1.ConditionFalse, Timeout: metav1.Duration{Duration: time.Minute}},
	}
	if err := w.API.Put(Set("worker", 3), check); err != nil {
		t.Fatal(err)
	}
	g.tick(t, 2) // nothing can be created
	refused = false
	g.tick(t, 20)
	refused = true
	first := memory.List[*machine.Machine](w.API)[0]
	if err := w.API.Remove("Machine", first.Namespace, first.Name, memory.Background); err != nil {
		t.Fatal(err)
	}
	g.tick(t, 2) // nor deleted
	deleteFailed := g.scraped()
	refused = false
	g.tick(t, 20)
	for _, i := range w.Cloud.Instances()[:1] {
		w.Cloud.Vanish(i.ID)
	}
	g.tick(t, 10)
	updateFailed := g.scraped()
	w.Cloud.Add(w.Cloud.History()[0].Account, "sim", provider.Instance{Name: "lost", UID: "nobody", Child: true})
	sick := memory.List[*corev1.Node](w.API)[0]
	if err := memory.Patch(w.API, "", sick.Name, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }); err != nil {
		t.Fatal(err)
	}
	g.tick(t, 30)
	all := g.scraped() + deleteFailed + updateFailed
	const in = `namespace="openshift-machine-api"`
	for _, want := range []string{
		"mapi_machine_items 3\n",
		`mapi_machine_created_timestamp_seconds{api_version="machine.openshift.io/v1beta1",name="worker-`, `,node="worker-`, `,phase="Running",spec_provider_id="`,
		"mapi_machineset_items 1\n",
		`mapi_machineset_created_timestamp_seconds{api_version="machine.openshift.io/v1beta1",name="worker",` + in + "} ",
		`mapi_machine_set_status_replicas{name="worker",` + in + "} 3\n",
		`mapi_machine_set_status_replicas_ready{name="worker",` + in + "} 3\n",
		`mapi_machine_set_status_replicas_available{name="worker",` + in + "} 3\n",
		`mapi_mao_collector_up{kind="mapi_machine_items"} 1`, `mapi_mao_collector_up{kind="mapi_machineset_items"} 1`,
		`mapi_instance_create_failed{name="worker-`, `mapi_instance_update_failed{name="worker-`, `mapi_instance_delete_failed{name="` + first.Name,
		`reason="Throttled"}`,
		`mapi_machine_phase_transition_seconds_bucket{phase="Provisioned",le="600"} `, `mapi_machine_phase_transition_seconds_count{phase="Running"} `,
		`mapi_machinehealthcheck_nodes_covered{name="workers",` + in + "} 3\n",
		`mapi_machinehealthcheck_remediation_success_total{name="workers",` + in + "} ",
		`mapi_machinehealthcheck_short_circuit{name="workers",` + in + "} 0\n",
		`machines_provision_machine_cloud_calls_total{code="OK",op="create"} `, `machines_provision_machine_actions_total{action="create_instance",result="refused"} `,
		`machines_sweep_instances_events_total{reason="OrphanedInstance",type="Warning"} `, "machines_sweep_instances_orphans 0\n",
	} {
		if !strings.Contains(all, want) {
			t.Errorf("nowhere: %s", want)
		}
	}
	told := all + decided(t, evaluateautoscale.Function, "unhealthy-cluster-is-not-scaled", "cores-limit-is-named") +
		decided(t, approvenode.Function, "two-machines-of-that-name") + decided(t, sweepinstances.Function, "insecure-account") + undelivered()
	for _, name := range alerting(t) {
		if !strings.Contains(told, "\n"+name+"{") && !strings.Contains(told, "\n"+name+" ") {
			t.Errorf("config/monitoring looks at %s, which nobody tells", name)
		}
	}
	for _, never := range []string{`phase_transition_seconds_count{phase="Deleting"}`, "hunter2"} {
		if strings.Contains(all, never) {
			t.Errorf("told: %s", never)
		}
	}
}
