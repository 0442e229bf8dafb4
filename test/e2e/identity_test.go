// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"
)

// olderMachine: a Machine whose spec the policies would refuse stays usable and goes when it is deleted, down to its
// last finalizer (SPEC B72).
func olderMachine(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const ns = "openshift-machine-api"
		patch := func(change string) []string {
			return []string{"-n", ns, "patch", "machine", "older", "--type=merge", "-p", change}
		}
		jane := k.as("jane")
		jane.must(t, patch(`{"metadata":{"annotations":{"example.com/note":"seen"}}}`)...)
		jane.refused(t, "", []string{"spec.providerSpec.value.flavors: Forbidden: unknown field"}, patch(`{"spec":{"providerSpec":{"value":{"image":"i"}}}}`)...)
		jane.must(t, "-n", ns, "delete", "machine", "older", "--wait=false")
		jane.must(t, patch(`{"spec":{"providerSpec":{"value":{"image":"i"}}}}`)...)
		k.asFunction("provision-machine").must(t, patch(`{"metadata":{"finalizers":null}}`)...)
		k.refused(t, "", []string{"not found"}, "-n", ns, "get", "machine", "older")
		jane.must(t, "-n", ns, "annotate", "machine", "nobodys", "example.com/note=seen") // a label without a name is none
	}
}

// identity: what ties a Machine to its instance stays (R-S16, SPEC S91), and a change of the spec that comes too late is
// not silent.
func identity(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		k.mustGiven(t, strings.Replace(machine, "name: by-hand", "name: identity", 1), "create", "-f", "-")
		patch := func(change string) []string {
			return []string{"-n", "openshift-machine-api", "patch", "machine", "identity", "--type=merge", "-p", change}
		}
		const later = `{"spec":{"providerSpec":{"value":{"flavor":"%s"}}}}`
		jane := k.as("jane")
		if out := jane.must(t, patch(strings.Replace(later, "%s", "4c16g30d", 1))...); strings.Contains(out, "Warning") {
			t.Errorf("a change in time: %s", out)
		}
		provision := k.asFunction("provision-machine")
		jane.refused(t, "", []string{`spec.providerID is written by provision-machine only, not by "jane", who lacks the verb repair: leave it out, got "kubemark:///one"`},
			patch(`{"spec":{"providerID":"kubemark:///one"}}`)...)
		provision.must(t, patch(`{"spec":{"providerID":"kubemark:///one"}}`)...)
		provision.must(t, patch(`{"spec":{"providerID":"kubemark:///one"}}`)...)
		for change, got := range map[string]string{`"kubemark:///two"`: `got "kubemark:///two"`, `null`: `got ""`} {
			want := []string{`spec.providerID cannot be changed from "kubemark:///one"`, got}
			jane.refused(t, "", want, patch(`{"spec":{"providerID":`+change+`}}`)...)
			provision.refused(t, "", want, patch(`{"spec":{"providerID":`+change+`}}`)...)
		}
		out := jane.must(t, patch(strings.Replace(later, "%s", "2c8g30d", 1))...)
		if !strings.Contains(out, `Warning: `) || !strings.Contains(out, `instance "kubemark:///one" was made from the spec before this change`) {
			t.Errorf("a change too late: %s", out)
		}
		const label = `{"metadata":{"labels":{"machine.openshift.io/cluster-api-cluster":`
		for change, got := range map[string]string{`"other"`: `got "other"`, `null`: `got ""`} {
			jane.refused(t, "", []string{`cannot be changed from "cluster-a389-fmxsv"`, got}, patch(label+change+`}}}`)...)
		}
		out = k.must(t, patch(`{"spec":{"providerID":"kubemark:///two"}}`)...)
		if !strings.Contains(out, `Warning: `) || !strings.Contains(out, `spec.providerID was "kubemark:///one" and is "kubemark:///two" now`) {
			t.Errorf("another instance: %s", out)
		}
	}
}

