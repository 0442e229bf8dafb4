// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/metrics"
	"github.com/machine-functions/machine-functions/shared/runner"
)

// post asks over HTTP, as Knative delivers it.
func post(t *testing.T, w *world, question string) *httptest.ResponseRecorder {
	t.Helper()
	m, err := metrics.New(Function.Name, func() time.Time { return w.now })
	if err != nil {
		t.Fatal(err)
	}
	s := runner.NewServer(&runner.Runner{Function: Function, Cluster: w.As(Function.Name), Log: slog.New(slog.DiscardHandler), Metrics: m}, []string{machine.Namespace})
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(question))
	for k, v := range map[string]string{"Ce-Id": "1", "Ce-Source": "/test", "Ce-Specversion": "1.0", "Ce-Type": "machine.autoscale.simulate", "Content-Type": "application/json"} {
		r.Header.Set(k, v)
	}
	answer := httptest.NewRecorder()
	s.Handle(answer, r)
	return answer
}

// What would be, if (SPEC W1, D43): more Pods, another set, other limits and prices. The answer has plan, cost and
// distance from the bound, and nothing is written, whatever is asked.
func TestSimulateAnswersAndNeverActs(t *testing.T) {
	t.Parallel()
	const pods = `"pods": [{"count": 6, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1900m", "memory": "1Gi"}}}]}}]`
	group := func(name string) string { return "MachineSet/openshift-machine-api/" + name }
	for _, tt := range []struct {
		name, question string
		want           Reply
		why            string
	}{
		{
			"nothing is different", `{}`,
			Reply{Resize: []Growth{}, Pods: Counts{}, CostUnit: "size"}, "",
		},
		{
			"six pods", `{` + pods + `, "prices": {"worker": 0.2}}`,
			Reply{
				Resize: []Growth{{group("worker"), 2, 4, 4, 0.2}}, Pods: Counts{Waiting: 6, Helped: 4, Unplaced: 2}, Cost: 0.4, Bound: 0.4, CostUnit: "price per hour",
			}, "1 max node group size reached (worker: 4 of 4)",
		},
		{
			"six pods and a cheaper set", `{` + pods + `, "prices": {"worker": 0.2, "large": 0.5}, "machineSets": [{"name": "large", "maxReplicas": 3, "cpu": "12", "memory": "32Gi"}]}`,
			Reply{
				Resize: []Growth{{group("large"), 0, 1, 3, 0.5}}, Pods: Counts{Waiting: 6, Helped: 6}, Cost: 0.5, Bound: 0.5, CostUnit: "price per hour",
			}, "",
		},
		{
			"a limit of three nodes", `{` + pods + `, "limits": {"maxNodesTotal": 3}}`,
			Reply{
				Resize: []Growth{{group("worker"), 2, 3, 4, 6048}}, Pods: Counts{Waiting: 6, Helped: 2, Unplaced: 4}, Cost: 6048, Bound: 6048, CostUnit: "size",
			}, "1 max total nodes in cluster reached (worker: 3 of 3)",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, epoch)
			w.load(t, "small.yaml")
			answer := post(t, w, tt.question)
			if answer.Code != http.StatusOK || answer.Header().Get("Ce-Type") != "machine.autoscale.simulated" {
				t.Fatalf("status %d, %v: %s", answer.Code, answer.Header(), answer.Body)
			}
			var got Reply
			if err := json.Unmarshal(answer.Body.Bytes(), &got); err != nil {
				t.Fatal(err)
			}
			if len(tt.want.Resize) > 0 && !strings.Contains(got.Plan, "spec.replicas") {
				t.Errorf("plan %q", got.Plan)
			}
			why := ""
			if len(got.Unplaced) > 0 {
				why = got.Unplaced[0].Why
			}
			if why != tt.why {
				t.Errorf("why %q, want %q", why, tt.why)
			}
			got.Plan, got.Unplaced, got.At = "", nil, tt.want.At
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("answer (-want +got):\n%s", diff)
			}
			if writes := w.ours(); len(writes) > 0 {
				t.Errorf("a question wrote: %v", writes)
			}
		})
	}
}

// A question that makes no sense goes to the dead-letter sink, not around in circles.
func TestSimulateRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, question := range []string{
		``, `[]`, `{"apply": true}`, `{"pods": [{"count": 0}]}`, `{"pods": [{"count": 100001}]}`, `{"machineSets": [{"name": "x"}]}`,
		`{"expanders": ["MostPods"]}`, `{"limits": {"cores": {"min": 5, "max": 1}}}`, `{"prices": {"worker": -1}}`,
	} {
		w := newWorld(t, epoch)
		w.load(t, "small.yaml")
		if answer := post(t, w, question); answer.Code != http.StatusBadRequest || len(w.ours()) > 0 {
			t.Errorf("%s: status %d, writes %v", question, answer.Code, w.ours())
		}
	}
}
