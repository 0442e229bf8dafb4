// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// placement: with overlays/placement the Pods of Knative and of the functions go to the control plane, OpenShift's too, before others; Pods of DaemonSets stay
// where their Node is, whoever names a priority keeps it, and everybody else's Pods are left alone.
func placement(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const (
			placed = `{"node-role.kubernetes.io/control-plane":""} system-cluster-critical 2e+09 NoSchedule NoSchedule`
			chosen = `{"node-role.kubernetes.io/control-plane":""} system-node-critical 2.000001e+09 NoSchedule NoSchedule`
			alone  = `  0  `
			daemon = `{"metadata": {"ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "envoy", "uid": "1"}]}}`
		)
		k.must(t, "create", "namespace", "knative-serving")
		k.must(t, "apply", "-f", "../../overlays/placement/policy.yaml")
		where := func(namespace string, options ...string) string {
			got, err := k.run("", append([]string{"run", "one", "--image=one", "-n", namespace, "--dry-run=server", "-o",
				`jsonpath={.spec.nodeSelector} {.spec.priorityClassName} {.spec.priority} {.spec.tolerations[?(@.key=="node-role.kubernetes.io/control-plane")].effect} {.spec.tolerations[?(@.key=="node-role.kubernetes.io/master")].effect}`}, options...)...)
			if err != nil {
				return err.Error()
			}
			return got
		}
		k.eventually(t, "the policy is in force", func() bool { return strings.Contains(where("knative-serving"), "control-plane") })
		for _, tt := range []struct{ name, got, want string }{
			{"of Knative", where("knative-serving"), placed},
			{"with tolerations", where("knative-serving", `--overrides={"spec": {"tolerations": [{"key": "a", "operator": "Exists"}]}}`), placed},
			{"with a priority", where("knative-serving", `--overrides={"spec": {"priorityClassName": "system-node-critical"}}`), chosen},
			{"of a DaemonSet", where("knative-serving", "--overrides="+daemon), alone},
			{"of somebody else", where("default"), alone},
		} {
			if tt.got != tt.want {
				t.Errorf("a Pod %s: %q, want %q", tt.name, tt.got, tt.want)
			}
		}
	}
}
