// SPDX-License-Identifier: Apache-2.0

package eventing_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/local/controlplane"
	"github.com/machine-functions/machine-functions/test/local/eventing"
)

const (
	namespace = "openshift-machine-api"
	root      = "../../.."

	// soon is for an event on its way; measured in milliseconds, generous because the machine may be busy.
	soon = 30 * time.Second

	machineSets        = "/apis/machine.openshift.io/v1beta1/namespaces/" + namespace + "/machinesets"
	foreignMachineSets = "/apis/machine.openshift.io/v1beta1/namespaces/elsewhere/machinesets"
	clusterAutoscalers = "/apis/autoscaling.openshift.io/v1/clusterautoscalers"
	nodes              = "/api/v1/nodes"
	namespaces         = "/api/v1/namespaces"
)

// world is a control plane with Knative Eventing on it and a recorder for every function.
type world struct {
	server    string // URL of the API server, through kubectl proxy
	functions map[string][]*recorder
}

func (w *world) function(name string) *recorder { return w.functions[name][0] }

// TestEvents runs the routing of triggers/ on the real Knative Eventing.
func TestEvents(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane and Knative Eventing")
	}
	t.Parallel()
	w := start(t)
	w.testObjects(t)
	w.testLatency(t)
	for name, test := range map[string]func(*testing.T){
		"the scan wakes functions":                                      w.testScan,
		"a failing function gets retries, then the dead letter is sent": w.testDeadLetter,
		"a slow function does not delay another":                        w.testSlow,
		"a dead replica is passed over":                                 w.testReplicas,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t)
		})
	}
}

func start(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute) // both may have to be compiled
	defer cancel()
	dir := t.TempDir()
	plane, err := controlplane.Start(ctx, controlplane.Options{Dir: filepath.Join(dir, "control-plane"), Progress: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	if _, err := plane.Kubectl(ctx, "apply", "--server-side", "-k", filepath.Join(root, "config", "crd")); err != nil {
		t.Fatal(err)
	}
	w := &world{functions: map[string][]*recorder{}}
	services := map[string][]string{}
	for _, name := range []string{
		"scale-machineset", "provision-machine", "drain-node", "link-node", "link-node", "remediate", "evaluate-autoscale", "sweep-instances", "dead-letter",
	} {
		r := startRecorder(t)
		w.functions[name] = append(w.functions[name], r)
		services[name] = append(services[name], r.address)
	}
	programs, err := eventing.Build(ctx, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	e, err := eventing.Start(ctx, eventing.Options{
		Programs: programs, Kubeconfig: plane.Kubeconfig, Dir: filepath.Join(dir, "eventing"), Manifests: filepath.Join(root, "triggers"), Services: services,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("ready after %v: %v", time.Since(began).Round(time.Millisecond), e.Processes)
	t.Cleanup(func() {
		began := time.Now()
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
		t.Logf("stopped after %v", time.Since(began).Round(time.Millisecond))
	})
	w.server = proxy(t, plane)
	return w
}

// proxy runs kubectl proxy and returns its URL.
func proxy(t *testing.T, plane *controlplane.ControlPlane) string {
	t.Helper()
	command := plane.Command(t.Context(), "proxy", "--port=0")
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return "http://" + strings.TrimSpace(strings.TrimPrefix(line, "Starting to serve on "))
}

// send makes a request that must succeed.
func (w *world) send(t *testing.T, method, path, contentType string, object map[string]any) {
	t.Helper()
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), method, w.server+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", contentType)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if answer, _ := io.ReadAll(response.Body); response.StatusCode >= 300 {
		t.Fatalf("%s %s: %s", method, path, answer)
	}
}

// create makes an object.
func (w *world) create(t *testing.T, path, apiVersion, kind, name string) {
	t.Helper()
	labels := map[string]any{"set": name}
	object := map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": map[string]any{"name": name}, "spec": map[string]any{}}
	if kind == "MachineSet" {
		object["spec"] = map[string]any{
			"selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{"metadata": map[string]any{"labels": labels}},
		}
	}
	w.send(t, http.MethodPost, path, "application/json", object)
}

func (w *world) createMachineSet(t *testing.T, path, name string) {
	t.Helper()
	w.create(t, path, "machine.openshift.io/v1beta1", "MachineSet", name)
}

// touch changes an annotation.
func (w *world) touch(t *testing.T, path, name string) {
	t.Helper()
	now := time.Now().Format(time.RFC3339Nano)
	w.send(t, http.MethodPatch, path+"/"+name, "application/merge-patch+json", map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{"touched": now}},
	})
}

