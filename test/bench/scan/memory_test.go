// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	function "github.com/machine-functions/machine-functions"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

// What is measured is a function as it is deployed, in a process of its own, with an API server in another one.
func TestMain(m *testing.M) {
	if name := os.Getenv("MEASURED"); name != "" {
		slog.SetDefault(slog.New(slog.DiscardHandler))
		measured(name == "storm")
		return
	}
	os.Exit(m.Run())
}

const (
	promised  = 5000 // Machines that a scan is promised for (docs/performance.md)
	perSet    = 10
	nodeShown = 50  // images that a kubelet tells of, unless it is told otherwise
	atRest    = 128 // MiB that a function may take whatever there is
	scanTimes = 3   // scans, of which a later one has the lists of the former beside its own
)

// Each function fits into the memory that its manifest gives it, with as many Machines as are promised, and with as many Nodes that are ill
// and tell so: one that is killed for its memory heals nothing, least of all then.
func TestFunctionsFitIntoTheirMemory(t *testing.T) { //nolint:paralleltest // others would be measured beside it
	machines := promised
	if testing.Short() {
		machines /= 10
	}
	for _, of := range []struct { //nolint:paralleltest // see above
		function, way string
		ill           bool
	}{{"scale-machineset", "scans", false}, {"remediate", "scans", false}, {"link-node", "scans", false}, {"drain-node", "scans", false}, {"remediate", "storm", true}} {
		t.Run(of.function+" "+of.way, func(t *testing.T) {
			a, err := newAPI(inventory(machines, of.ill))
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(conflicting{a})
			defer server.Close()
			limits := limitsOf(t, of.function)
			child := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this test
			child.Env = append(os.Environ(), "MEASURED="+of.way, "MACHINES="+fmt.Sprint(machines), "LOG_LEVEL=ERROR", "FUNCTION="+of.function, "KUBECONFIG="+kubeconfig(t, server.URL), "GOMEMLIMIT="+limits.goal)
			child.Stderr = os.Stderr
			out, err := child.Output()
			var got use
			if err := errors.Join(err, json.Unmarshal(out, &got)); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			most := max(limits.hard>>20*int64(machines)/promised, atRest)
			t.Logf("%d machines: %d MiB, answers %v", machines, got.MiB, got.Answers)
			if got.MiB > most {
				t.Errorf("%d MiB, of %d that %d machines may take", got.MiB, most, machines)
			}
			if want := map[bool]int{false: scanTimes, true: machines}[of.ill]; got.Answers[http.StatusOK]+got.Answers[http.StatusAccepted] != want {
				t.Errorf("answers %v, want %d", got.Answers, want)
			}
		})
	}
}

// use is what the process that is measured says at last.
type use struct {
	MiB     int64 // the most that it ever took
	Answers map[int]int
}

type limits struct {
	goal string // GOMEMLIMIT
	hard int64  // what the kernel kills for
}

func limitsOf(t *testing.T, function string) (l limits) {
	t.Helper()
	text, err := os.ReadFile("../../../config/services/" + function + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	var s struct {
		Spec struct {
			Template struct{ Spec corev1.PodSpec }
		}
	}
	if err := yaml.Unmarshal(text, &s); err != nil {
		t.Fatal(err)
	}
	c := s.Spec.Template.Spec.Containers[0]
	l.hard = c.Resources.Limits.Memory().Value()
	for _, e := range c.Env {
		if e.Name == "GOMEMLIMIT" {
			l.goal = e.Value
		}
	}
	if l.hard == 0 || l.goal == "" {
		t.Fatalf("%s has no limit: %+v", function, l)
	}
	return l
}

func kubeconfig(t *testing.T, url string) string {
	t.Helper()
	file := t.TempDir() + "/kubeconfig"
	text := fmt.Sprintf("{apiVersion: v1, kind: Config, current-context: c, clusters: [{name: c, cluster: {server: %q}}], contexts: [{name: c, context: {cluster: c, user: u}}], users: [{name: u, user: {}}]}", url)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// conflicting is an API server that tells everybody of the latest version, and takes no write.
type conflicting struct{ *api }

func (c conflicting) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method != http.MethodGet:
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","code":409,"reason":"Conflict","message":"changed"}`)
	case r.URL.Path == "/api/v1/namespaces/kube-system" || r.URL.Path == "/version":
		_, _ = io.WriteString(w, `{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"1"}}`)
	default:
		w.Header().Del("Content-Type")
		c.api.ServeHTTP(w, r)
	}
}

// measured is the process that is measured: it scans, or hears of each Node that it is ill, of many at a time.
func measured(storm bool) {
	h := function.New()
	answers := map[int]int{}
	var mu sync.Mutex
	send := func(headers map[string]string) {
		r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("{}"))
		for k, v := range map[string]string{"ce-id": "1", "ce-source": "/test", "ce-specversion": "1.0", "content-type": "application/json"} {
			r.Header.Set(k, v)
		}
		for k, v := range headers {
			r.Header.Set(k, v)
		}
		w := httptest.NewRecorder()
		h.Handle(w, r)
		mu.Lock()
		defer mu.Unlock()
		answers[w.Code]++
	}
	if !storm {
		for range scanTimes {
			send(map[string]string{"ce-type": "dev.knative.sources.ping"})
		}
	}
	names := make(chan string)
	var senders sync.WaitGroup
	for range 60 {
		senders.Go(func() {
			for name := range names {
				send(map[string]string{"ce-type": "dev.knative.apiserver.ref.update", "ce-apiversion": "v1", "ce-kind": "Node", "ce-name": name})
			}
		})
	}
	n, _ := strconv.Atoi(os.Getenv("MACHINES"))
	for i := 0; storm && i < n; i++ {
		names <- nodeName(i)
	}
	close(names)
	senders.Wait()
	_ = printed(use{peak(), answers})
}

