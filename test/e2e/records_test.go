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

// recordsOutlive: who replaces an object by a manifest of before, as tools do that carry Git into a cluster with all rights, or
// changes something beside, takes no record away, a check's list of what it has in flight neither (RELIABILITY §4). To take the
// record away, and nothing else, is a word of its own: of those who may repair, and but for ledger and intent of whoever may write the object.
func recordsOutlive(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const in = "-n=openshift-machine-api"
		k.must(t, "create", "clusterrole", "see-checks", "--verb=get", "--resource=machinehealthchecks.machine.openshift.io,legacymachinehealthchecks.healthchecking.openshift.io")
		k.must(t, "create", "clusterrolebinding", "see-checks", "--clusterrole=see-checks", "--serviceaccount=openshift-machine-api:remediate") // for kubectl
		k.must(t, "create", "clusterrole", "see-sets", "--verb=get", "--resource=machinesets.machine.openshift.io")
		k.must(t, "create", "clusterrolebinding", "see-sets", "--clusterrole=see-sets", "--serviceaccount=openshift-machine-api:evaluate-autoscale")
		legacy, _, _ := strings.Cut(edit(t, "machinehealthcheck-v1alpha1.yaml", "name: example", "name: kept"), "---")
		for name, c := range map[string]struct{ object, manifest, writer, record, change string }{
			"set":          {"machineset/kept", strings.ReplaceAll(edit(t, set, "replicas: 0", "replicas: 1"), "general-purpose-1a", "kept"), "scale-machineset", "ledger", `"replicas":2`},
			"victims":      {"machineset/victims", strings.ReplaceAll(edit(t, set, "replicas: 0", "replicas: 1"), "general-purpose-1a", "victims"), "evaluate-autoscale", "scale-down-victims", `"replicas":2`},
			"plan":         {"machineset/planned", strings.ReplaceAll(edit(t, set, "replicas: 0", "replicas: 1"), "general-purpose-1a", "planned"), "evaluate-autoscale", "last-autoscale-plan", `"replicas":2`},
			"Machine":      {"machine/kept", strings.Replace(machine, "name: by-hand", "name: kept", 1), "provision-machine", "provision-intent", `"taints":[]`},
			"check":        {"mhc/kept", edit(t, healthCheck, "name: workers", "name: kept"), "remediate", "in-flight", `"maxUnhealthy":1`},
			"legacy check": {"legacymachinehealthchecks/kept", legacy, "remediate", "in-flight", `"selector":{"matchLabels":{"color":"red"}}`},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				key := "machine.openshift.io/" + c.record
				shown := []string{in, "get", c.object, "-o", `jsonpath={.metadata.annotations.machine\.openshift\.io/` + c.record + "}"}
				given := strings.Replace(c.manifest, "metadata:\n", "metadata:\n  annotations: {example.com/note: seen}\n", 1)
				k.mustGiven(t, given, "create", "-f", "-")
				writer := k.asFunction(c.writer)
				writer.must(t, in, "annotate", c.object, key+"=first")
				for who, user := range map[string]kubectl{"jane": k.as("jane"), "rosa": k.as("rosa"), "one of system:masters": k} {
					user.mustGiven(t, given, "replace", "-f", "-")
					user.mustGiven(t, c.manifest, "replace", "-f", "-")
					user.mustGiven(t, c.manifest, "replace", "-f", "-") // as a tool that carries Git does each time: nothing differs but the record
					user.must(t, in, "patch", c.object, "--type=merge", "-p", `{"metadata":{"annotations":{"`+key+`":null}},"spec":{`+c.change+`}}`)
					user.must(t, in, "patch", c.object, "--type=merge", "-p", `{"metadata":{"annotations":{"`+key+`":null},"labels":{"color":"red"}}}`)
					user.must(t, in, "annotate", c.object, key+"-", "example.com/empty=")
					user.must(t, in, "patch", c.object, "--type=merge", "-p", `{"metadata":{"annotations":null}}`)
					if got := k.must(t, shown...); got != "first" {
						t.Errorf("%s took the record away, it is %q", who, got)
						writer.must(t, in, "annotate", "--overwrite", c.object, key+"=first")
					}
				}
				if c.writer != "evaluate-autoscale" { // whose words about a set others may give as well
					stale := strings.Replace(c.manifest, "metadata:\n", "metadata:\n  annotations: {"+key+": zeroth}\n", 1) // an export of before
					for _, user := range []string{"jane", "rosa"} {
						k.as(user).refused(t, stale, []string{key + "] is written by " + c.writer + ` only, not by "` + user + `": leave it out`}, "replace", "-f", "-")
					}
					copied := strings.Replace(strings.ReplaceAll(stale, ": kept", ": copied"), "{"+key, "{example.com/note: seen, "+key, 1)
					if got := k.mustGiven(t, copied, "create", "--dry-run=server", "-o", "jsonpath={.metadata.annotations}", "-f", "-"); strings.Contains(got, "zeroth") {
						t.Errorf("a copy has another's record: %s", got)
					}
				}
				for who, may := range map[string]bool{"jane": c.record != "ledger" && c.record != "provision-intent", "rosa": true} {
					k.as(who).must(t, in, "annotate", c.object, key+"-")
					if got := k.must(t, shown...); (got == "") != may {
						t.Errorf("%s takes the record alone away: it is %q", who, got)
					}
					writer.must(t, in, "annotate", "--overwrite", c.object, key+"=first")
				}
				if writer.must(t, in, "annotate", c.object, key+"-"); k.must(t, shown...) != "" {
					t.Error("its writer cannot take it away")
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
