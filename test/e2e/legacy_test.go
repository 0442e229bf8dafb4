// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// Health checks of both groups are served, as the walk-through writes them (SPEC S88, S89, B61), and what people call
// machinehealthchecks are those of machine.openshift.io, though the other group comes first in the alphabet.
func TestBothGroupsOfHealthChecks(t *testing.T) {
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
}
