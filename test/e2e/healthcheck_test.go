// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// Health checks as kubectl shows them: columns, defaults, refusals (SPEC B47, B48). Those of both groups are served, as the
// walk-through writes them (S88, S89, B61), and what people call machinehealthchecks are those of machine.openshift.io,
// though the other group comes first in the alphabet.
func TestHealthChecks(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	k := startCluster(t)
	k.must(t, "apply", "-k", crd)
	k.must(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	k.must(t, "apply", "-f", "../../config/namespace.yaml")
	for _, sample := range []string{"machinehealthcheck.yaml", "machinehealthcheck-v1alpha1.yaml"} {
		k.must(t, "apply", "-f", "../../config/samples/"+sample)
	}
	for word, want := range map[string]string{
		"mhc":                       "machinehealthcheck.machine.openshift.io/workers",
		"machinehealthcheck":        "machinehealthcheck.machine.openshift.io/workers",
		"machinehealthchecks":       "machinehealthcheck.machine.openshift.io/workers",
		"MachineHealthCheck":        "machinehealthcheck.machine.openshift.io/workers",
		"legacymhc":                 "machinehealthcheck.healthchecking.openshift.io/example",
		"legacymachinehealthchecks": "machinehealthcheck.healthchecking.openshift.io/example",
	} {
		if got := strings.TrimSpace(k.must(t, "get", word, "-n", "openshift-machine-api", "-o", "name")); got != want {
			t.Errorf("kubectl get %s shows %s, want %s", word, got, want)
		}
	}
	shown := strings.Fields(k.must(t, "get", "mhc", "-n", "openshift-machine-api"))
	if got, want := strings.Join(shown[:4], " "), "NAME MAXUNHEALTHY EXPECTEDMACHINES CURRENTHEALTHY"; got != want {
		t.Errorf("the columns are %s, want %s", got, want)
	}

	check := func(spec string) string {
		return `{"apiVersion": "machine.openshift.io/v1beta1", "kind": "MachineHealthCheck",
			"metadata": {"name": "plain", "namespace": "openshift-machine-api"}, "spec": {"selector": {}, ` + spec + `}}`
	}
	got := k.mustGiven(t, check(`"unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "300s"}]`),
		"create", "-f", "-", "-o", "jsonpath={.spec.maxUnhealthy}/{.spec.nodeStartupTimeout}")
	if want := "100%/10m"; strings.TrimSpace(got) != want {
		t.Errorf("maxUnhealthy and nodeStartupTimeout are %s, want %s", got, want)
	}
	for field, spec := range map[string]string{
		"spec.unhealthyConditions":            `"unhealthyConditions": []`,
		"spec.unhealthyConditions[0].status":  `"unhealthyConditions": [{"type": "Ready", "status": "", "timeout": "300s"}]`,
		"spec.unhealthyConditions[0].timeout": `"unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "soon"}]`,
		"spec.maxUnhealthy":                   `"maxUnhealthy": "some", "unhealthyConditions": [{"type": "Ready", "status": "False", "timeout": "300s"}]`,
	} {
		k.refused(t, check(spec), []string{field}, "create", "--dry-run=server", "-f", "-")
	}
}
