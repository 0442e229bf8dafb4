// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/metrics"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
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
		`{"expanders": ["MostPods"]}`, `{"limits": {"cores": {"min": 5, "max": 1}}}`, `{"prices": {"worker": -1}}`, `{"prices": {"worker": null}}`,
		`{"pods": [{"count": 1, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1e-99999999"}}}]}}]}`, // reading it takes hours
		`{"pods": [{"count": 1, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1e99999999"}}}]}}]}`,  // adding to it does
		`{"machineSets": [{"name": "x", "maxReplicas": 1, "cpu": "1e-99999999", "memory": "1Gi"}]}`,
		`{"machineSets": [{"name": "x", "maxReplicas": 1, "cpu": "4"}]}`,
		`{"prices": {"worker": 1}, "prices": {}}`, `{"Prices": {}}`, `{} {}`, `{"pods": ` + strings.Repeat("[", 1<<19),
		`{"pods": [{"count": 1, "spec": {"hostname": "a", "hostname": "b"}}]}`, `{"prices": {"worker": 1, "worker": 2}}`,
		`{"pods": [{"count": 1, "spec": {"priorityClassName": "batch"}}]}`, `{"pods": [{"count": 1, "spec": {"runtimeClassName": "kata"}}]}`,
	} {
		w := newWorld(t, epoch)
		w.load(t, "small.yaml")
		if answer := post(t, w, question); answer.Code != http.StatusBadRequest || len(w.ours()) > 0 {
			t.Errorf("%.100s: status %d, writes %v", question, answer.Code, w.ours())
		}
	}
}

// What would take longer than a request has is not begun: kinds of Pods times sets. Pods that are alike are one kind, however many
// times the question says them.
func TestQuestionsThatTakeTooLongAreRefused(t *testing.T) {
	t.Parallel()
	question := func(kinds, each, sets int) json.RawMessage {
		var q Question
		for i := range kinds * each {
			p := Pods{Count: 1}
			p.Metadata.Name, p.Spec.NodeSelector = fmt.Sprint("p", i), map[string]string{"kind": fmt.Sprint(i % kinds)}
			q.Pods = append(q.Pods, p)
		}
		for i := range sets {
			q.Sets = append(q.Sets, Set{Name: fmt.Sprint("s", i), MaxReplicas: new(int32(1)), CPU: "4", Memory: "16Gi"})
		}
		text, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	for _, c := range []struct {
		kinds, each, sets int
		want              string
	}{
		{maxAskedPairs/maxAskedSets + 1, 1, maxAskedSets, "question: 501 kinds of pods and 500 machine sets are more than one answer is for"},
		{2, maxAskedPairs/maxAskedSets + 1, maxAskedSets, ""},
	} {
		got := ""
		if _, err := Answer(snapshot.Snapshot{Now: epoch}, question(c.kinds, c.each, c.sets)); err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%d kinds, %d sets: %q, want %q", c.kinds, c.sets, got, c.want)
		}
	}
}

// What admission would make of the name of a class nobody knows here: a question has to say it itself, or there is no answer (SPEC D43, W1).
func TestQuestionSaysWhatClassesMean(t *testing.T) {
	t.Parallel()
	for spec, want := range map[string]string{
		`"priorityClassName": "batch"`:                    `question: pods[1]: spec.priorityClassName "batch" is not looked up: say priority`,
		`"runtimeClassName": "kata"`:                      `question: pods[1]: spec.runtimeClassName "kata" is not looked up: say overhead`,
		`"priorityClassName": "batch", "priority": 0`:     "",
		`"runtimeClassName": "kata", "overhead": {}`:      "",
		`"priorityClassName": "", "runtimeClassName": ""`: "",
	} {
		question, got := `{"pods": [{"count": 1}, {"count": 1, "spec": {`+spec+`}}]}`, ""
		if _, err := Answer(snapshot.Snapshot{Now: epoch}, json.RawMessage(question)); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", spec, got, want)
		}
	}
}

