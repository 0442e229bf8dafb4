// SPDX-License-Identifier: Apache-2.0

package simulator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/jsonpath"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/kubemark"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
	"github.com/machine-functions/machine-functions/test/local/simulator"
)

// suite is a simulator on a control plane, with a driver for the cloud that it plays.
type suite struct {
	*controlplane.ControlPlane
	config  *rest.Config // of the simulator's own account
	api     rest.Interface
	records kubemark.Store
	driver  provider.Driver
}

func TestSimulator(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	s := start(t)
	tests := []struct { // the longest first
		name string
		run  func(*testing.T)
	}{
		{"a node joins as the spec says and runs pods until its instance goes", s.joins},
		{"a kubelet turns unhealthy in turns", s.turnsUnhealthyPeriodically},
		{"a kubelet turns unhealthy once", s.turnsUnhealthy},
		{"a deleted node comes back with the power", s.powerCycle},
		{"an instance that the cloud loses leaves its node", s.vanishes},
		{"a dead kubelet is not a dead instance", s.diesAlone},
		{"an instance that never boots has no node", s.neverBoots},
		{"a node of the same name is taken over", s.takesOver},
	}
	t.Run("instances", func(t *testing.T) {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				tt.run(t)
			})
		}
	})
	s.restarts(t)
}

