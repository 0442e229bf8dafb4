// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// replicasLeftOut: a manifest without spec.replicas takes no Machine away, however it is written (SPEC B37, as Cluster API), and makes a set of its
// autoscaler's minimum, or of what scale-machineset says later. kubectl scale knows the set at once.
func replicasLeftOut(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const in = "-n=openshift-machine-api"
		jane := k.as("jane")
		number := edit(t, set, "replicas: 0", "replicas: 5")
		number = strings.ReplaceAll(number, "general-purpose-1a", "left-out")
		bare := strings.Replace(number, "  replicas: 5\n", "", 1)
		bounded := strings.Replace(strings.ReplaceAll(bare, "left-out", "bounded"), "metadata:\n",
			"metadata:\n  annotations: {machine.openshift.io/cluster-api-autoscaler-node-group-min-size: \"3\"}\n", 1)
		const shown = "jsonpath={.spec.replicas}"
		for manifest, want := range map[string]string{bare: "", bounded: "3", number: "5"} {
			k.eventually(t, "a new set has the replicas "+want, func() bool {
				return jane.mustGiven(t, manifest, "create", "--dry-run=server", "-o", shown, "-f", "-") == want
			})
		}
		jane.mustGiven(t, bare, "create", "-f", "-")
		jane.mustGiven(t, bare, "apply", "-f", "-")
		if got := k.must(t, in, "get", "machineset", "left-out", "-o", shown); got != "" {
			t.Errorf("before scale-machineset has said how many there are %s", got)
		}
		if out := jane.must(t, in, "scale", "machineset", "left-out", "--replicas=7"); !strings.Contains(out, "scaled") {
			t.Errorf("scale said %q", out)
		}
		for _, how := range [][]string{
			{"replace"}, {"apply"}, {"apply", "--server-side", "--force-conflicts", "--field-manager=git"},
		} {
			jane.mustGiven(t, bare, append(how, "-f", "-")...)
			if got := k.must(t, in, "get", "machineset", "left-out", "-o", shown); got != "7" {
				t.Errorf("after %q without replicas there are %s, want 7", how, got)
			}
		}
		jane.mustGiven(t, number, "apply", "--server-side", "--force-conflicts", "--field-manager=git", "-f", "-")
		jane.mustGiven(t, bare, "apply", "--server-side", "--force-conflicts", "--field-manager=git", "-f", "-")
		if got := k.must(t, in, "get", "machineset", "left-out", "-o", shown); got != "5" {
			t.Errorf("whom the field belonged to leaves it out, and there are %s, want 5", got)
		}
		jane.must(t, in, "patch", "machineset", "left-out", "--type=merge", "-p", `{"spec":{"replicas":null}}`)
		if got := k.must(t, in, "get", "machineset", "left-out", "-o", shown); got != "5" {
			t.Errorf("patched to null there are %s, want 5", got)
		}
	}
}

// servedNamespaceStays: who deletes a namespace that the functions serve has to say that it is meant.
func servedNamespaceStays(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const name, word = "openshift-machine-api", "machine.openshift.io/may-be-deleted"
		remove := []string{"delete", "namespace", name, "--dry-run=server"}
		k.eventually(t, "a served namespace stays", func() bool {
			_, err := k.run("", remove...)
			return err != nil && strings.Contains(err.Error(), "kubectl annotate namespace "+name+" "+word+"=")
		})
		k.must(t, "create", "namespace", "of-nobody")
		k.must(t, "delete", "namespace", "of-nobody", "--dry-run=server")
		k.must(t, "annotate", "namespace", name, word+"=")
		k.must(t, remove...)
		k.must(t, "annotate", "namespace", name, word+"-")
	}
}
