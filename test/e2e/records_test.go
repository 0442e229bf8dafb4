// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

const (
	ledgerKey = `machine\.openshift\.io/ledger`
	intentKey = `machine\.openshift\.io/provision-intent`
)

// recordsInManifests: what one says with a manifest that was got from the cluster, or that an object was made from, is what the
// manifest says beside the functions' records (RELIABILITY §4, SPEC S27). A second set from the first one's manifest is made, and a
// backup is restored.
func recordsInManifests(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const in = "-n=openshift-machine-api"
		jane := k.as("jane")
		bare := map[string]string{"machineset": edit(t, set, "replicas: 0", "replicas: 1"), "machine": machine}
		bare["machineset"] = strings.ReplaceAll(bare["machineset"], "general-purpose-1a", "recorded")
		bare["machine"] = strings.Replace(machine, "name: by-hand", "name: recorded", 1)
		for kind, c := range map[string]struct{ writer, record, key string }{
			"machineset": {"scale-machineset", "machine.openshift.io/ledger", ledgerKey},
			"machine":    {"provision-machine", "machine.openshift.io/provision-intent", intentKey},
		} {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				one, shown := kind+"/recorded", "jsonpath={.metadata.annotations."+c.key+"}"
				copied := strings.Replace(bare[kind], "metadata:\n", "metadata:\n  annotations: {"+c.record+": \"{}\", example.com/note: seen}\n", 1)
				for _, user := range []kubectl{jane, k, k.asFunction(c.writer)} { // the writer may only where it may create at all
					got, err := user.run(copied, "create", "--dry-run=server", "-o", "jsonpath={.metadata.annotations}", "-f", "-")
					if err == nil && !strings.HasPrefix(got, `{"example.com/note":"seen"}`) {
						t.Errorf("%v: made from another's manifest it has annotations %s", user.user, got)
					} else if err != nil && !strings.Contains(err.Error(), "cannot create resource") {
						t.Error(err)
					}
				}
				jane.mustGiven(t, copied, "create", "-f", "-")
				k.asFunction(c.writer).must(t, in, "annotate", one, c.record+"=first")
				jane.mustGiven(t, jane.must(t, in, "get", one, "-o", "yaml"), "apply", "-f", "-")
				served := jane.must(t, in, "get", one, "-o", "yaml", "--show-managed-fields=false")
				jane.mustGiven(t, served, "apply", "--server-side", "--force-conflicts", "-f", "-")
				jane.mustGiven(t, bare[kind], "replace", "-f", "-")
				if got := k.must(t, in, "get", one, "-o", shown); got != "first" {
					t.Errorf("replaced by the manifest that it was made from it has the record %q", got)
				}
				jane.must(t, in, "annotate", one, c.record+"-")
				if got := k.must(t, in, "get", one, "-o", shown); got != "first" {
					t.Errorf("jane made the record %q", got)
				}
				k.asFunction(c.writer).must(t, in, "annotate", "--overwrite", one, c.record+"=second")
				for _, user := range []string{"jane", "rosa"} {
					stale := strings.Replace(bare[kind], "metadata:\n", "metadata:\n  annotations: {"+c.record+": first}\n", 1)
					k.as(user).refused(t, stale, []string{c.record + "] is written by " + c.writer + ` only, not by "` + user + `": leave it out`}, "apply", "-f", "-")
				}
			})
		}
	}
}

// repair: an administrator of the cluster, of whatever group, repairs by hand what only functions write; so does whoever has
// the verb alone.
func repair(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const in = "-n=openshift-machine-api"
		k.must(t, "create", "clusterrole", "machine-repair", "--verb=repair", "--resource=machines.machine.openshift.io,machinesets.machine.openshift.io")
		k.must(t, "create", "clusterrolebinding", "paul", "--clusterrole=machine-repair", "--user=paul")
		k.must(t, "create", "clusterrolebinding", "paul-too", "--clusterrole=jane", "--user=paul")
		k.mustGiven(t, strings.ReplaceAll(edit(t, set, "replicas: 0", "replicas: 1"), "general-purpose-1a", "broken"), "create", "-f", "-")
		k.mustGiven(t, strings.Replace(machine, "name: by-hand", "name: broken", 1), "create", "-f", "-")
		k.asFunction("scale-machineset").must(t, in, "annotate", "machineset/broken", "machine.openshift.io/ledger=first")
		provision := k.asFunction("provision-machine")
		provision.must(t, in, "annotate", "machine/broken", "machine.openshift.io/provision-intent=first")
		provision.must(t, in, "patch", "machine/broken", "--type=merge", "-p", `{"spec":{"providerID":"kubemark:///one"}}`)
		for _, user := range []string{"paul", "rosa"} {
			t.Run(user, func(t *testing.T) {
				t.Parallel()
				as := k.as(user)
				for _, change := range []string{
					`{"metadata":{"finalizers":null}}`, `{"spec":{"providerID":null}}`, `{"metadata":{"labels":{"machine.openshift.io/ordinal":"7"}}}`,
					`{"metadata":{"labels":{"machine.openshift.io/cluster-api-cluster":"other"}}}`,
				} {
					as.must(t, in, "patch", "machine/broken", "--type=merge", "--dry-run=server", "-p", change)
				}
				for object, record := range map[string]string{"machineset/broken": "machine.openshift.io/ledger", "machine/broken": "machine.openshift.io/provision-intent"} {
					if got := as.must(t, in, "annotate", object, record+"-", "--dry-run=server", "-o", "jsonpath={.metadata.annotations}"); got != "" {
						t.Errorf("%s keeps annotations %s", object, got)
					}
					as.refused(t, "", []string{"only, not by"}, in, "annotate", "--overwrite", object, record+"=second")
				}
			})
		}
	}
}
