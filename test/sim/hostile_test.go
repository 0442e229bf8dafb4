// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	evaluateautoscale "github.com/machine-functions/machine-functions/functions/evaluate-autoscale"
	"github.com/machine-functions/machine-functions/functions/remediate"
	sweepinstances "github.com/machine-functions/machine-functions/functions/sweep-instances"
	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/runner"
)

// A hundred thousand events that nobody who may send them sent: about what is there, as if it were gone or changed, about
// what never was, questions, and about nothing that makes sense. No Machine, Node or instance goes, and nothing is written at all
// (R-S6: an event is a hint), though idle Nodes only wait for the day after which the autoscaler takes them.
func TestForgedEventsDoNothing(t *testing.T) {
	t.Parallel()
	n := 100_000
	if testing.Short() {
		n = 3_000
	}
	w := machineLayer()
	w.Functions = append(w.Functions, remediate.Function, sweepinstances.Function, evaluateautoscale.Function)
	if err := w.API.Put(append((&Play{}).autoscaling(), Set(setName, 3), check("100%", nil))...); err != nil {
		t.Fatal(err)
	}
	if err := memory.Patch(w.API, "", autoscaling.Name, func(ca *autoscaling.ClusterAutoscaler) { ca.Spec.ScaleDown.UnneededTime = new("24h") }); err != nil {
		t.Fatal(err)
	}
	settle(t, w, 40)
	machines := memory.List[*machine.Machine](w.API)
	if len(machines) != 3 || machines[0].Status.NodeRef == nil {
		t.Fatalf("the world is not settled: %d Machines", len(machines))
	}
	writes, calls := len(w.API.Writes()), len(w.Cloud.History())
	servers := make([]*runner.Server, len(w.Functions))
	for i, f := range w.Functions {
		servers[i] = runner.NewServer(w.Runner(f), []string{machine.Namespace})
	}
	r := rand.New(rand.NewPCG(1, 2))
	codes, structured := map[int]int{}, 0
	for i := range n {
		answer, event := httptest.NewRecorder(), forge(r, machines)
		servers[i%len(servers)].Handle(answer, event.WithContext(t.Context()))
		codes[answer.Code]++
		if event.Header.Get("Ce-Id") == "" && answer.Code == http.StatusAccepted {
			structured++
		}
		if answer.Code == http.StatusInternalServerError {
			t.Fatalf("a panic after %d events", i)
		}
	}
	if wrote := w.API.Writes()[writes:]; len(wrote) > 0 || len(w.Cloud.History()) != calls {
		t.Errorf("%d writes, %d changes in the cloud: %v", len(wrote), len(w.Cloud.History())-calls, wrote[:min(5, len(wrote))])
	}
	if codes[http.StatusAccepted] < n/10 || codes[http.StatusBadRequest] < n/10 || codes[http.StatusOK] < n/1000 || structured < n/100 {
		t.Errorf("the events are too much alike: %v, %d structured ones taken", codes, structured)
	}
	t.Logf("%d events: %v, %d structured ones taken", n, codes, structured)
	w.Pass(24 * time.Hour)
	settle(t, w, 60)
	if left := memory.List[*machine.Machine](w.API); len(left) != 1 {
		t.Errorf("%d Machines are left a day later, want the least: no Node was idle", len(left))
	}
}

// forge returns an event as anybody could make one who reaches a function.
func forge(r *rand.Rand, machines []*machine.Machine) *http.Request {
	m := machines[r.IntN(len(machines))]
	pick := func(words ...string) string { return words[r.IntN(len(words))] }
	body := pick("", "{}", `{"kind":"Machine","status":{"phase":"Deleting"}}`, strings.Repeat("x", 2000), `[[[[[[`,
		`{"pods": [{"count": 9, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}]}`)
	request := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	kind := pick("Machine", "Machine", "Node", "MachineSet", "MachineHealthCheck", "MachineAutoscaler", "ClusterAutoscaler", "Secret", "machine/../secrets")
	version := cmp.Or(map[string]string{"Node": "v1", "MachineAutoscaler": "autoscaling.openshift.io/v1beta1", "ClusterAutoscaler": "autoscaling.openshift.io/v1"}[kind], "machine.openshift.io/v1beta1")
	for name, value := range map[string]string{
		"Ce-Specversion": pick("1.0", "1.0", "1.0", "0.3", ""), "Ce-Id": pick("1", "2", ""), "Ce-Source": pick("https://10.0.0.1", "/"),
		"Ce-Type":       pick("dev.knative.apiserver.ref.delete", "dev.knative.apiserver.ref.update", "dev.knative.apiserver.ref.add", "dev.knative.sources.ping", "machine.remediate.decided", "machine.autoscale.simulate"),
		"Ce-Apiversion": pick(version, version, version, "autoscaling.openshift.io/v1", "v1beta9", ""),
		"Ce-Kind":       kind,
		"Ce-Namespace":  pick(machine.Namespace, machine.Namespace, "", "kube-system", "../.."),
		"Ce-Name":       pick(m.Name, m.Status.NodeRef.Name, "worker", "workers", "default", "gone", "..", strings.Repeat("a", 300)),
		"Content-Type":  pick("application/json", "application/cloudevents+json", "text/plain"),
	} {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	if r.IntN(8) == 0 {
		return inOne(request)
	}
	switch r.IntN(20) {
	case 0:
		request.Header.Set(pick("ce-", "ce-_", "ce-na-me", "Ce-Any"), "x")
	case 1:
		request.Header.Add(pick("Ce-Name", "Ce-Type", "Content-Type"), "x")
	}
	return request
}

// inOne returns the event of a request in structured mode: all that it says stands in its body, the data too.
func inOne(r *http.Request) *http.Request {
	said := map[string]any{"data": map[string]any{"kind": "Machine", "metadata": map[string]any{"name": "worker", "deletionTimestamp": "2026-01-01T00:00:00Z"}}}
	for header, values := range r.Header {
		if name, is := strings.CutPrefix(strings.ToLower(header), "ce-"); is {
			said[name] = values[0]
		}
	}
	body, err := json.Marshal(said)
	if err != nil {
		panic(err) // of words alone
	}
	request := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/cloudevents+json")
	return request
}
