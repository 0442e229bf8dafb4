// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/test/admission"
)

const (
	crd    = "../../config/crd"
	policy = "../../config/policy"
	rbac   = "../../config/rbac"
)

// TestAdmission applies config/crd, config/policy and config/rbac to a real API server: what a user may say, what
// answer a mistake gets, who may write the functions' records.
func TestAdmission(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts a control plane")
	}
	k := startCluster(t)
	k.must(t, "apply", "--server-side", "-k", crd)
	k.must(t, "apply", "-f", "../../config/namespace.yaml")
	older := edit(t, "kubemark/infra-1a.yaml", "kind: KubemarkMachineProviderSpec", "kind: SomethingOlder")
	k.must(t, "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	k.creatable(t, older+"---"+machine)
	k.mustGiven(t, strings.ReplaceAll(older, "infra-1a", "older"), "create", "-f", "-")
	k.mustGiven(t, strings.NewReplacer("by-hand", "older", "flavor: 4c12g30d", "flavors: unknown").Replace(machine), "create", "-f", "-")
	for _, kind := range []string{"MachineSet", "MachineHealthCheck"} {
		k.mustGiven(t, "{apiVersion: machine.openshift.io/v1beta1, kind: "+kind+", metadata: {name: bare, namespace: openshift-machine-api}}", "create", "-f", "-")
	}
	k.mustGiven(t, strings.NewReplacer("by-hand", "nobodys", "cluster-api-cluster: cluster-a389-fmxsv", `cluster-api-cluster: ""`).Replace(machine), "create", "-f", "-")
	k.must(t, "apply", "-k", policy)
	k.must(t, "apply", "-k", rbac)
	k.must(t, "apply", "-k", "../../config/overlays/kubemark")
	// Jane may do everything that kubectl knows a verb for. Rosa is an administrator as kubeadm makes them: of no special group.
	k.must(t, "create", "clusterrole", "jane", "--verb=get,list,watch,create,update,patch,delete,deletecollection", "--resource=*.*")
	k.must(t, "create", "clusterrolebinding", "jane", "--clusterrole=jane", "--user=jane")
	k.must(t, "create", "clusterrolebinding", "rosa", "--clusterrole=cluster-admin", "--user=rosa")
	policiesInForce(t, k, admission.Tables(t, "../../shared/providerspec/testdata"))

	story := edit(t, "kubemark/general-purpose-1a.yaml", "replicas: 0", "replicas: 1")
	k.mustGiven(t, strings.ReplaceAll(story, "general-purpose-1a", "story"), "create", "-f", "-")
	k.mustGiven(t, machine, "create", "-f", "-")

	t.Run("good samples", goodSamples(k))
	t.Run("bad objects", refusesBadObjects(k))
	t.Run("older object", olderObject(k))
	t.Run("misplaced field", misplacedScaleDown(k))
	t.Run("strange GPU type", gpuTypeWarning(k))
	t.Run("check that does nothing", inertHealthCheck(k))
	t.Run("set that is ready at once", negativeMinReady(k))
	t.Run("namespace that is not served", elsewhere(k))
	t.Run("scale and columns", scaleAndColumns(k))
	t.Run("replicas left out", replicasLeftOut(k))
	t.Run("served namespace stays", servedNamespaceStays(k))
	t.Run("defaults", defaults(k))
	t.Run("explain", explain(k))
	t.Run("owners of fields", fieldOwners(k))
	t.Run("records in manifests", recordsInManifests(k))
	t.Run("records outlive", recordsOutlive(k))
	t.Run("repair", repair(k))
	t.Run("hooks while deleting", hooksWhileDeleting(k))
	t.Run("older Machine", olderMachine(k))
	t.Run("identity", identity(k))
	t.Run("instance that is named", named(k))
	t.Run("sets of the control plane", ofControlPlane(k))
	t.Run("no Infrastructure", noInfrastructure(k))
	t.Run("rights", rights(k))
	t.Run("placement", placement(k))
}

