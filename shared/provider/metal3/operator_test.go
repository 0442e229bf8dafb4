// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
	"github.com/machine-functions/machine-functions/test/local/controlplane"
)

// TestConformanceWithTheOperator runs the suite against a real kube-apiserver on which the real baremetal-operator looks
// after hosts; its own test provisioner stands for the hardware.
func TestConformanceWithTheOperator(t *testing.T) {
	t.Parallel()
	programs := os.Getenv("METAL3") // test/metal3/build.sh prints it
	if programs == "" {
		t.Skip("make test-metal3 runs this")
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{Dir: t.TempDir(), Args: []string{"--kwok=false"}, Progress: t.Output()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	hosts := operate(t, plane, programs, 6)
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		h := harness(newStock(0))
		h.Provider, h.Patience, h.Pace = Provider(hosts), 3*time.Minute, time.Second/2
		h.Exhaust = func(exhausted bool) { take(t, hosts, exhausted) }
		h.Hang, h.Writes, h.Untagged, h.Foreign = nil, nil, nil, nil
		return h
	})
}

// operate installs the operator with n hosts, and returns when they are available.
func operate(t *testing.T, plane *controlplane.ControlPlane, programs string, n int) Hosts {
	t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	hosts, err := NewHosts(config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hosts.List(t.Context(), "machines"); provider.CodeOf(err) != provider.Denied || !strings.Contains(err.Error(), "is the baremetal-operator installed?") {
		t.Errorf("List without the operator: %v", err)
	}
	crds, err := filepath.Glob(filepath.Join(programs, "crd", "*.yaml"))
	if err != nil || len(crds) == 0 {
		t.Fatalf("no CRDs in %s: %v", programs, err)
	}
	for _, file := range crds {
		crd, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := plane.Apply(t.Context(), string(crd)); err != nil {
			t.Fatal(err)
		}
	}
	if err := plane.Apply(t.Context(), manifests(t, n)); err != nil {
		t.Fatal(err)
	}
	run(t, filepath.Join(programs, "baremetal-operator"), plane.Kubeconfig)
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(time.Second / 2) {
		all, err := hosts.List(t.Context(), "machines")
		if err != nil {
			t.Fatal(err)
		}
		ready := 0
		for _, h := range all {
			if h.Status.Provisioning.State == metal3v1alpha1.StateAvailable {
				ready++
			}
		}
		if ready == n {
			return hosts
		}
		if time.Now().After(end) {
			t.Fatalf("%d of %d hosts are available: %+v", ready, n, all)
		}
	}
}

// run starts the operator and stops it when the test ends.
func run(t *testing.T, program, kubeconfig string) {
	t.Helper()
	output, err := os.Create(filepath.Join(t.TempDir(), "operator.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program,
		"-test-mode", "-namespace", "machines", "-webhook-port", "0", "-metrics-addr", "127.0.0.1:0", "-health-addr", "127.0.0.1:0",
		"-kube-api-qps", "200", "-kube-api-burst", "400")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "POD_NAMESPACE=machines")
	cmd.Stdout, cmd.Stderr = output, output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended already: Wait says so
		waited := cmd.Wait()
		if t.Failed() {
			text, _ := os.ReadFile(output.Name())
			t.Logf("the operator ended with %v, after\n%.20000s", waited, text)
		}
	})
}

// manifests are n hosts that need no inspection, each with an address of its own.
func manifests(t *testing.T, n int) string {
	t.Helper()
	all := []string{
		`{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "machines"}}`,
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "bmc", "namespace": "machines"}, "stringData": {"username": "admin", "password": "pw"}}`,
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "worker-user-data-managed", "namespace": "machines"}, "stringData": {"userData": "{}"}}`,
	}
	for i := range n {
		h := free(i)
		details, err := json.Marshal(h.Status.HardwareDetails)
		if err != nil {
			t.Fatal(err)
		}
		quoted, err := json.Marshal(string(details))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf(`{"apiVersion": "metal3.io/v1alpha1", "kind": "BareMetalHost",
			"metadata": {"name": %q, "namespace": "machines", "labels": {"role": "worker"},
				"annotations": {"inspect.metal3.io": "disabled", "inspect.metal3.io/hardwaredetails": %s}},
			"spec": {"online": true, "bootMACAddress": "00:00:00:00:00:%02x",
				"bmc": {"address": "redfish+http://192.0.2.%d/redfish/v1/Systems/1", "credentialsName": "bmc"}}}`, h.Name, quoted, i, i+1))
	}
	return strings.Join(all, "\n---\n")
}

// take lets somebody else claim every free host, or give them back.
func take(t *testing.T, hosts Hosts, exhausted bool) {
	t.Helper()
	all, err := hosts.List(t.Context(), "machines")
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range all {
		p := patch{Metadata: patchMetadata{ResourceVersion: h.ResourceVersion}}
		switch ref := h.Spec.ConsumerRef; {
		case exhausted && ref == nil:
			p.Spec = map[string]any{"consumerRef": corev1.ObjectReference{Kind: "Metal3Machine", Name: "foreign"}}
		case !exhausted && ref != nil && ref.Name == "foreign":
			p.Spec = map[string]any{"consumerRef": nil}
		default:
			continue
		}
		if _, err := hosts.Patch(t.Context(), h.Namespace, h.Name, p); err != nil {
			t.Fatal(err)
		}
	}
}
