// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	evaluateautoscale "github.com/machine-functions/machine-functions/functions/evaluate-autoscale"
	"github.com/machine-functions/machine-functions/shared/cluster/kube"
	mapi "github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/metrics"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

// A question on a real API server, under the rights of the function: the answer foretells the very sizes that the next
// scan decides, names the Pod that no Node takes, and changes nothing (SPEC C26, C34, W1, D43).
func TestQuestionForetellsTheScan(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Dir: t.TempDir(), Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	k := kubectl{plane: plane}
	k.must(t, "apply", "--server-side", "-f", "../../config/namespace.yaml")
	k.must(t, "apply", "--server-side", "-k", "../../config/crd")
	k.must(t, "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
	k.must(t, "apply", "-f", "../../config/rbac/evaluate-autoscale.yaml")
	k.must(t, "apply", "-f", "testdata/packing.yaml")
	k.eventually(t, "the scheduler looked at all Pods", func() bool { return k.pending(t) == k.unschedulable(t) })
	time.Sleep(30 * time.Second) // while younger Pods ask for what a set calls its GPUs, more of them are waited for (SPEC C6)

	f := packer(t, k)
	f.handle(t, snapshot.Request{APIVersion: "autoscaling.openshift.io/v1beta1", Kind: "MachineAutoscaler", Namespace: mapi.Namespace, Name: "zone-a"})
	answer := f.ask(t, `{}`)
	f.handle(t, snapshot.Request{})
	foretold := map[string]int32{}
	for _, g := range answer.Resize {
		foretold[g.Group] = g.To
	}
	if answer.Pods.Unplaced != 1 || len(answer.Unplaced) != 1 || answer.Unplaced[0].Pod != "default/too-large" {
		t.Errorf("the answer beforehand: %+v", answer)
	}
	var sets struct{ Items []mapi.MachineSet }
	if err := json.Unmarshal([]byte(k.must(t, "-n", mapi.Namespace, "get", "machinesets", "-o", "json")), &sets); err != nil {
		t.Fatal(err)
	}
	for i := range sets.Items {
		set := &sets.Items[i]
		if want := foretold["MachineSet/"+set.Namespace+"/"+set.Name]; want != *set.Spec.Replicas || want == 0 {
			t.Errorf("%s has %d replicas, %d were foretold", set.Name, *set.Spec.Replicas, want)
		}
	}
	k.eventually(t, "the Pod that no Node takes is told", func() bool {
		said := k.must(t, "get", "events", "-n", "default", "--field-selector", "involvedObject.name=too-large,reason=NotTriggerScaleUp", "-o", "jsonpath={.items[*].message}")
		return strings.Contains(said, "4 Insufficient cpu (fpga: wants 64, a new node has 8;")
	})
	later := k.must(t, "get", "machinesets", "-A", "-o", "jsonpath={.items[*].metadata.resourceVersion}")
	if more := f.ask(t, `{"pods": [{"count": 40, "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}]}`); len(more.Resize) == 0 || more.Cost < more.Bound {
		t.Errorf("forty more Pods: %+v", more)
	}
	if now := k.must(t, "get", "machinesets", "-A", "-o", "jsonpath={.items[*].metadata.resourceVersion}"); now != later {
		t.Errorf("a question changed sets: %s, then %s", later, now)
	}
}

// pending counts the Pods without a Node, unschedulable those of them that the scheduler has looked at.
func (k kubectl) pending(t *testing.T) int {
	t.Helper()
	return len(strings.Fields(k.must(t, "get", "pods", "-n", "default", "--field-selector", "spec.nodeName=", "-o", "name")))
}

func (k kubectl) unschedulable(t *testing.T) int {
	t.Helper()
	return strings.Count(k.must(t, "get", "pods", "-n", "default", "-o", `jsonpath={.items[*].status.conditions[?(@.type=="PodScheduled")].reason}`), "Unschedulable")
}

// packing is the function with the rights of config/rbac, and no others.
type packing struct{ server *runner.Server }

func packer(t *testing.T, k kubectl) packing {
	t.Helper()
	config, err := k.plane.UserKubeconfig(t.Context(), "system:serviceaccount:openshift-machine-api:evaluate-autoscale", "system:authenticated")
	if err != nil {
		t.Fatal(err)
	}
	rest, err := clientcmd.RESTConfigFromKubeConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	f := evaluateautoscale.Function
	api, err := kube.New(rest, kube.Options{FieldManager: f.Name, Namespaces: []string{mapi.Namespace}})
	if err != nil {
		t.Fatal(err)
	}
	m, err := metrics.New(f.Name, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	r := &runner.Runner{Function: f, Cluster: api, Clock: time.Now, Metrics: m, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	return packing{runner.NewServer(r, []string{mapi.Namespace})}
}

func (p packing) handle(t *testing.T, r snapshot.Request) {
	t.Helper()
	if _, err := p.server.Runner.Handle(context.WithoutCancel(t.Context()), r); err != nil {
		t.Fatal(err)
	}
}

// ask asks as Knative delivers a question.
func (p packing) ask(t *testing.T, question string) (answer evaluateautoscale.Reply) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", strings.NewReader(question))
	for key, value := range map[string]string{"Ce-Id": "1", "Ce-Source": "/e2e", "Ce-Specversion": "1.0", "Ce-Type": "machine.autoscale.simulate", "Content-Type": "application/json"} {
		r.Header.Set(key, value)
	}
	w := httptest.NewRecorder()
	p.server.Handle(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("question %s: status %d: %s", question, w.Code, w.Body)
	}
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}