// Pods that no Node is added for, whatever sets there are, wait too, and are told why: those below the priority from which on Pods
// count, and those that the scheduler is not to look at (SPEC C5, C8, W1).
func TestAnswerCountsPodsThatBringNoNodes(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "s", 0, 9, midsize(), nil)
	low := pending("low", epoch.Add(-time.Minute), resources("cpu", "3"))
	low.Spec.Priority = new(int32(-11))
	w.must(t, w.Put(low))
	w.scans(t, 1)
	const spec = `"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]`
	r := asked(t, w, `{"pods": [{"count": 2, "spec": {"priority": -100, `+spec+`}}, {"count": 3, "spec": {"schedulingGates": [{"name": "x.io/quota"}], `+spec+`}}, {"count": 1, "spec": {`+spec+`}}]}`)
	if want := (Counts{Waiting: 7, Helped: 1, Unplaced: 6}); r.Pods != want {
		t.Errorf("got %+v, want %+v", r.Pods, want)
	}
	want := []Unplaced{
		{"default/low", 1, "priority -11 is below -10, from which on pods bring nodes"},
		{"default/simulated-0-000000", 2, "priority -100 is below -10, from which on pods bring nodes"},
		{"default/simulated-1-000000", 3, "behind the scheduling gate x.io/quota"},
	}
	if diff := cmp.Diff(want, r.Unplaced); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// allOf returns all objects of a type.
func allOf[T plan.Object](w *world) (all []plan.Object) {
	for _, o := range memory.List[T](w.Server) {
		all = append(all, o)
	}
	return all
}

// Whoever asks may ask anything: there is an answer, or an error that says what is wrong with the question.
func FuzzAnswer(f *testing.F) {
	for _, question := range []string{
		`{}`, `{"prices": {"worker": 0.2}}`, `{"limits": {"maxNodesTotal": 3}}`, `{"expanders": ["LeastWaste"]}`, `{"pods": ` + strings.Repeat("[", 20000),
		`{"machineSets": [{"name": "large", "maxReplicas": 3, "cpu": "12", "memory": "32Gi", "taints": [{"key": "k", "effect": "NoSchedule"}]}]}`,
		`{"pods": [{"count": 6, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1900m", "memory": "1Gi"}}}]}}]}`,
		`{"pods": [{"count": 1, "metadata": {"managedFields": [{"fieldsV1": {"f:a": {}}}]}, "spec": {"nodeSelector": {"a": "b"}}}]}`,
	} {
		f.Add([]byte(question))
	}
	w := newWorld(f, epoch)
	w.load(f, "small.yaml")
	s := snapshot.Snapshot{Now: epoch}
	s.Add(allOf[*machine.MachineSet](w)...)
	s.Add(allOf[*machine.Machine](w)...)
	s.Add(allOf[*corev1.Node](w)...)
	s.Add(allOf[*corev1.Pod](w)...)
	s.Add(allOf[*autoscaling.MachineAutoscaler](w)...)
	f.Fuzz(func(t *testing.T, question []byte) {
		var q Question
		if machine.ReadRecord(string(question), &q) == nil {
			for _, p := range q.Pods {
				if p.Count > 100 {
					t.Skip("many Pods are a matter of time, not of form")
				}
			}
		}
		switch answer, err := Answer(s, question); {
		case err == nil && !json.Valid(answer):
			t.Errorf("%q is answered %q", question, answer)
		case err != nil && err.Error() == "":
			t.Errorf("%q is refused without a word", question)
		}
	})
}

// In the shadow, timers run as in earnest: what is idle for long enough is shown to go, also where bounds that a MachineAutoscaler
// wants do not stand on its set; and nothing is written (W1, D43).
func TestDryRunShowsScaleDown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, epoch)
	w.load(t, "small.yaml")
	w.must(t, w.Remove("Pod", "default", "web-b", memory.Force))
	w.must(t, memory.Patch(w.Server, machine.Namespace, "worker", func(s *machine.MachineSet) { s.Annotations = nil }))
	before := len(w.ours())
	r := &runner.Runner{Function: Function, Cluster: w.As(Function.Name), DryRun: true, Shadow: &runner.Shadow{}, Log: slog.New(slog.DiscardHandler)}
	shown := time.Duration(0)
	for ; w.now.Sub(epoch) < 15*time.Minute; w.now = w.now.Add(10 * time.Second) {
		p, err := r.Handle(t.Context(), snapshot.Request{})
		w.must(t, err)
		if shown == 0 && strings.Contains(p.String(), "2 → 1 replicas") {
			shown = w.now.Sub(epoch)
		}
	}
	if shown < 10*time.Minute || shown > 11*time.Minute {
		t.Errorf("the idle Node was shown to go after %s", shown)
	}
	if got := w.ours()[before:]; len(got) > 0 {
		t.Errorf("it wrote %v", got)
	}
}

// asked is what the function answers.
func asked(t *testing.T, w *world, question string) (r Reply) {
	t.Helper()
	answer := post(t, w, question)
	if err := json.Unmarshal(answer.Body.Bytes(), &r); err != nil {
		t.Fatalf("%s: %v: %s", question, err, answer.Body)
	}
	return r
}

