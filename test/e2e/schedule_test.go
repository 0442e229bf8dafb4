// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// lot is one kind of Pods of a mixed lot.
type lot struct {
	name  string
	count int
	spec  string // of the Pod, beside its container
	asks  string // of the container
}

// mixed has a rule of every kind that decides where Pods may run.
var mixed = []lot{
	{"web", 12, `topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {lot: web}}}]`,
		`resources: {requests: {cpu: 400m, memory: 200Mi}}`},
	{"hosts", 6, `topologySpreadConstraints: [{maxSkew: 2, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {lot: hosts}}}]`,
		`resources: {requests: {cpu: 100m}}`},
	{"database", 3, `affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {lot: database}}}]}}`,
		`resources: {requests: {cpu: 500m, memory: 1Gi}}`},
	{"cache", 5, `affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: topology.kubernetes.io/zone, labelSelector: {matchLabels: {lot: database}}}]}}`,
		`resources: {requests: {cpu: 200m}}`},
	{"edge", 4, ``, `ports: [{containerPort: 8443, hostPort: 8443}]`},
	{"graphics", 3, `tolerations: [{key: nvidia.com/gpu, operator: Exists}]`, `resources: {limits: {nvidia.com/gpu: 1}}`},
	{"batch", 16, `nodeSelector: {topology.kubernetes.io/zone: 1b}`, `resources: {requests: {cpu: 300m, memory: 500Mi}}`},
	{"sidecar", 6, `initContainers: [{name: proxy, image: proxy, restartPolicy: Always, resources: {requests: {cpu: 250m}}}, {name: prepare, image: prepare, resources: {requests: {cpu: 900m}}}]`,
		`resources: {requests: {cpu: 150m}}`},
	{"large", 5, `affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: example.com/set, operator: In, values: [sched-a]}]}]}}}`,
		`resources: {requests: {cpu: 1500m, memory: 2Gi}}`},
}

const mixedPod = `---
apiVersion: v1
kind: Pod
metadata: {name: %[1]s-%[2]d, namespace: default, labels: {lot: %[1]s}}
spec:
  containers: [{name: main, image: main, %[4]s}]
  %[3]s
`

const schedSet = `---
apiVersion: machine.openshift.io/v1beta1
kind: MachineSet
metadata:
  name: %[1]s
  namespace: openshift-machine-api
  labels: {machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv}
spec:
  replicas: 0
  selector: {matchLabels: {machine.openshift.io/cluster-api-machineset: %[1]s}}
  template:
    metadata:
      labels: {machine.openshift.io/cluster-api-cluster: cluster-a389-fmxsv, machine.openshift.io/cluster-api-machineset: %[1]s}
    spec:
      metadata:
        labels: {example.com/set: %[1]s, topology.kubernetes.io/zone: %[2]s}
      taints: [%[3]s]
      providerSpec:
        value: {apiVersion: kubemark.machine.openshift.io/v1alpha1, kind: KubemarkMachineProviderSpec, flavor: 4c12g30d, zone: %[2]s, gpus: %[4]d}
`

const schedBounds = `---
apiVersion: autoscaling.openshift.io/v1beta1
kind: MachineAutoscaler
metadata: {name: %[1]s, namespace: openshift-machine-api}
spec:
  minReplicas: 0
  maxReplicas: 12
  scaleTargetRef: {apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, name: %[1]s}
`

const schedAutoscaler = `apiVersion: autoscaling.openshift.io/v1
kind: ClusterAutoscaler
metadata: {name: default}
spec:
  scaleDown: {enabled: false}
`

// TestMixedLotIsScheduled gives an empty cluster Pods with all kinds of rules. The Nodes that are added for them are those
// that the real scheduler fills: every Pod runs, and every Node has some of them (SPEC C26).
func TestMixedLotIsScheduled(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the whole system")
	}
	y := startYard(t)
	sets := []string{"sched-a", "sched-b", "sched-gpu"}
	text := fmt.Sprintf(schedSet, sets[0], "1a", "", 0) + fmt.Sprintf(schedSet, sets[1], "1b", "", 0) +
		fmt.Sprintf(schedSet, sets[2], "1a", "{key: nvidia.com/gpu, effect: NoSchedule}", 2)
	for _, set := range sets {
		text += fmt.Sprintf(schedBounds, set)
	}
	y.mustGiven(t, text, "create", "-f", "-")
	for _, set := range sets {
		y.shows(t, "get machineset "+set+inMachines+" -o jsonpath={.metadata.annotations}", "machine.openshift.io/vCPU", "machine.openshift.io/cluster-api-autoscaler-node-group-max-size|autoscaler-node-group-max-size")
	}
	pods, total := "", 0
	for _, l := range mixed {
		for i := range l.count {
			pods += fmt.Sprintf(mixedPod, l.name, i, l.spec, l.asks)
		}
		total += l.count
	}
	y.mustGiven(t, pods, "create", "-f", "-")
	y.mustGiven(t, schedAutoscaler, "create", "-f", "-")
	await(t, fmt.Sprintf("%d pods run", total), func() string {
		phases := y.do(t, "get pods -n default -o jsonpath={range.items[*]}{.metadata.name}={.status.phase}{.spec.nodeName}/{end}")
		var waiting []string
		for p := range strings.SplitSeq(strings.TrimSuffix(phases, "/"), "/") {
			if !strings.Contains(p, "=Running") {
				waiting = append(waiting, p)
			}
		}
		return strings.Join(waiting, " ")
	})
	filled := map[string]int{}
	for node := range strings.FieldsSeq(y.do(t, "get pods -n default -o jsonpath={.items[*].spec.nodeName}")) {
		filled[node]++
	}
	nodes := strings.Fields(y.do(t, "get nodes -l example.com/set -o jsonpath={.items[*].metadata.name}"))
	for _, n := range nodes {
		if filled[n] == 0 {
			t.Errorf("node %s was added and nobody needs it", n)
		}
	}
	if len(filled) != len(nodes) {
		t.Errorf("pods run on %v, nodes that were added: %v", slices.Sorted(maps.Keys(filled)), nodes)
	}
	again := 0
	helped := map[string]int{}
	for pod := range strings.FieldsSeq(y.do(t, "get events -n default --field-selector reason=TriggeredScaleUp -o jsonpath={.items[*].involvedObject.name}")) {
		if helped[pod]++; helped[pod] == 2 {
			again++
		}
	}
	t.Logf("%d pods on %d nodes; %d were promised a node, %d of them twice", total, len(nodes), len(helped), again)
}
