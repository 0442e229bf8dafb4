// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// earlier is a commit of the first days whose manifests could be installed.
const earlier = "f4ce4cc515793b84d1d0126be2dbc4c1d05eb70a"

// Whoever comes from early manifests applies the present ones over them: no Machine and no MachineSet changes, not even
// in its version, all of them are read as before, and everybody may still write to them what is there.
func TestUpgradeLeavesMachinesAlone(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	old := t.TempDir()
	archive := exec.CommandContext(t.Context(), "git", "archive", earlier, "config")
	archive.Dir = repository(t)
	tree, err := archive.Output()
	if err != nil {
		t.Skipf("this clone has no history: %v", err)
	}
	unpack := exec.CommandContext(t.Context(), "tar", "-x", "-C", old)
	unpack.Stdin = bytes.NewReader(tree)
	if out, err := unpack.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	k := startCluster(t)
	install := func(config string) {
		k.must(t, "apply", "--server-side", "--force-conflicts", "-f", filepath.Join(config, "namespace.yaml"))
		for _, part := range []string{"crd", "rbac", "policy"} {
			if _, err := os.Stat(filepath.Join(config, part)); err == nil {
				k.must(t, "apply", "--server-side", "--force-conflicts", "-k", filepath.Join(config, part))
			}
		}
		k.must(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	}
	install(filepath.Join(old, "config"))
	k.creatable(t, upgraded)
	k.mustGiven(t, upgraded, "create", "-f", "-")
	k.must(t, "patch", "machine", "kept", "-n", "openshift-machine-api", "--subresource=status", "--type=merge", "-p",
		`{"status":{"phase":"Running","nodeRef":{"kind":"Node","name":"kept","uid":"1"},"addresses":[{"type":"InternalIP","address":"10.0.0.1"}]}}`)
	objects := func() string {
		return k.must(t, "get", "machines,machinesets", "-n", "openshift-machine-api", "-o", `jsonpath={range .items[*]}{.kind} {.metadata.name} {.metadata.uid} {.metadata.resourceVersion} {.spec} {.status}{"\n"}{end}`)
	}
	before := objects()
	install(filepath.Join(repository(t), "config"))
	if after := objects(); after != before || strings.Count(after, "\n") != 2 {
		t.Errorf("the objects are\n%s\nwere\n%s", after, before)
	}
	if got := k.must(t, "get", "machine", "kept", "-n", "openshift-machine-api"); !strings.Contains(got, "Running") {
		t.Errorf("kubectl shows %s", got)
	}
	for _, object := range []string{"machine/kept", "machineset/kept"} {
		k.must(t, "annotate", object, "example.com/seen=yes", "-n", "openshift-machine-api")
	}
}

const upgraded = `apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata: {name: kept, namespace: openshift-machine-api, labels: {machine.openshift.io/cluster-api-cluster: c}}
spec:
  replicas: 1
  selector: {matchLabels: {machine.openshift.io/cluster-api-machineset: kept}}
  template:
    metadata: {labels: {machine.openshift.io/cluster-api-cluster: c, machine.openshift.io/cluster-api-machineset: kept}}
    spec:
      providerSpec:
        value: {apiVersion: kubemark.machine.openshift.io/v1alpha1, kind: KubemarkMachineProviderSpec, flavor: 4c12g30d}
---
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata:
  name: kept
  namespace: openshift-machine-api
  finalizers: [machine.machine.openshift.io]
  labels: {machine.openshift.io/cluster-api-cluster: c, machine.openshift.io/cluster-api-machineset: kept}
spec:
  providerID: kubemark://kept
  providerSpec:
    value: {apiVersion: kubemark.machine.openshift.io/v1alpha1, kind: KubemarkMachineProviderSpec, flavor: 4c12g30d}
`