// What a question leaves out is as it is: prices of other sets, other limits, bounds. What it says counts, whatever a set's
// Nodes, annotations, or the table say (SPEC W1, D43).
func TestQuestionChangesWhatItSaysAndNothingElse(t *testing.T) {
	t.Parallel()
	const pod = `"pods": [{"count": 1, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "7"}}}]}}]`
	for _, tt := range []struct {
		name, question string
		helped         int
		cost           float64
		unit           string
		removed        int
	}{
		{"as it is", `{` + pod + `}`, 0, 0, perHour, 0},
		{"more cores for the whole cluster", `{` + pod + `, "limits": {"cores": {"min": 0, "max": 100}}}`, 1, 0.9, perHour, 0},
		{"another limit says nothing about cores", `{` + pod + `, "limits": {"maxNodesTotal": 20}}`, 0, 0, perHour, 0},
		{"other machines in a set that has a node", `{` + pod + `, "machineSets": [{"name": "small", "cpu": "8", "memory": "16Gi"}], "prices": {"small": 1.1}}`, 1, 1.1, perHour, 0},
		{"the price of one set", `{` + pod + `, "limits": {"cores": {"min": 0, "max": 100}}, "prices": {"large": 2}}`, 1, 2, perHour, 0},
		{"the price of a type", `{` + pod + `, "limits": {"cores": {"min": 0, "max": 100}}, "prices": {"l.type": 0.57}}`, 1, 0.57, perHour, 0},
		{"another maximum leaves the minimum", `{"machineSets": [{"name": "small", "maxReplicas": 20}]}`, 0, 0, perHour, 0},
		{"another minimum", `{"machineSets": [{"name": "small", "minReplicas": 0}]}`, 0, 0, perHour, 1},
		{"pods that get claims of their own", `{"pods": [{"count": 1, "spec": {"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"storageClassName": "fast"}}}}], "containers": [{"name": "c", "resources": {"requests": {"cpu": "7"}}}]}}], "limits": {"cores": {"min": 0, "max": 100}}}`, 1, 0.9, perHour, 0},
		{"pods that say only limits ask for as much", `{"pods": [{"count": 1, "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "7"}}}]}}]}`, 0, 0, perHour, 0},
	} {
		w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 0s}, resourceLimits: {cores: {min: 0, max: 15}}}")
		w.set(t, "small", 1, 9, midsize(), nil)
		w.set(t, "large", 0, 9, map[string]string{machine.CapacityCPU: "16", machine.CapacityMemory: "64Gi", machine.AnnotationPrice: "0.9"},
			map[string]string{corev1.LabelInstanceTypeStable: "l.type"})
		w.must(t, memory.Patch(w.Server, machine.Namespace, "small", func(ma *autoscaling.MachineAutoscaler) { ma.Spec.MinReplicas = 1 }))
		w.member(t, "small", "a", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		w.yaml(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-prices, namespace: openshift-machine-api}, data: {prices: "{small: 0.2}"}}`)
		w.scans(t, 2)
		r := asked(t, w, tt.question)
		if r.Pods.Helped != tt.helped || r.Cost != tt.cost || r.CostUnit != tt.unit || len(r.Remove) != tt.removed {
			t.Errorf("%s: helped %d, cost %v %s, removed %v, %v", tt.name, r.Pods.Helped, r.Cost, r.CostUnit, r.Remove, r.Unplaced)
		}
	}
}

// An answer has the sets that grow to their minimum as well as those that grow for Pods, with what they cost (SPEC C36, W1).
func TestQuestionAboutAMinimum(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{enforceNodeGroupMinSize: Enabled}")
	w.set(t, "s", 1, 5, midsize(machine.AnnotationPrice, "0.5"), nil)
	w.set(t, "large", 0, 5, map[string]string{machine.CapacityCPU: "16", machine.CapacityMemory: "64Gi", machine.AnnotationPrice: "2"}, nil)
	w.scans(t, 1)
	minimum := Growth{"MachineSet/openshift-machine-api/s", 1, 4, 5, 0.5}
	r := asked(t, w, `{"machineSets": [{"name": "s", "minReplicas": 4}]}`)
	if !slices.Equal(r.Resize, []Growth{minimum}) || r.Cost != 1.5 || r.Bound != 0 || r.AboveIt != 0 {
		t.Errorf("%v at %v, bound %v, %v above it", r.Resize, r.Cost, r.Bound, r.AboveIt)
	}
	r = asked(t, w, `{"machineSets": [{"name": "s", "minReplicas": 4}], "pods": [{"count": 1, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "15"}}}]}}]}`)
	if !slices.Equal(r.Resize, []Growth{{"MachineSet/openshift-machine-api/large", 0, 1, 5, 2}, minimum}) || r.Cost != 3.5 || r.Bound != 2 || r.AboveIt != 0 {
		t.Errorf("with a Pod: %v at %v, bound %v, %v above it", r.Resize, r.Cost, r.Bound, r.AboveIt)
	}
	r = asked(t, w, `{"machineSets": [{"name": "unknown", "minReplicas": 1, "maxReplicas": 2}], "prices": {"unknown": 3}}`)
	if !slices.Equal(r.Resize, []Growth{{"MachineSet/openshift-machine-api/unknown", 0, 1, 2, 3}}) || r.Cost != 3 {
		t.Errorf("of a set whose Nodes nobody knows: %v at %v %s", r.Resize, r.Cost, r.CostUnit)
	}
	r = asked(t, w, `{"machineSets": [{"name": "unknown", "minReplicas": 1, "maxReplicas": 2}]}`)
	if !slices.Equal(r.Resize, []Growth{{"MachineSet/openshift-machine-api/unknown", 0, 1, 2, 0}}) || r.CostUnit != "size" {
		t.Errorf("nor their price: %v at %v %s", r.Resize, r.Cost, r.CostUnit)
	}
}

// What Nodes for all Pods cost at least says nothing about a plan that limits of the cluster cut short (SPEC C30, W1).
func TestBoundIsOfThePodsThatThePlanServes(t *testing.T) {
	t.Parallel()
	for most, bounded := range map[int]bool{1: false, 2: true} {
		w := fresh(t, fmt.Sprintf("{resourceLimits: {maxNodesTotal: %d}}", most))
		for _, pool := range []string{"a", "b"} {
			w.set(t, "set-"+pool, 0, 4, midsize(), map[string]string{"pool": pool})
		}
		w.scans(t, 1)
		const pod = `{"count": 1, "spec": {"nodeSelector": {"pool": %q}, "containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}`
		r := asked(t, w, fmt.Sprintf(`{"pods": [`+pod+`, `+pod+`]}`, "a", "b"))
		if r.Pods.Helped != most || r.Cost == 0 || r.Bound > r.Cost || (r.Bound > 0) != bounded || r.AboveIt != 0 {
			t.Errorf("at most %d Nodes: %d Pods helped at %v, bound %v, %v above it", most, r.Pods.Helped, r.Cost, r.Bound, r.AboveIt)
		}
	}
}