// peak is the most that this process ever took, in MiB: what wait(2) tells has its parent in it.
func peak() (kib int64) {
	text, _ := os.ReadFile("/proc/self/status")
	_, most, _ := strings.Cut(string(text), "VmHWM:")
	_, _ = fmt.Sscan(most, &kib)
	return kib >> 10
}

func nodeName(i int) string {
	return fmt.Sprintf("ip-10-0-%d-%d.us-east-2.compute.internal", i/250, i%250)
}

// inventory is a cluster in which nothing is to be done, but for Nodes that are ill, of which a check hears. Its objects are as large as those of a
// cluster: who wrote which field, the images that a kubelet tells of, what networks note on Nodes.
func inventory(machines int, ill bool) snapshot.Snapshot {
	s := snapshot.Snapshot{}
	since := metav1.NewTime(time.Now().Add(-24 * time.Hour).Truncate(time.Second))
	for i := range machines / perSet {
		set := sim.Set(fmt.Sprintf("set-%04d", i), perSet)
		set.UID, set.CreationTimestamp, set.ManagedFields = types.UID(fmt.Sprintf("set-%d", i)), since, managed(2)
		set.Generation, set.Status.ObservedGeneration = 1, 1
		ledger := machine.NewLedger(set.UID)
		ledger.Next = perSet
		for k := range perSet {
			ledger.Active = append(ledger.Active, k)
			m, n := pair(i*perSet+k, since, ill)
			m.Name, m.Labels = ledger.Name(set.Name, k), set.Spec.Template.Labels
			m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, set.GroupVersionKind())}
			n.Annotations[machine.AnnotationMachine] = machine.Namespace + "/" + m.Name
			s.Add(m, n)
		}
		set.Annotations = map[string]string{machine.AnnotationLedger: ledger.String()}
		set.Status.Replicas, set.Status.ReadyReplicas, set.Status.AvailableReplicas, set.Status.FullyLabeledReplicas = perSet, perSet, perSet, perSet
		s.Add(set)
	}
	check := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Name: "workers", Namespace: machine.Namespace, UID: "check", CreationTimestamp: since}}
	check.Spec.UnhealthyConditions = []machinev1beta1.UnhealthyCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, Timeout: metav1.Duration{Duration: 5 * time.Minute}}}
	s.Add(check)
	return s
}

func pair(i int, since metav1.Time, ill bool) (*machine.Machine, *corev1.Node) {
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, UID: types.UID(fmt.Sprintf("machine-%d", i)), CreationTimestamp: since, Finalizers: []string{machine.Finalizer}, ManagedFields: managed(4)}}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName(i), UID: types.UID(fmt.Sprintf("node-%d", i)), CreationTimestamp: since, ManagedFields: managed(4), Labels: map[string]string{}}}
	id := fmt.Sprintf("aws:///us-east-2a/i-%017d", i)
	spec := `{"kind":"AWSMachineProviderConfig","ami":{"id":"ami-0abc0abc0abc0abc0"},"instanceType":"m6i.xlarge","userDataSecret":{"name":"worker-user-data"},"notes":"` + strings.Repeat("x", 800) + `"}`
	m.Annotations = map[string]string{"notes.example.com/intent": spec}
	m.Spec.ProviderID, n.Spec.ProviderID = &id, id
	m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(spec)}
	m.Status.Phase, m.Status.LastUpdated = new(machine.PhaseRunning), &since
	m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: n.Name, UID: n.UID}
	m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.%d.%d", i/250, i%250)}, {Type: corev1.NodeInternalDNS, Address: n.Name}, {Type: corev1.NodeHostName, Address: n.Name}}
	n.Status.Addresses = m.Status.Addresses
	n.Annotations = map[string]string{"network.example.com/gateway": strings.Repeat("x", 800)}
	for k := range 20 {
		n.Labels[fmt.Sprintf("node.example.com/label-%d", k)] = fmt.Sprint("value-", k)
	}
	n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "pods": resource.MustParse("250"), "ephemeral-storage": resource.MustParse("120Gi")}
	n.Status.Allocatable = n.Status.Capacity
	for _, c := range []corev1.NodeConditionType{corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeReady} {
		status := corev1.ConditionFalse
		switch {
		case ill:
			status = corev1.ConditionUnknown
		case c == corev1.NodeReady:
			status = corev1.ConditionTrue
		}
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: c, Status: status, Reason: "KubeletTold", Message: "kubelet has told how it is", LastHeartbeatTime: since, LastTransitionTime: since})
	}
	for k := range nodeShown {
		n.Status.Images = append(n.Status.Images, corev1.ContainerImage{Names: []string{fmt.Sprintf("registry.example.com/release/art@sha256:%064d", k), fmt.Sprintf("registry.example.com/release/art:tag-%d", k)}, SizeBytes: 123456789})
	}
	return m, n
}

// managed is who wrote which field, as of so many writers.
func managed(writers int) (all []metav1.ManagedFieldsEntry) {
	fields := map[string]any{}
	for k := range 25 {
		fields[fmt.Sprintf("f:field-%d", k)] = map[string]any{"f:part": map[string]any{}}
	}
	raw, _ := json.Marshal(map[string]any{"f:metadata": fields}) // strings only
	for i := range writers {
		all = append(all, metav1.ManagedFieldsEntry{Manager: fmt.Sprint("writer-", i), Operation: "Update", APIVersion: "v1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(raw))})
	}
	return all
}
