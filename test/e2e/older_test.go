// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Clusters that do not serve all of config/policy get what they can serve by an overlay (docs/deploying.md); a policy that they
// cannot compile is not in it. The API server is the one of the tests, which emulates the older one.
func TestOlderKubernetes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts control planes")
	}
	for version, overlay := range map[string]string{"1.33": "policy-1.33", "1.34": "policy-1.33", "1.35": "policy-1.35"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			k := startCluster(t, "--apiserver-arg=--emulated-version="+version)
			root := repository(t)
			k.must(t, "apply", "-f", filepath.Join(root, "config", "namespace.yaml"))
			for _, part := range []string{"config/crd", "config/rbac", "config/network", "overlays/" + overlay} {
				k.must(t, "apply", "-k", filepath.Join(root, part))
			}
			k.must(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
			if _, err := k.run("", "apply", "-k", filepath.Join(root, "config", "policy")); err == nil {
				t.Errorf("config/policy itself can be applied: %s is not needed", overlay)
			}
			k.must(t, "apply", "-f", filepath.Join(root, "config", "samples", "infrastructure.yaml"))
			sample, err := os.ReadFile(filepath.Join(root, "config", "samples", "kubemark", "general-purpose-1a.yaml"))
			if err != nil {
				t.Fatal(err)
			}
			k.creatable(t, string(sample))
			k.mustGiven(t, string(sample), "create", "-f", "-")
			// A record has one writer there as well, whoever else may edit the object.
			k.must(t, "create", "clusterrole", "editor", "--verb=get,patch", "--resource=machinesets.machine.openshift.io")
			k.must(t, "create", "clusterrolebinding", "editor", "--clusterrole=editor", "--user=somebody")
			forge := []string{"annotate", "machineset", "general-purpose-1a", "machine.openshift.io/ledger={}", "-n", "openshift-machine-api", "--dry-run=server"}
			k.eventually(t, "a forged ledger is refused", func() bool {
				_, err := k.as("somebody").run("", forge...)
				return err != nil && strings.Contains(err.Error(), "is written by scale-machineset only")
			})
		})
	}
}
