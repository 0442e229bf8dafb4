// SPDX-License-Identifier: Apache-2.0

package controlplane_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/test/local/controlplane"
	"github.com/machine-functions/machine-functions/test/local/held"
)

// stopped labels a Node whose simulated kubelet is down.
const stopped = "machine-functions.dev/kubelet=stopped"

// cluster adds what the tests need to a control plane.
type cluster struct{ *controlplane.ControlPlane }

func TestControlPlane(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	plane, err := controlplane.Start(t.Context(), controlplane.Options{
		Dir: t.TempDir(), Progress: t.Output(),
		Args: []string{"--controller-manager-arg=--node-monitor-grace-period=20s"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := cluster{plane}
	t.Cleanup(func() {
		if err := plane.Stop(); err != nil {
			t.Error(err)
		}
	})
	t.Run("parts", func(t *testing.T) {
		t.Run("leaves no probe behind", c.leavesNoProbe)
		t.Run("serves openshift's resources", c.servesOpenShift)
		t.Run("applies a kustomization", c.appliesKustomization)
		t.Run("knows users by certificate", c.knowsUsers)
		t.Run("knows service accounts by token", c.knowsServiceAccounts)
		t.Run("nodes become ready in their time", c.nodesBecomeReady)
		t.Run("jobs run", c.jobsRun)
		t.Run("drain evicts", c.drainEvicts)
		t.Run("a stopped kubelet keeps still", c.stoppedKubelet)
		t.Run("the folder is taken", c.folderIsTaken)
	})
}

func (c cluster) leavesNoProbe(t *testing.T) {
	if got := c.kubectl(t, "get", "nodes,pods", "-A", "-o", "name"); got != "" {
		t.Errorf("objects left: %s", got)
	}
}

func (c cluster) servesOpenShift(t *testing.T) {
	t.Parallel()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/openshift/api").Output()
	if err != nil {
		t.Fatal(err)
	}
	manifests := filepath.Join(strings.TrimSpace(string(dir)), "machine/v1beta1/zz_generated.crd-manifests")
	for _, file := range []string{"machines-Default.crd.yaml", "machinesets-Default.crd.yaml", "machinehealthchecks.crd.yaml"} {
		matches, err := filepath.Glob(filepath.Join(manifests, "*"+file))
		if err != nil || len(matches) != 1 {
			t.Fatalf("%s: found %v", file, matches)
		}
		c.kubectl(t, "apply", "-f", matches[0])
	}
	c.kubectl(t, "wait", "--for=condition=Established", "crd", "machines.machine.openshift.io", "machinesets.machine.openshift.io")
	c.apply(t, `
apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata: {name: general, namespace: default}
spec:
  replicas: 0
  selector: {matchLabels: {set: general}}
  template:
    metadata: {labels: {set: general}}
    spec: {providerSpec: {value: {kind: Any}}}
`)
	c.kubectl(t, "scale", "machineset/general", "--replicas=3")
	if got := c.kubectl(t, "get", "machineset/general", "-o", "jsonpath={.spec.replicas}"); got != "3" {
		t.Errorf("replicas are %s, want 3", got)
	}
}

func (c cluster) appliesKustomization(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"kustomization.yaml": "namespace: default\nnamePrefix: my-\nresources: [settings.yaml]\n",
		"settings.yaml":      "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings}\ndata: {a: b}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c.kubectl(t, "apply", "-k", dir)
	if got := c.kubectl(t, "get", "configmap/my-settings", "-o", "jsonpath={.data.a}"); got != "b" {
		t.Errorf("data is %q, want b", got)
	}
}

func (c cluster) knowsUsers(t *testing.T) {
	t.Parallel()
	c.kubectl(t, "create", "clusterrolebinding", "viewers", "--clusterrole=view", "--group=viewers")
	config, err := c.UserKubeconfig(t.Context(), "scale-machineset", "viewers")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, config, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := c.kubectl(t, "--kubeconfig="+path, "auth", "whoami", "-o", "jsonpath={.status.userInfo.username}"); got != "scale-machineset" {
		t.Errorf("user is %q", got)
	}
	c.kubectl(t, "--kubeconfig="+path, "get", "pods")
	c.forbidden(t, "--kubeconfig="+path, "delete", "configmap", "kube-root-ca.crt")
}

func (c cluster) knowsServiceAccounts(t *testing.T) {
	t.Parallel()
	c.kubectl(t, "create", "namespace", "team")
	c.kubectl(t, "-n", "team", "create", "serviceaccount", "reader")
	c.kubectl(t, "-n", "team", "create", "role", "reader", "--verb=get,list", "--resource=configmaps")
	c.kubectl(t, "-n", "team", "create", "rolebinding", "reader", "--role=reader", "--serviceaccount=team:reader")
	token := c.kubectl(t, "-n", "team", "create", "token", "reader")
	as := []string{
		"--kubeconfig=/dev/null", "--server=" + c.Server, "--certificate-authority=" + filepath.Join(c.Dir, "pki", "ca.crt"),
		"--token=" + token, "--namespace=team",
	}
	c.kubectl(t, append(as, "get", "configmaps")...)
	c.forbidden(t, append(as, "get", "secrets")...)
	c.forbidden(t, append(as, "get", "configmaps", "--namespace=default")...)
}

func (c cluster) nodesBecomeReady(t *testing.T) {
	t.Parallel()
	c.apply(t, node("slow", "machine-functions.dev/ready-after-seconds: '15'"))
	c.eventually(t, "node/slow", `{.status.conditions[?(@.type=="Ready")].status}`, "False")
	begin := time.Now()
	c.eventually(t, "node/slow", `{.status.conditions[?(@.type=="Ready")].status}`, "True")
	t.Logf("ready after %v", time.Since(begin))
	got := c.kubectl(t, "get", "node/slow", "-o", "jsonpath={.spec.providerID} {.status.allocatable.cpu} {.status.nodeInfo.kubeletVersion}")
	if want := "kubemark://slow 3500m v1.36.3"; got != want {
		t.Errorf("node says %q, want %q", got, want)
	}
	c.eventually(t, "node/slow", "{.spec.taints}", "")
	c.kubectl(t, "label", "node/slow", "machine-functions.dev/kubelet=unready")
	c.eventually(t, "node/slow", `{.status.conditions[?(@.type=="Ready")].status}`, "False")
	c.kubectl(t, "label", "node/slow", "machine-functions.dev/kubelet-")
	c.eventually(t, "node/slow", `{.status.conditions[?(@.type=="Ready")].status}`, "True")
}

func (c cluster) jobsRun(t *testing.T) {
	t.Parallel()
	c.apply(t, node("jobs", ""))
	c.apply(t, job("sums", "jobs", 20, "15"))
	begin := time.Now()
	c.eventually(t, "job/sums", "{.status.active}", "20")
	c.kubectl(t, "wait", "--for=condition=Complete", "job/sums", "--timeout=2m")
	t.Logf("20 pods of 15 s completed in %v", time.Since(begin))
}

func (c cluster) drainEvicts(t *testing.T) {
	t.Parallel()
	c.apply(t, node("drained", ""))
	c.apply(t, job("long", "drained", 2, "600"))
	c.eventually(t, "job/long", "{.status.ready}", "2")
	out := c.kubectl(t, "drain", "drained", "--timeout=2m")
	if !strings.Contains(out, "evicted") {
		t.Errorf("drain says %q", out)
	}
	c.eventually(t, "job/long", "{.status.failed} {.status.terminating}", "2 0")
}

func (c cluster) stoppedKubelet(t *testing.T) {
	t.Parallel()
	c.apply(t, node("lost", ""))
	c.apply(t, node("steady", "")) // a zone of lost nodes only is a case of its own for the node lifecycle controller
	c.apply(t, job("cut", "lost", 2, "20"))
	c.eventually(t, "job/cut", "{.status.ready}", "2")
	begin := time.Now()
	c.kubectl(t, "label", "node/lost", stopped)
	pods := strings.Fields(c.kubectl(t, "get", "pods", "-l", "job-name=cut", "-o", "name"))
	c.kubectl(t, "delete", pods[0], "--wait=false")
	c.eventually(t, "node/lost", `{.status.conditions[?(@.type=="Ready")].status}`, "Unknown")
	t.Logf("unknown after %v", time.Since(begin))
	time.Sleep(time.Until(begin.Add(22 * time.Second))) // by then both would have completed
	for _, pod := range pods {
		if got := c.kubectl(t, "get", pod, "-o", "jsonpath={.status.phase}"); got != "Running" {
			t.Errorf("%s on the lost node is %s", pod, got)
		}
	}

	begin = time.Now()
	c.kubectl(t, "label", "node/lost", "machine-functions.dev/kubelet-")
	c.eventually(t, "node/lost", `{.status.conditions[?(@.type=="Ready")].status}`, "True")
	t.Logf("ready again after %v", time.Since(begin))
	c.kubectl(t, "wait", "--for=delete", pods[0], "--timeout=1m")
	c.eventually(t, pods[1], "{.status.phase}", "Succeeded")
	if got := c.kubectl(t, "get", "node/steady", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].status}`); got != "True" {
		t.Errorf("the other node's Ready is %s", got)
	}
}

func (c cluster) folderIsTaken(t *testing.T) {
	t.Parallel()
	second, err := controlplane.Start(t.Context(), controlplane.Options{Dir: c.Dir, Binary: c.Binary})
	if err == nil {
		t.Fatal(errors.Join(errors.New("a second control plane started in the same folder"), second.Stop()))
	}
	if want := "in use by process " + strconv.Itoa(c.PID()); !strings.Contains(err.Error(), want) {
		t.Errorf("error is %q, want one with %q", err, want)
	}
}

func TestStartAndStop(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	dir := t.TempDir()
	start := func(o controlplane.Options) (*controlplane.ControlPlane, error) {
		o.Dir, o.Progress = dir, t.Output()
		return controlplane.Start(t.Context(), o)
	}
	addresses, sockets, err := held.Addresses(1) // nobody else is given its port once it is free again
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sockets[0].Close() })
	taken, err := net.Listen("tcp", addresses[0])
	if err != nil {
		t.Fatal(err)
	}
	port := taken.Addr().(*net.TCPAddr).Port
	if _, err := start(controlplane.Options{Port: port}); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("port %d on 127.0.0.1 is taken", port)) {
		t.Errorf("error for a taken port is %v", err)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}

	first, err := start(controlplane.Options{Port: port})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Apply(t.Context(), node("kept", "")); err != nil {
		t.Fatal(err)
	}
	cluster{first}.eventually(t, "node/kept", `{.status.conditions[?(@.type=="Ready")].status}`, "True")
	stopIn(t, first)

	again, err := start(controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	cluster{again}.kubectl(t, "annotate", "node/kept", "seen=again")
	stopIn(t, again)

	fresh, err := start(controlplane.Options{Fresh: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := (cluster{fresh}).kubectl(t, "get", "nodes", "-o", "name"); got != "" {
		t.Errorf("a fresh control plane has %s", got)
	}
	stopIn(t, fresh)
}

func stopIn(t *testing.T, c *controlplane.ControlPlane) {
	t.Helper()
	begin := time.Now()
	if err := c.Stop(); err != nil {
		t.Fatal(err)
	}
	t.Logf("stopped in %v", time.Since(begin))
	if _, err := os.Stat(filepath.Join(c.Dir, "ready")); err == nil {
		t.Error("the file ready is still there")
	}
}

func (c cluster) kubectl(t *testing.T, args ...string) string {
	t.Helper()
	out, err := c.Kubectl(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func (c cluster) apply(t *testing.T, manifest string) {
	t.Helper()
	if err := c.Apply(t.Context(), manifest); err != nil {
		t.Fatal(err)
	}
}

func (c cluster) forbidden(t *testing.T, args ...string) {
	t.Helper()
	if _, err := c.Kubectl(t.Context(), args...); err == nil || !strings.Contains(err.Error(), "Forbidden") {
		t.Errorf("kubectl %s: error is %v, want Forbidden", args[len(args)-2:], err)
	}
}

// eventually waits until the object's field has the value.
func (c cluster) eventually(t *testing.T, object, field, want string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		got, err := c.Kubectl(ctx, "get", object, "-o", "jsonpath="+field)
		if err == nil && got == want {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s %s is %q (%v), want %q", object, field, got, err, want)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

func node(name, annotation string) string {
	return fmt.Sprintf(`
apiVersion: v1
kind: Node
metadata:
  name: %[1]s
  labels: {kubernetes.io/hostname: %[1]s}
  annotations:
    kwok.x-k8s.io/node: fake
    %[2]s
spec: {providerID: "kubemark://%[1]s"}
status:
  addresses: [{type: Hostname, address: %[1]s}]
  capacity: {cpu: "4", memory: 12Gi, pods: "110"}
  allocatable: {cpu: 3500m, memory: 11Gi, pods: "110"}
`, name, annotation)
}

// job has pods that sleep so many seconds on one node.
func job(name, node string, pods int, seconds string) string {
	return fmt.Sprintf(`
apiVersion: batch/v1
kind: Job
metadata: {name: %s, namespace: default}
spec:
  parallelism: %[3]d
  completions: %[3]d
  template:
    spec:
      restartPolicy: Never
      nodeSelector: {kubernetes.io/hostname: %[2]s}
      containers: [{name: sleep, image: busybox, command: [sleep, "%[4]s"], resources: {requests: {cpu: 100m}}}]
`, name, node, pods, seconds)
}