// While nothing is scaled because the cluster is unhealthy, an answer says so of every Pod (SPEC C3, W1, W3).
func TestQuestionToAnUnhealthyCluster(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "s", 4, 9, midsize(), nil)
	for _, n := range []string{"a", "b", "c", "d"} {
		w.member(t, "s", n, epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		w.must(t, memory.Patch(w.Server, "", n, func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }))
	}
	w.scans(t, 1)
	r := asked(t, w, `{"pods": [{"count": 6, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1900m"}}}]}}]}`)
	want := "1 not ready for scale-up (s: the cluster is unhealthy, 4 of 4 nodes are unready)"
	if r.Pods != (Counts{Waiting: 6, Unplaced: 6}) || len(r.Unplaced) != 1 || r.Unplaced[0].Why != want {
		t.Errorf("%+v %+v", r.Pods, r.Unplaced)
	}
}

// However many kinds and groups of Pods have no place, an answer lists the first fifty, and counts all.
func TestAnswerListsFiftyKinds(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ kinds, groups int }{{0, 80}, {80, 0}, {45, 10}} {
		w := fresh(t, "{}")
		w.set(t, "s", 0, 1, midsize(), nil)
		for g := range tt.groups {
			gang(t, w, fmt.Sprintf("g%02d", g), 0, "3", "3")
		}
		for k := range tt.kinds {
			w.must(t, w.Put(pending(fmt.Sprint("p-", k), epoch.Add(-time.Minute), resources("cpu", fmt.Sprint(5+k)))))
		}
		w.scans(t, 1)
		if r := asked(t, w, "{}"); len(r.Unplaced) != maxListed || r.Pods.Unplaced != 2*tt.groups+tt.kinds {
			t.Errorf("%d kinds and %d groups: %d are listed, %+v", tt.kinds, tt.groups, len(r.Unplaced), r.Pods)
		}
	}
}

// That a price is not known is said once, where expanders would have it: not when a question about costs asks again.
func TestUnknownPriceIsToldOnce(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{expanders: [Price]}")
	w.set(t, "s", 0, 1, midsize(), nil)
	w.scans(t, 1)
	r := asked(t, w, `{"pods": [{"count": 1, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}]}`)
	if n := strings.Count(r.Plan, "is not known, prices are left out"); n != 1 || r.CostUnit != "size" {
		t.Errorf("told %d times, cost by %s:\n%s", n, r.CostUnit, r.Plan)
	}
}