func goodSamples(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		samples, err := filepath.Glob("../../config/samples/*/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		more, err := filepath.Glob("../../config/samples/*.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if samples = append(samples, more...); len(samples) < 10 {
			t.Fatalf("found only %q", samples)
		}
		for _, file := range samples {
			if out := k.as("jane").must(t, "create", "--dry-run=server", "-f", file); strings.Contains(out, "Warning") {
				t.Errorf("%s: %s", file, out)
			}
		}
		explicit := edit(t, "kubemark/infra-1a.yaml", "flavor: 4c12g30d", "numCores: 4\n          memoryCapacity: 12Gi")
		k.as("jane").mustGiven(t, explicit, "create", "--dry-run=server", "-f", "-")
		// The walk-through's own file has a creationTimestamp that no schema knows; kubectl takes it only when told to warn.
		written := edit(t, "openstack/general-purpose-1a.yaml", "    metadata:\n      labels:", "    metadata:\n      creationTimestamp: null\n      labels:")
		k.as("jane").mustGiven(t, written, "create", "--dry-run=server", "--validate=warn", "-f", "-")
		expressions := edit(t, "kubemark/infra-1a.yaml", "    matchLabels:",
			"    matchExpressions:\n    - {key: machine.openshift.io/cluster-api-machine-role, operator: In, values: [worker, infra]}\n"+
				"    - {key: missing, operator: DoesNotExist}\n    matchLabels:")
		k.as("jane").mustGiven(t, expressions, "create", "--dry-run=server", "-f", "-")
		const label = "machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv\n"
		unnamed := strings.Replace(edit(t, "kubemark/infra-1a.yaml", "        "+label, ""), "      "+label, "", 1)
		k.as("jane").mustGiven(t, unnamed, "create", "--dry-run=server", "-f", "-")
	}
}

// machine is the Machine of a MachineSet's sample, by hand (SPEC S92).
const machine = `
apiVersion: machine.openshift.io/v1beta1
kind: Machine
metadata:
  name: by-hand
  namespace: openshift-machine-api
  labels:
    machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv
  finalizers: [machine.machine.openshift.io]
spec:
  lifecycleHooks:
    preDrain: [{name: example.com/Backup, owner: backup-operator}]
  providerSpec:
    value:
      apiVersion: kubemark.machine.openshift.io/v1alpha1
      kind: KubemarkMachineProviderSpec
      flavor: 4c12g30d
`

// The samples that bad objects are made of.
const (
	set         = "kubemark/general-purpose-1a.yaml"
	healthCheck = "machinehealthcheck.yaml"
	ma          = "machineautoscalers.yaml"
	ca          = "clusterautoscaler.yaml"
)

// badObjects are samples with old replaced by new, and what the answer must say.
var badObjects = []struct {
	name, sample, old, new string
	want                   []string
}{
	{
		"selector that does not match the template", set, "    matchLabels:\n", "    matchLabels:\n      color: red\n",
		[]string{`spec.selector.matchLabels[color] is "red"`, `spec.template.metadata.labels has no such label`},
	},
	{
		"selector with another value", set, "cluster-api-machineset: general-purpose-1a\n  template", "cluster-api-machineset: other\n  template",
		[]string{`spec.selector.matchLabels[machine.openshift.io/cluster-api-machineset] is "other"`, `has "general-purpose-1a"`},
	},
	{
		"expression that does not match", set, "    matchLabels:\n",
		"    matchExpressions: [{key: machine.openshift.io/cluster-api-machine-role, operator: NotIn, values: [worker, infra]}]\n    matchLabels:\n",
		[]string{`spec.selector.matchExpressions wants machine.openshift.io/cluster-api-machine-role NotIn [worker, infra]`, `has "worker"`},
	},
	{
		"empty selector", set, "    matchLabels:\n      machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv\n      machine.openshift.io/cluster-api-machineset: general-purpose-1a\n", "    matchLabels: {}\n",
		[]string{"spec.selector must not be empty"},
	},
	{"startup timeout that is no duration", healthCheck, "nodeStartupTimeout: 10m", "nodeStartupTimeout: 0abc", []string{`spec.nodeStartupTimeout "0abc" is no duration`}},
	{"startup timeout below zero", healthCheck, "nodeStartupTimeout: 10m", "nodeStartupTimeout: -5m", []string{`spec.nodeStartupTimeout "-5m" is no duration`}},
	{"timeout of more years than there are", healthCheck, "timeout: 300s", "timeout: 9999999999h", []string{`spec.unhealthyConditions wants a timeout`, `got "9999999999h"`}},
	{"condition without a timeout", healthCheck, "\n    timeout: 300s", "", []string{`spec.unhealthyConditions wants a timeout`, `got none`}},
	{"status that no Node has", healthCheck, "status: Unknown", "status: Maybe", []string{`True, False or Unknown`}},
	{
		"template that names an instance", set, "      providerSpec:\n", "      providerID: kubemark://abi/i-1\n      providerSpec:\n",
		[]string{"spec.template.spec.providerID must be empty", `got "kubemark://abi/i-1"`},
	},
	{"more replicas than a set can have", set, "replicas: 0", "replicas: 20001", []string{"spec.replicas must not be more than 20000, got 20001"}},
	{
		"flavor of two lines", set, "flavor: 4c12g30d", `flavor: "4c\n12g30d"`,
		[]string{`providerSpec.value.flavor: Invalid value: "…": must be <cores>c<GiB of memory>g<GiB of disk>d`},
	},
	{
		"flavor that is longer than an answer", set, "flavor: 4c12g30d", "flavor: " + strings.Repeat("4c", 35_000),
		[]string{`providerSpec.value.flavor: Invalid value: "…": must be <cores>c<GiB of memory>g<GiB of disk>d`},
	},
	{"negative replicas", set, "replicas: 0", "replicas: -1", []string{"spec.replicas: Invalid value: -1"}},
	{
		"template with an empty cluster", set,
		"      machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv\n      machine.openshift.io/cluster-api-machineset: general-purpose-1a\n  template:\n    metadata:\n      labels:\n        machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv\n",
		"      machine.openshift.io/cluster-api-machineset: general-purpose-1a\n  template:\n    metadata:\n      labels:\n        machine.openshift.io/cluster-api-cluster: \"\"\n",
		[]string{`spec.template.metadata.labels[machine.openshift.io/cluster-api-cluster] must name the cluster, got ""`},
	},
	{
		"unknown provider", set, "kind: KubemarkMachineProviderSpec", "kind: NutanixMachineProviderConfig",
		[]string{"spec.template.spec.providerSpec.value.kind must be one of AWSMachineProviderConfig, ", `got "NutanixMachineProviderConfig"`},
	},
	{
		"provider without a kind", set, "          kind: KubemarkMachineProviderSpec\n", "",
		[]string{"spec.template.spec.providerSpec.value.kind must be one of ", `got ""`},
	},
	{
		"no provider", set, "        value:\n          apiVersion: kubemark.machine.openshift.io/v1alpha1\n          kind: KubemarkMachineProviderSpec\n          flavor: 4c12g30d\n", "        {}\n",
		[]string{"spec.template.spec.providerSpec.value is required"},
	},
	{
		"missing flavor", set, "          flavor: 4c12g30d\n", "",
		[]string{"spec.template.spec.providerSpec.value.flavor: Required value: name a flavor"},
	},
	{
		"cores without memory", set, "flavor: 4c12g30d", "numCores: 4",
		[]string{"spec.template.spec.providerSpec.value.flavor: Required value: name a flavor", "memoryCapacity"},
	},
	{
		"min above max", ma, "minReplicas: 1\n  maxReplicas: 4", "minReplicas: 5\n  maxReplicas: 4",
		[]string{"spec.maxReplicas", "must not be less than minReplicas 5, got 4"},
	},
	{"negative min", ma, "minReplicas: 1", "minReplicas: -1", []string{"spec.minReplicas: Invalid value: -1"}},
	{"max of nothing", ma, "minReplicas: 1\n  maxReplicas: 4", "minReplicas: 0\n  maxReplicas: 0", []string{"spec.maxReplicas: Invalid value: 0"}},
	{"target without a name", ma, "    name: general-purpose-1a\n", "", []string{"spec.scaleTargetRef.name: Required value"}},
	{"target with an empty kind", ma, "kind: MachineSet", `kind: ""`, []string{"spec.scaleTargetRef.kind", `""`}},
	{"second ClusterAutoscaler", ca, "name: default", "name: second", []string{`metadata.name must be "default", got "second"`}},
	{
		"negative duration", ca, "unneededTime: 60s", "unneededTime: -60s",
		[]string{"spec.scaleDown.unneededTime", `must be a duration that is not negative`, `got "-60s"`},
	},
	{"no duration", ca, "delayAfterAdd: 5m", "delayAfterAdd: soon", []string{"spec.scaleDown.delayAfterAdd", `got "soon"`}},
	{"duration without a unit", ca, "delayAfterDelete: 5m", `delayAfterDelete: "10"`, []string{"spec.scaleDown.delayAfterDelete", `got "10"`}},
	{"duration of an age", ca, "podPriorityThreshold: -10", "maxNodeProvisionTime: 9999999999h", []string{"spec.maxNodeProvisionTime", "must be a duration", `got "9999999999h"`}},
	{
		"threshold above one", ca, "enabled: true", "enabled: true\n    utilizationThreshold: \"1.5\"",
		[]string{"spec.scaleDown.utilizationThreshold", "strictly between 0 and 1", `got "1.5"`},
	},
	{
		"threshold of nothing", ca, "enabled: true", "enabled: true\n    utilizationThreshold: \"0.0\"",
		[]string{"spec.scaleDown.utilizationThreshold", `got "0.0"`},
	},
	{"cores the wrong way round", ca, "min: 20", "min: 50", []string{"spec.resourceLimits.cores.max", "must not be less than min 50, got 48"}},
	{"memory below nothing", ca, "min: 80", "min: -80", []string{"spec.resourceLimits.memory.min: Invalid value: -80"}},
	{"fewer nodes than none", ca, "maxNodesTotal: 12", "maxNodesTotal: -1", []string{"spec.resourceLimits.maxNodesTotal: Invalid value: -1"}},
	{
		"GPUs the wrong way round", ca, "maxNodesTotal: 12", "gpus: [{type: t4, min: 3, max: 2}]",
		[]string{"spec.resourceLimits.gpus[0].max", "must not be less than min 3, got 2"},
	},
	{"scale-down neither on nor off", ca, "    enabled: true\n", "", []string{"spec.scaleDown.enabled: Required value"}},
	{"unknown expander", ca, "podPriorityThreshold: -10", "expanders: [MostPods]", []string{"spec.expanders[0]", `"MostPods"`}},
	{"expander twice", ca, "podPriorityThreshold: -10", "expanders: [Random, Random]", []string{"spec.expanders[1]: Duplicate value", `"Random"`}},
}

func refusesBadObjects(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		for _, tt := range badObjects {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				k.as("jane").refused(t, edit(t, tt.sample, tt.old, tt.new), tt.want, "create", "--dry-run=server", "-f", "-")
			})
		}
		t.Run("Machine without a cluster", func(t *testing.T) {
			t.Parallel()
			object := strings.Replace(machine, "cluster-api-cluster: cluster-a389-fmxsv", `cluster-api-cluster: ""`, 1)
			k.as("jane").refused(t, object, []string{`metadata.labels[machine.openshift.io/cluster-api-cluster] must name the cluster, got ""`},
				"create", "--dry-run=server", "-f", "-")
		})
		t.Run("Machine of an unknown provider", func(t *testing.T) {
			t.Parallel()
			object := strings.Replace(machine, "KubemarkMachineProviderSpec", "Nonsense", 1)
			k.as("jane").refused(t, object, []string{"spec.providerSpec.value.kind must be one of ", `got "Nonsense"`},
				"create", "--dry-run=server", "-f", "-")
		})
	}
}

// olderObject: what was there before the policies stays usable, but cannot be made worse.
func olderObject(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		patch := func(change string) []string {
			return []string{"-n", "openshift-machine-api", "patch", "machineset", "older", "--type=merge", "-p", change}
		}
		jane := k.as("jane")
		jane.must(t, patch(`{"metadata":{"annotations":{"example.com/note":"seen"}},"spec":{"replicas":1}}`)...)
		jane.refused(t, "", []string{`got "SomethingElse"`}, patch(`{"spec":{"template":{"spec":{"providerSpec":{"value":{"kind":"SomethingElse"}}}}}}`)...)
		jane.must(t, patch(`{"spec":{"template":{"spec":{"providerSpec":{"value":{"kind":"KubemarkMachineProviderSpec"}}}}}}`)...)
		jane.must(t, "-n", "openshift-machine-api", "delete", "machineset", "older")
		for _, kind := range []string{"machineset", "machinehealthcheck"} { // without a spec, which the definitions let be
			jane.must(t, "-n", "openshift-machine-api", "annotate", kind+".machine.openshift.io", "bare", "example.com/note=seen")
		}
	}
}

// misplacedScaleDown: the walk-through's indent is accepted and has no effect; whoever writes it is told, asked for
// validation or not (SPEC S84). Other fields beside spec are refused by kubectl, as nothing here knows them.
func misplacedScaleDown(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const right = "  scaleDown:\n    enabled: true\n    delayAfterAdd: 5m\n    delayAfterDelete: 5m\n    delayAfterFailure: 5m\n    unneededTime: 60s\n"
		object := edit(t, "clusterautoscaler.yaml", right, "scaleDown:\n  enabled: true\n  delayAfterAdd: 3m\n  unneededTime: 3m\n")
		for _, validate := range []string{"true", "false"} {
			out := k.as("jane").mustGiven(t, object, "create", "--dry-run=server", "--validate="+validate, "-o", "jsonpath={.spec.scaleDown}", "-f", "-")
			if !strings.HasPrefix(out, "Warning: ") || !strings.Contains(out, "scaleDown stands beside spec, where it has no effect") {
				t.Errorf("--validate=%s: want no scaleDown in spec, and a warning:\n%s", validate, out)
			}
		}
		elsewhere := edit(t, "clusterautoscaler.yaml", right, "scaleUp: {}\n")
		k.refused(t, elsewhere, []string{`unknown field "scaleUp"`}, "create", "--dry-run=server", "-f", "-")
	}
}

func gpuTypeWarning(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		object := edit(t, "clusterautoscaler.yaml", "maxNodesTotal: 12", "gpus: [{type: two words, min: 0, max: 2}]")
		out := k.mustGiven(t, object, "create", "--dry-run=server", "-f", "-")
		if !strings.Contains(out, `spec.resourceLimits.gpus[].type should be the value of a label, got "two words"`) {
			t.Errorf("no warning in:\n%s", out)
		}
	}
}

// inertHealthCheck: OpenShift takes such checks, so they are taken, with a warning (SPEC B48).
func inertHealthCheck(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		for _, c := range []struct{ old, new, says string }{
			{"maxUnhealthy: 40%", "maxUnhealthy: -5", "spec.maxUnhealthy: -5 is less than nothing"},
			{"timeout: 300s", "timeout: 0h0.0s", `a timeout of "0h0.0s" for Ready`},
			{"maxUnhealthy: 40%", "maxUnhealthy: 0", ""},
			{"timeout: 300s", "timeout: 0h10s", ""},
			{"status: Unknown", "status: \"True\"", "Ready=True is how a healthy Node is"},
			{"type: Ready\n    status: \"False\"", "type: MemoryPressure\n    status: \"False\"", "MemoryPressure=False is how a healthy Node is"},
			{"type: Ready\n    status: \"False\"", "type: MemoryPressure\n    status: \"True\"", ""},
			{"nodeStartupTimeout: 10m", "nodeStartupTimeout: 1s", `spec.nodeStartupTimeout: "1s" is less than 30s`},
			{"nodeStartupTimeout: 10m", "nodeStartupTimeout: 30s", ""},
			{"nodeStartupTimeout: 10m", "nodeStartupTimeout: 0s", ""},
			{"timeout: 300s", "timeout: 1ns", `a timeout of "1ns" is less than a second`},
			{"type: Ready\n    status: \"False\"\n    timeout: 300s", "type: Terminating\n    status: \"True\"\n    timeout: 0s", ""},
		} {
			out := k.mustGiven(t, edit(t, "machinehealthcheck.yaml", c.old, c.new), "create", "--dry-run=server", "-f", "-")
			if !strings.Contains(out, c.says) || strings.Contains(out, "Warning: ") != (c.says != "") {
				t.Errorf("%s: want the warning %q:\n%s", c.new, c.says, out)
			}
		}
	}
}

// negativeMinReady: OpenShift takes it; it means no more than 0 (SPEC B37, B41).
func negativeMinReady(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		for value, says := range map[string]string{"-5": "Warning: ", "0": "", "5": ""} {
			object := edit(t, set, "  replicas: 0\n", "  replicas: 0\n  minReadySeconds: "+value+"\n")
			out := k.as("jane").mustGiven(t, object, "create", "--dry-run=server", "-f", "-")
			if !strings.Contains(out, says) || strings.Contains(out, "spec.minReadySeconds: -5 counts as 0") != (says != "") {
				t.Errorf("minReadySeconds %s: want the warning %q:\n%s", value, says, out)
			}
		}
	}
}

// elsewhere: what nobody will look at is not made without a word (SPEC S2).
func elsewhere(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		for kind, sample := range map[string]string{"MachineSet": "kubemark/general-purpose-1a.yaml", "MachineAutoscaler": "machineautoscalers.yaml"} {
			object := edit(t, sample, "namespace: openshift-machine-api", "namespace: default")
			object, _, _ = strings.Cut(object, "---")
			out := k.as("jane").mustGiven(t, object, "create", "--dry-run=server", "-f", "-")
			want := `metadata.namespace: "default" is not served, nothing will happen to this ` + kind + "; make it in openshift-machine-api"
			if !strings.Contains(out, "Warning: ") || !strings.Contains(out, want) {
				t.Errorf("want a warning, %s:\n%s", want, out)
			}
		}
	}
}

func scaleAndColumns(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		const ns = "openshift-machine-api"
		autoscaler := edit(t, "machineautoscalers.yaml", "name: ma-general-purpose-1a", "name: story")
		autoscaler, _, _ = strings.Cut(autoscaler, "---")
		k.mustGiven(t, autoscaler, "create", "-f", "-")
		if out := k.must(t, "-n", ns, "scale", "machineset", "story", "--replicas=3"); out != "machineset.machine.openshift.io/story scaled\n" {
			t.Errorf("scale said %q", out)
		}
		if out := k.must(t, "-n", ns, "get", "machineset", "story", "-o", "jsonpath={.spec.replicas}"); out != "3" {
			t.Errorf("replicas are %s, want 3", out)
		}
		for resource, want := range map[string]string{
			"machineset":        "NAME DESIRED CURRENT READY AVAILABLE AGE",
			"machine":           "NAME PHASE TYPE REGION ZONE AGE",
			"machineautoscaler": "NAME REF KIND REF NAME MIN MAX AGE",
			"ma":                "NAME REF KIND REF NAME MIN MAX AGE",
		} {
			head, _, _ := strings.Cut(k.must(t, "-n", ns, "get", resource), "\n")
			if got := strings.Join(strings.Fields(head), " "); got != want {
				t.Errorf("get %s: columns %q, want %q", resource, got, want)
			}
		}
		k.as("jane").refused(t, "", []string{"spec.selector cannot be changed"}, "-n", ns, "patch", "machineset", "story", "--type=merge",
			"-p", `{"spec":{"selector":{"matchLabels":{"machine.openshift.io/cluster-api-machineset":null}}}}`)
	}
}

func defaults(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		got := k.must(t, "create", "--dry-run=server", "-f", "../../config/samples/clusterautoscaler.yaml",
			"-o", "jsonpath={.spec.scaleDown.utilizationThreshold} {.spec.maxNodeProvisionTime} {.spec.balanceSimilarNodeGroups}")
		if want := "0.5 15m true"; got != want {
			t.Errorf("defaults are %q, want %q", got, want)
		}
	}
}

// explain shows the walk-through's tree (SPEC S32) with the additions of SPEC B91–B109.
func explain(k kubectl) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		out := k.must(t, "explain", "clusterautoscaler.spec", "--recursive")
		var got []string
		for _, m := range regexp.MustCompile(`(?m)^( +)([a-zA-Z]+)\t<(\S+)>`).FindAllStringSubmatch(out, -1) {
			got = append(got, m[1]+m[2]+" "+m[3])
		}
		want := `  balanceSimilarNodeGroups boolean
  balancingIgnoredLabels []string
  enforceNodeGroupMinSize string
  expanders []string
  ignoreDaemonsetsUtilization boolean
  logVerbosity integer
  maxNodeProvisionTime string
  maxPodGracePeriod integer
  podPriorityThreshold integer
  resourceLimits Object
    cores Object
      max integer
      min integer
    gpus []Object
      max integer
      min integer
      type string
    maxNodesTotal integer
    memory Object
      max integer
      min integer
  scaleDown Object
    cordonNodeBeforeTerminating string
    delayAfterAdd string
    delayAfterDelete string
    delayAfterFailure string
    enabled boolean
    unneededTime string
    utilizationThreshold string
  scaleUp Object
    newPodScaleUpDelay string
  skipNodesWithLocalStorage boolean
  startupTaints []string`
		if strings.Join(got, "\n") != want {
			t.Errorf("explain says:\n%s\nwant:\n%s", strings.Join(got, "\n"), want)
		}
	}
}

// edit returns a sample with its first before replaced by after.
func edit(t *testing.T, sample, before, after string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../config/samples", sample))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), before) {
		t.Fatalf("%s does not contain %q", sample, before)
	}
	return strings.Replace(string(b), before, after, 1)
}
