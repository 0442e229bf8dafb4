// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"
)

// What docs/upgrading.md says about taking everything away while instances stay: step by step, Machines leave their set, lose
// their finalizers and go, kinds and namespace after them. Nothing of it hangs, and who may edit Machines cannot do it. Cluster API's kinds
// are there too, which have the same names: a Machine of theirs stays as it is.
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
	const in, machines, sets, checks = "--namespace=openshift-machine-api", "machines.machine.openshift.io", "machinesets.machine.openshift.io", "machinehealthchecks.machine.openshift.io"
	for plural, kind := range map[string]string{"machines": "Machine", "machinesets": "MachineSet", "machinehealthchecks": "MachineHealthCheck"} {
		k.mustGiven(t, strings.NewReplacer("PLURAL", plural, "KIND", kind).Replace(theirKind), "create", "-f", "-")
	}
	k.must(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	k.creatable(t, theirMachine)
	k.mustGiven(t, theirMachine, "create", "-f", "-")
	if _, err := k.run("", "get", "machine", "kept", in); err == nil || !strings.Contains(err.Error(), "not found") {
		t.Errorf("without a group kubectl takes it for ours: %v", err)
	}
	k.collected(t, in)
	uid := k.must(t, "get", sets, "kept", in, "-o", "jsonpath={.metadata.uid}")
	k.must(t, "patch", machines, "kept", in, "--type=merge", "-p",
		`{"metadata":{"finalizers":["machine.machine.openshift.io"],"ownerReferences":[{"apiVersion":"machine.openshift.io/v1beta1","kind":"MachineSet","name":"kept","uid":"`+uid+`"}]}}`)

	copied := k.must(t, "get", machines+","+sets+","+checks+",legacymachinehealthchecks,machineautoscalers,configmaps", in, "-o", "name")
	for _, one := range []string{"machine.machine.openshift.io/kept", "machineset.machine.openshift.io/kept"} {
		if !strings.Contains(copied, one+"\n") {
			t.Errorf("the copy is without %s: %s", one, copied)
		}
	}
	paused := k.must(t, "annotate", "mhc.machine.openshift.io,"+sets, "--all", in, "cluster.x-k8s.io/paused=")
	if scaled := k.must(t, "scale", sets, "--all", "--replicas=0", in); !strings.Contains(paused, "kept annotated") || !strings.Contains(scaled, "kept scaled") {
		t.Errorf("ours are not meant: %s%s", paused, scaled)
	}

	k.must(t, "create", "clusterrole", "editor", "--verb=get,list,patch,delete", "--resource=machines.machine.openshift.io")
	k.must(t, "create", "clusterrolebinding", "editor", "--clusterrole=editor", "--user=somebody")
	k.eventually(t, "an editor cannot take the finalizer off", func() bool {
		_, err := k.as("somebody").run("", "patch", machines, "kept", in, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`, "--dry-run=server")
		return err != nil && strings.Contains(err.Error(), "lacks the verb repair")
	})

	k.must(t, "delete", sets, "--all", in, "--cascade=orphan")
	if got := k.must(t, "get", machines, "kept", in, "-o", "jsonpath={.metadata.ownerReferences}{.metadata.deletionTimestamp}"); got != "" {
		t.Errorf("the Machine of a set that went has %s", got)
	}
	k.must(t, "patch", machines, "kept", in, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	k.must(t, "delete", machines+","+sets+","+checks+",machineautoscalers", "--all", in, "--timeout=60s")
	if got := k.must(t, "get", "machines.cluster.x-k8s.io", "theirs", in, "-o", "jsonpath={.metadata.finalizers}{.metadata.deletionTimestamp}"); got != `["example.com/theirs"]` {
		t.Errorf("of Cluster API's Machine are left finalizers %s", got)
	}
	k.must(t, "patch", "machines.cluster.x-k8s.io", "theirs", in, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
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
		got := k.must(t, "get", "machines.machine.openshift.io", "ownerless", in, "--ignore-not-found", "-o", "jsonpath={.metadata.name} {.metadata.deletionTimestamp}")
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

// theirKind is as much of a kind of Cluster API's as kubectl knows it by.
const theirKind = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: PLURAL.cluster.x-k8s.io
  annotations: {api-approved.kubernetes.io: https://github.com/kubernetes-sigs/cluster-api}
spec:
  group: cluster.x-k8s.io
  names: {plural: PLURAL, kind: KIND}
  scope: Namespaced
  versions:
  - name: v1beta1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

const theirMachine = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Machine
metadata:
  name: theirs
  namespace: openshift-machine-api
  finalizers: [example.com/theirs]
`