// named: a Machine that is made with the id of an instance takes that one's Node, and goes with both: who made neither needs the verb repair, as
// one who restores Machines. Of the functions' accounts none makes one so.
func named(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		of := strings.NewReplacer("name: by-hand", "name: named", "spec:\n", "spec:\n  providerID: kubemark:///control-plane-0\n").Replace(machine)
		create := []string{"create", "--dry-run=server", "-f", "-"}
		for _, who := range []kubectl{k.as("jane"), k.asFunction("scale-machineset")} {
			who.refused(t, of, []string{"spec.providerID is written by provision-machine only, not by ", `who lacks the verb repair: leave it out, got "kubemark:///control-plane-0"`}, create...)
		}
		k.as("jane").mustGiven(t, strings.Replace(of, "kubemark:///control-plane-0", `""`, 1), create...)
		k.as("rosa").mustGiven(t, of, create...)
		k.mustGiven(t, of, create...)
	}
}

// ofControlPlane: a set that makes Machines of the control plane adopts those that are there, and removes what is more than its replicas, so
// that who makes one, or makes one of another, has to be one who may delete Machines. Nora may all else.
func ofControlPlane(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		k.must(t, "create", "clusterrole", "nora", "--verb=get,list,watch,create,update,patch", "--resource=*.*")
		k.must(t, "create", "clusterrolebinding", "nora", "--clusterrole=nora", "--user=nora")
		workers := strings.ReplaceAll(edit(t, set, "replicas: 0", "replicas: 0"), "general-purpose-1a", "noras")
		role := strings.ReplaceAll(workers, "cluster-api-machine-role: worker", "cluster-api-machine-role: master")
		node := strings.Replace(workers, "      metadata:\n        labels:\n", "      metadata:\n        labels:\n          node-role.kubernetes.io/control-plane: \"\"\n", 1)
		want := []string{`spec.template is of the control plane`, `for which "nora" lacks the verb delete on machines`}
		nora := k.as("nora")
		nora.mustGiven(t, workers, "create", "-f", "-")
		for _, masters := range []string{role, node} {
			nora.refused(t, masters, want, "create", "--dry-run=server", "-f", "-")
			k.as("jane").mustGiven(t, strings.ReplaceAll(masters, "noras", "janes"), "create", "--dry-run=server", "-f", "-")
		}
		patch := []string{
			"-n", "openshift-machine-api", "patch", "machineset", "noras", "--type=merge", "-p",
			`{"spec":{"template":{"spec":{"metadata":{"labels":{"node-role.kubernetes.io/master":""}}}}}}`,
		}
		nora.refused(t, "", want, patch...)
		k.as("jane").must(t, patch...)
		nora.must(t, "-n", "openshift-machine-api", "scale", "machineset", "noras", "--replicas=1") // as it is of the control plane by now
		nora.must(t, "-n", "openshift-machine-api", "annotate", "machineset", "noras", "example.com/note=seen")
	}
}

// noInfrastructure: where nobody says a region there is no default for it, and nothing else is in the way.
func noInfrastructure(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const aws = "apiVersion: machine.openshift.io/v1beta1\n      kind: AWSMachineProviderConfig\n      ami: {id: ami-1}"
		object := strings.Replace(strings.Replace(machine, "name: by-hand", "name: elsewhere", 1), "apiVersion: kubemark.machine.openshift.io/v1alpha1\n      kind: KubemarkMachineProviderSpec\n      flavor: 4c12g30d", aws, 1)
		jane := k.as("jane")
		complete := strings.Replace(object, "ami: {id: ami-1}", "ami: {id: ami-1}\n      placement: {region: eu-west-1}", 1)
		k.eventually(t, "defaults are filled in", func() bool {
			got, err := jane.run(complete, "create", "--dry-run=server", "-o", "jsonpath={.spec.providerSpec.value.instanceType} {.spec.providerSpec.value.userDataSecret.name}", "-f", "-")
			return err == nil && strings.HasPrefix(got, "m5.large worker-user-data")
		})
		jane.refused(t, object, []string{"spec.providerSpec.value.placement.region: Required value: must name a region"}, "create", "--dry-run=server", "-f", "-")
	}
}