func start(t *testing.T) *suite {
	t.Helper()
	plane, err := controlplane.Start(t.Context(), controlplane.Options{
		Dir: t.TempDir(), Progress: t.Output(), Args: []string{"--controller-manager-arg=--node-monitor-grace-period=20s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := &suite{ControlPlane: plane}
	s.apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: kubemark}")
	s.kubectl(t, "apply", "-f", "../../../config/overlays/kubemark/kubelets.yaml")
	identity, err := plane.UserKubeconfig(t.Context(), "system:serviceaccount:kubemark:kubemark")
	if err == nil {
		s.config, err = clientcmd.RESTConfigFromKubeConfig(identity)
	}
	if err == nil {
		s.records, err = kubemark.NewConfigMaps(s.config)
	}
	if err == nil {
		s.driver, err = kubemark.Provider(s.records).Open(t.Context(), provider.Account{ClusterID: "cluster-a389", Region: "regionOne"})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.api = s.admin(t)
	simulator := s.simulator(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		simulator.Run(ctx)
	}()
	t.Cleanup(func() { <-done })
	t.Cleanup(cancel)
	// Beside a healthy node, one that is lost is really lost.
	s.create(t, "beside", `{"flavor": "2c8g30d", "bootSeconds": 0}`)
	s.eventually(t, "nodes/beside", ready, "True")
	return s
}

func (s *suite) admin(t *testing.T) rest.Interface {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	config.NegotiatedSerializer, config.QPS = serializer.NewCodecFactory(runtime.NewScheme()), -1
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func (s *suite) simulator(t *testing.T) *simulator.Simulator {
	t.Helper()
	sim, err := simulator.New(s.config, slog.New(slog.NewJSONHandler(t.Output(), nil)))
	if err != nil {
		t.Fatal(err)
	}
	return sim
}

const (
	ready   = `{.status.conditions[?(@.type=="Ready")].status}`
	kubelet = `{.metadata.labels.machine-functions\.dev/kubelet}`
)

func (s *suite) joins(t *testing.T) {
	t.Helper()
	begin := time.Now()
	i := s.create(t, "general-purpose-1a-bggcg", `{"flavor": "4c12g30d", "zone": "nova", "labels": {"example.com/rack": "7"}, "bootSeconds": 3, "readySeconds": 2}`)
	created := time.Since(begin)
	s.eventually(t, "nodes/"+i.Name, `{.spec.providerID}`, i.ProviderID)
	joined := time.Since(begin)
	s.eventually(t, "nodes/"+i.Name, ready, "True")
	t.Logf("instance after %v, node after %v, ready after %v", created, joined, time.Since(begin))

	s.apply(t, pod("stays", i.Name))
	s.eventually(t, "namespaces/default/pods/stays", `{.status.phase}`, "Running")
	fields := map[string]string{
		`{.status.capacity.cpu} {.status.allocatable.memory} {.status.capacity.pods} {.status.capacity.ephemeral-storage}`:                      "4 12Gi 110 30Gi",
		`{.metadata.labels.kubernetes\.io/hostname} {.metadata.labels.example\.com/rack} {.metadata.labels.node\.kubernetes\.io/instance-type}`: i.Name + " 7 4c12g30d",
		`{.status.addresses[?(@.type=="InternalIP")].address} {.status.addresses[?(@.type=="InternalDNS")].address}`:                            i.Addresses[0].Address + " " + i.Name,
		`{.spec.taints}`: "",
	}
	for field, want := range fields {
		s.eventually(t, "nodes/"+i.Name, field, want)
	}
	if roles := s.kubectl(t, "get", "node", i.Name, "--no-headers"); !strings.Contains(roles, "worker") {
		t.Errorf("no role worker in %s", roles)
	}

	s.delete(t, i)
	s.eventually(t, "nodes/"+i.Name, ready, "Unknown")
	if phase := s.get(t, "namespaces/default/pods/stays", `{.status.phase}`); phase != "Running" {
		t.Errorf("the pod of a node that is gone is %s, want it as it was", phase)
	}
	s.kubectl(t, "delete", "pod", "stays", "--force", "--grace-period=0")
}

func (s *suite) neverBoots(t *testing.T) {
	t.Helper()
	i := s.create(t, "never", `{"flavor": "2c8g30d", "neverBoot": true, "bootSeconds": 1}`)
	s.eventuallyState(t, i, "ACTIVE")
	time.Sleep(3 * time.Second)
	if got := s.kubectl(t, "get", "node", "never", "--ignore-not-found"); got != "" {
		t.Errorf("a node joined: %s", got)
	}
}

func (s *suite) turnsUnhealthy(t *testing.T) {
	t.Helper()
	i := s.create(t, "once", `{"flavor": "2c8g30d", "bootSeconds": 0, "turnUnhealthyAfter": true, "healthyDuration": "15s"}`)
	s.eventually(t, "nodes/once", ready, "True")
	s.eventually(t, "nodes/once", ready, "False")
	s.eventuallyState(t, i, "ACTIVE")
}

func (s *suite) turnsUnhealthyPeriodically(t *testing.T) {
	t.Helper()
	s.create(t, "turns", `{"flavor": "2c8g30d", "bootSeconds": 0, "turnUnhealthyPeriodically": true, "healthyDuration": "5s", "unhealthyDuration": "4s"}`)
	for range 2 {
		s.eventually(t, "nodes/turns", ready, "True")
		s.eventually(t, "nodes/turns", ready, "False")
	}
}

func (s *suite) vanishes(t *testing.T) {
	t.Helper()
	i := s.create(t, "vanishes", `{"flavor": "2c8g30d", "bootSeconds": 0, "vanishAfter": "15s"}`)
	s.eventually(t, "nodes/vanishes", ready, "True")
	s.eventually(t, "nodes/vanishes", kubelet, "stopped")
	if found, err := s.driver.Find(t.Context(), provider.Ref{UID: i.UID}); err != nil || len(found) != 0 {
		t.Errorf("found %v, %v after the cloud lost it", found, err)
	}
}

func (s *suite) diesAlone(t *testing.T) {
	t.Helper()
	i := s.create(t, "dies", `{"flavor": "2c8g30d", "bootSeconds": 0}`)
	s.eventually(t, "nodes/dies", ready, "True")
	s.fault(t, i, "stopped")
	s.eventually(t, "nodes/dies", kubelet, "stopped")
	s.eventuallyState(t, i, "ACTIVE")
	s.fault(t, i, "")
	s.eventually(t, "nodes/dies", kubelet, "")
	s.fault(t, i, "unready")
	s.eventually(t, "nodes/dies", ready, "False")
	s.fault(t, i, "error")
	s.eventuallyState(t, i, "ERROR")
	s.eventually(t, "nodes/dies", kubelet, "stopped")
}

func (s *suite) powerCycle(t *testing.T) {
	t.Helper()
	i := s.create(t, "cycles", `{"flavor": "2c8g30d", "bootSeconds": 0}`)
	s.eventually(t, "nodes/cycles", ready, "True")
	s.kubectl(t, "delete", "node", "cycles")
	time.Sleep(3 * time.Second)
	if got := s.kubectl(t, "get", "node", "cycles", "--ignore-not-found"); got != "" {
		t.Errorf("a kubelet that runs registers again: %s", got)
	}
	s.fault(t, i, "off")
	s.eventuallyState(t, i, "SHUTOFF")
	s.eventually(t, "namespaces/kubemark/configmaps/"+i.ID, `{.data.registered}`, "false")
	s.fault(t, i, "")
	s.eventually(t, "nodes/cycles", ready, "True")
}

func (s *suite) takesOver(t *testing.T) {
	t.Helper()
	before := s.create(t, "taken", `{"flavor": "2c8g30d", "bootSeconds": 0}`)
	s.eventually(t, "nodes/taken", ready, "True")
	s.delete(t, before)
	s.eventually(t, "nodes/taken", kubelet, "stopped")
	after := s.attempt(t, "taken", 2, `{"flavor": "4c12g30d", "bootSeconds": 0}`)
	s.eventually(t, "nodes/taken", kubelet, "")
	s.eventually(t, "nodes/taken", `{.spec.providerID} {.status.capacity.cpu}`, before.ProviderID+" 4")
	s.eventually(t, "nodes/taken", ready, "True")
	s.delete(t, after)
	s.eventually(t, "nodes/taken", kubelet, "stopped")
}

func (s *suite) restarts(t *testing.T) {
	t.Helper()
	again := s.simulator(t)
	version := func() string {
		return s.get(t, "namespaces/kubemark/configmaps", `{.items[*].metadata.resourceVersion}`)
	}
	gone := func() (all, gone int) {
		history, err := kubemark.History(t.Context(), s.records)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range history {
			if !r.Gone.IsZero() {
				gone++
			}
		}
		return len(history), gone
	}
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(250 * time.Millisecond) { // what ended last is written by the next round
		if _, n := gone(); n == 4 {
			break
		}
	}
	before := version()
	if err := again.Round(t.Context(), time.Now()); err != nil {
		t.Error(err)
	}
	if after := version(); after != before {
		t.Errorf("records changed from %s to %s", before, after)
	}
	if all, n := gone(); all != 10 || n != 4 {
		t.Errorf("history has %d instances, %d of them gone, want 10 and 4", all, n)
	}
	if err := again.Round(t.Context(), time.Now().Add(2*time.Hour)); err != nil {
		t.Error(err)
	}
	if all, _ := gone(); all != 6 {
		t.Errorf("%d instances are remembered, want 6", all)
	}
}

// create makes an instance as provision-machine does.
func (s *suite) create(t *testing.T, name, spec string) provider.Instance {
	t.Helper()
	return s.attempt(t, name, 1, spec)
}

func (s *suite) attempt(t *testing.T, name string, n int, spec string) provider.Instance {
	t.Helper()
	resolved, err := s.driver.Resolve(t.Context(), json.RawMessage(spec))
	if err != nil {
		t.Fatal(err)
	}
	uid := types.UID("uid-" + name)
	i, err := s.driver.Create(t.Context(), provider.Ref{UID: uid, Name: name, Token: machine.Token(uid, n, "")}, resolved)
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func (s *suite) delete(t *testing.T, i provider.Instance) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		err := s.driver.Delete(t.Context(), provider.Ref{UID: i.UID, ID: i.ID})
		if provider.CodeOf(err) == provider.NotFound {
			return
		}
		if err != nil || time.Now().After(end) {
			t.Fatalf("delete %s: %v", i.Name, err)
		}
	}
}

// fault does to a record what a person would.
func (s *suite) fault(t *testing.T, i provider.Instance, fault string) {
	t.Helper()
	s.kubectl(t, "-n=kubemark", "patch", "configmap", i.ID, "--type=merge", "-p", fmt.Sprintf(`{"data":{"fault":%q}}`, fault))
}

func (s *suite) eventuallyState(t *testing.T, i provider.Instance, want string) {
	t.Helper()
	var found []provider.Instance
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		var err error
		if found, err = s.driver.Find(t.Context(), provider.Ref{UID: i.UID}); err != nil {
			t.Fatal(err)
		}
		if len(found) == 1 && found[0].CloudState == want {
			return
		}
	}
	t.Fatalf("found %+v, want %s", found, want)
}

// eventually waits until a field of an object is as wanted.
func (s *suite) eventually(t *testing.T, object, field, want string) {
	t.Helper()
	got := ""
	for end := time.Now().Add(90 * time.Second); time.Now().Before(end); time.Sleep(250 * time.Millisecond) {
		if got = s.get(t, object, field); got == want {
			return
		}
	}
	t.Fatalf("%s: %s is %q, want %q", object, field, got, want)
}

// get returns a field of an object by its path; empty if there is none.
func (s *suite) get(t *testing.T, path, field string) string {
	t.Helper()
	content, err := s.api.Get().AbsPath("api/v1/" + path).DoRaw(t.Context())
	if apierrors.IsNotFound(err) {
		return ""
	}
	var object any
	if err == nil {
		err = json.Unmarshal(content, &object)
	}
	p := jsonpath.New("field").AllowMissingKeys(true)
	if err == nil {
		err = p.Parse(field)
	}
	var out strings.Builder
	if err == nil {
		err = p.Execute(&out, object)
	}
	if err != nil {
		t.Fatalf("get %s of %s: %v", field, path, err)
	}
	return out.String()
}

func (s *suite) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := s.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatalf("kubectl %v: %v", args, err)
	}
	return strings.TrimSpace(out)
}

func (s *suite) apply(t *testing.T, manifest string) {
	t.Helper()
	if err := s.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
}

func pod(name, node string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Pod
metadata: {name: %s, namespace: default}
spec:
  nodeSelector: {kubernetes.io/hostname: %s}
  tolerations: [{operator: Exists}]
  containers: [{name: main, image: none, resources: {requests: {cpu: 300m, memory: 500Mi}}}]
`, name, node)
}