// An answer waits for nothing: neither for more Pods while those that wait are very new, nor for a set to be resized that is about to be;
// from where it is going then, it can go on (SPEC C6, W1).
func TestAnswerWaitsForNothing(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "s", 0, 9, midsize(), nil)
	w.set(t, "gpu", 0, 9, map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi", machine.CapacityGPUCount: "1"}, nil)
	w.scans(t, 2)
	w.must(t, w.Put(pending("train", w.now.Add(-10*time.Second), resources("cpu", "1", "nvidia.com/gpu", "1"))))
	const question = `{"pods": [{"count": 6, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}}]}`
	want := Counts{Waiting: 7, Helped: 7}
	if r := asked(t, w, question); r.Pods != want {
		t.Errorf("beside a young Pod: %+v, want %+v", r.Pods, want)
	}
	s := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "s")
	w.remember(t, autoscaling.State{Groups: map[string]autoscaling.NodeGroup{idOf(s): {
		Resize:  &autoscaling.Resize{Plan: "grow-1", SetUID: s.UID, ResourceVersion: s.ResourceVersion, To: 2, At: metav1.NewTime(w.now)},
		Request: &autoscaling.Request{At: metav1.NewTime(w.now)},
	}}})
	r := asked(t, w, question)
	if want := (Counts{Waiting: 7, Fit: 2, Helped: 5}); r.Pods != want || !slices.ContainsFunc(r.Resize, func(g Growth) bool { return g.Group == idOf(s) && g.From == 2 && g.To == 4 }) {
		t.Errorf("while a set is about to get two Nodes: %+v, want %+v; %+v", r.Pods, want, r.Resize)
	}
}

// However large the Nodes are that a question speaks of, and however many sets there are to choose from by lot, there is an answer.
func TestAnswerAboutHugeNodes(t *testing.T) {
	t.Parallel()
	q := Question{Expanders: []autoscaling.Expander{autoscaling.LeastWaste, autoscaling.Random}, Pods: []Pods{{Count: 1}}}
	q.Limits = &autoscaling.ResourceLimits{Cores: &autoscaling.Range{Max: math.MaxInt32}}
	for i := range maxAskedSets {
		q.Sets = append(q.Sets, Set{Name: fmt.Sprint("s", i), MaxReplicas: new(int32(1)), CPU: "2e9", Memory: "16Gi"})
	}
	text, err := json.Marshal(q)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := Answer(snapshot.Snapshot{Now: epoch}, text)
		answered <- err
	}()
	select {
	case err := <-answered:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Minute):
		t.Error("there is none after a minute")
	}
}

// Pods of a question that are alike share what they are like: a hundred thousand of many containers have room in one process.
func TestAskedPodsShareTheirSpec(t *testing.T) {
	t.Parallel()
	p := Pods{Count: 2, Spec: corev1.PodSpec{HostNetwork: true, Containers: []corev1.Container{{Name: "c", Ports: []corev1.ContainerPort{{ContainerPort: 80}}}}}}
	all := p.all(0, epoch)
	if a, b := &all[0].Spec.Containers[0], &all[1].Spec.Containers[0]; a != b || a.Ports[0].HostPort != 80 {
		t.Errorf("each has its own: %p and %p, port %d of the host", a, b, a.Ports[0].HostPort)
	}
}

// What an answer costs is bounded by all Pods of a question together, and by its sets.
func TestQuestionsOfTooMuchAreRefused(t *testing.T) {
	t.Parallel()
	for _, q := range []Question{{Pods: []Pods{{Count: maxAskedPods}, {Count: 1}}}, {Sets: slices.Repeat([]Set{{Name: "s"}}, maxAskedSets+1)}} {
		if err := q.check(); err == nil || !strings.Contains(err.Error(), "are more than") {
			t.Errorf("%d times pods, %d sets: %v", len(q.Pods), len(q.Sets), err)
		}
	}
}

// Pods of a question wait, also where it is written after one that runs, or that is on its way out.
func TestAskedPodsWait(t *testing.T) {
	t.Parallel()
	p := Pods{Count: 1, Metadata: metav1.ObjectMeta{DeletionTimestamp: &metav1.Time{Time: epoch}}, Spec: corev1.PodSpec{NodeName: "n"}}
	if got := p.all(0, epoch)[0]; !unschedulable(got) {
		t.Errorf("on Node %q, deleted at %v", got.Spec.NodeName, got.DeletionTimestamp)
	}
}