// testObjects shows that each function is woken by its objects, and by no others.
func (w *world) testObjects(t *testing.T) {
	t.Helper()
	w.create(t, namespaces, "v1", "Namespace", "elsewhere")
	w.createMachineSet(t, foreignMachineSets, "foreign")
	w.createMachineSet(t, machineSets, "workers")
	w.touch(t, machineSets, "workers")
	for _, verb := range []string{"add", "update"} {
		for _, name := range []string{"scale-machineset", "provision-machine"} {
			if e := w.function(name).await(t, soon, of(verb, "MachineSet", "workers")); e.namespace != namespace {
				t.Errorf("%s: got namespace %q", name, e.namespace)
			}
		}
	}
	// Node and ClusterAutoscaler have no namespace.
	w.create(t, nodes, "v1", "Node", "first")
	if e := w.function("remediate").await(t, soon, of("add", "Node", "first")); e.namespace != "" {
		t.Errorf("a Node has the namespace %q", e.namespace)
	}
	w.create(t, clusterAutoscalers, "autoscaling.openshift.io/v1", "ClusterAutoscaler", "default")
	w.function("evaluate-autoscale").await(t, soon, of("add", "ClusterAutoscaler", "default"))
	for name, replicas := range w.functions {
		for _, r := range replicas {
			if len(r.matching(of("add", "MachineSet", "foreign"))) > 0 {
				t.Errorf("%s heard of another namespace", name)
			}
		}
	}
	if len(w.function("remediate").matching(of("add", "MachineSet", "workers"))) > 0 {
		t.Error("remediate was woken by a MachineSet")
	}
}

// testLatency tells how long a write takes to reach a function, one at a time.
func (w *world) testLatency(t *testing.T) {
	t.Helper()
	const writes = 100
	w.createMachineSet(t, machineSets, "timed")
	r := w.function("scale-machineset")
	r.await(t, soon, of("add", "MachineSet", "timed"))
	isUpdate := of("update", "MachineSet", "timed")
	var took []time.Duration
	for i := range writes {
		began := time.Now()
		w.touch(t, machineSets, "timed")
		for len(r.matching(isUpdate)) <= i {
			if time.Since(began) > soon {
				t.Fatalf("update %d did not arrive", i)
			}
			time.Sleep(100 * time.Microsecond)
		}
		took = append(took, r.matching(isUpdate)[i].at.Sub(began))
	}
	slices.Sort(took)
	t.Logf("from before the write to the function: p50 %v, p99 %v", took[writes/2], took[writes*99/100])
}

func (w *world) testScan(t *testing.T) {
	t.Helper()
	for _, name := range []string{"scale-machineset", "provision-machine", "drain-node", "remediate", "evaluate-autoscale"} {
		w.function(name).await(t, time.Minute, func(e event) bool { return e.scan == "fast" })
	}
	if len(w.function("sweep-instances").matching(func(e event) bool { return e.scan == "fast" })) > 0 {
		t.Error("sweep-instances was woken by the fast scan")
	}
}

func (w *world) testDeadLetter(t *testing.T) {
	t.Helper()
	failing := w.function("evaluate-autoscale")
	failing.answers(func(e event) int {
		if e.kind == "ClusterAutoscaler" {
			return http.StatusServiceUnavailable
		}
		return http.StatusAccepted
	})
	before := len(failing.matching(of("update", "ClusterAutoscaler", "default")))
	w.touch(t, clusterAutoscalers, "default")
	letter := w.function("dead-letter").await(t, time.Minute, of("update", "ClusterAutoscaler", "default"))
	if got := len(failing.matching(of("update", "ClusterAutoscaler", "default"))) - before; got != 6 {
		t.Errorf("the function was tried %d times, want once and five times again", got)
	}
	if want := "http://evaluate-autoscale.openshift-machine-api.svc.cluster.local"; letter.code != "503" || letter.destination != want {
		t.Errorf("the dead letter says %q of %q, want 503 of %q", letter.code, letter.destination, want)
	}
}

func (w *world) testSlow(t *testing.T) {
	t.Helper()
	const (
		sleep  = 20 * time.Second
		limit  = sleep / 2
		events = 10
	)
	slow, quick := w.function("scale-machineset"), w.function("provision-machine")
	woken := make(chan struct{})
	slow.answers(func(e event) int {
		if e.verb == "add" && e.name == "slow" {
			time.Sleep(sleep)
			close(woken)
		}
		return http.StatusAccepted
	})
	w.createMachineSet(t, machineSets, "slow")
	slow.await(t, soon, of("add", "MachineSet", "slow"))
	var longest time.Duration
	for i := range events {
		name := fmt.Sprintf("quick-%d", i)
		began := time.Now()
		w.createMachineSet(t, machineSets, name)
		longest = max(longest, quick.await(t, soon, of("add", "MachineSet", name)).at.Sub(began))
	}
	t.Logf("the longest that another function waited for an event: %v", longest)
	if longest > limit {
		t.Errorf("another function waited %v for an event, want at most %v", longest, limit)
	}
	select {
	case <-woken:
		t.Error("the slow function was not asleep while the events were sent")
	default:
	}
	<-woken
}

func (w *world) testReplicas(t *testing.T) {
	t.Helper()
	replicas := w.functions["link-node"]
	for i, r := range replicas {
		w.create(t, nodes, "v1", "Node", fmt.Sprintf("early-%d", i))
		r.await(t, soon, func(e event) bool { return e.kind == "Node" || e.scan != "" })
	}
	replicas[0].server.CloseClientConnections()
	replicas[0].server.Close()
	for i := range 6 {
		name := fmt.Sprintf("late-%d", i)
		w.create(t, nodes, "v1", "Node", name)
		replicas[1].await(t, soon, of("add", "Node", name))
	}
}
