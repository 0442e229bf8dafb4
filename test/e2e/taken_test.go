// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// What docs/upgrading.md says about taking everything away while instances stay: step by step, Machines leave their set, lose
// their finalizers and go, kinds and namespace after them. Nothing of it hangs, and who may edit Machines cannot do it.
func TestTakenAwayWithoutItsInstances(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	k := startCluster(t)
	config := filepath.Join(repository(t), "config")
	k.must(t, "apply", "-f", filepath.Join(config, "namespace.yaml"))
	for _, part := range []string{"crd", "rbac", "network", "policy"} {
		k.must(t, "apply", "-k", filepath.Join(config, part))
	}
	k.must(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	k.creatable(t, upgraded)
	k.mustGiven(t, upgraded, "create", "-f", "-")
	const in = "--namespace=openshift-machine-api"
	k.collected(t, in)
	uid := k.must(t, "get", "machineset", "kept", in, "-o", "jsonpath={.metadata.uid}")
	k.must(t, "patch", "machine", "kept", in, "--type=merge", "-p",
		`{"metadata":{"finalizers":["machine.machine.openshift.io"],"ownerReferences":[{"apiVersion":"machine.openshift.io/v1beta1","kind":"MachineSet","name":"kept","uid":"`+uid+`"}]}}`)

	k.must(t, "create", "clusterrole", "editor", "--verb=get,list,patch,delete", "--resource=machines.machine.openshift.io")
	k.must(t, "create", "clusterrolebinding", "editor", "--clusterrole=editor", "--user=somebody")
	k.eventually(t, "an editor cannot take the finalizer off", func() bool {
		_, err := k.as("somebody").run("", "patch", "machine", "kept", in, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`, "--dry-run=server")
		return err != nil && strings.Contains(err.Error(), "lacks the verb repair")
	})

	k.must(t, "delete", "machinesets", "--all", in, "--cascade=orphan")
	if got := k.must(t, "get", "machine", "kept", in, "-o", "jsonpath={.metadata.ownerReferences}{.metadata.deletionTimestamp}"); got != "" {
		t.Errorf("the Machine of a set that went has %s", got)
	}
	k.must(t, "patch", "machine", "kept", in, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	k.must(t, "delete", "machines,machinesets,machinehealthchecks,machineautoscalers", "--all", in, "--timeout=60s")
	for _, part := range []string{"policy", "network", "rbac", "crd"} {
		k.must(t, "delete", "-k", filepath.Join(config, part), "--timeout=60s")
	}
	k.must(t, "delete", "-f", filepath.Join(config, "namespace.yaml"), "--timeout=120s")
	k.refused(t, "", []string{"not found"}, "get", "namespace", "openshift-machine-api")
}

// collected returns once the garbage collector watches Machines: it learns of new kinds every half a minute, and a set that goes
// before that leaves its name on its Machines.
func (k kubectl) collected(t *testing.T, in string) {
	t.Helper()
	k.mustGiven(t, ownerless, "create", "-f", "-")
	k.eventually(t, "a Machine whose set is gone is collected", func() bool {
		got := k.must(t, "get", "machine", "ownerless", in, "--ignore-not-found", "-o", "jsonpath={.metadata.name} {.metadata.deletionTimestamp}")
		return strings.TrimSpace(got) != "ownerless" // gone, or going: where functions run it has an instance by then
	})
}

const ownerless = `apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata:
  name: ownerless
  namespace: openshift-machine-api
  labels: {machine.openshift.io/cluster-api-cluster: c}
  ownerReferences: [{apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, name: gone, uid: 00000000-0000-0000-0000-000000000001}]
spec:
  providerSpec:
    value: {apiVersion: kubemark.machine.openshift.io/v1alpha1, kind: KubemarkMachineProviderSpec, flavor: 4c12g30d}
`
