// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	podOnB = `{apiVersion: v1, kind: Pod, metadata: {name: web-b, namespace: default, uid: pod-web-b, labels: {app: web}, creationTimestamp: "2026-01-01T09:30:00Z",
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: rs, controller: true}]%s},
  spec: {nodeName: b, containers: [{name: c, resources: {requests: {cpu: %s, memory: 512Mi}}}]}, status: {phase: Running}}`
	settingsOf = `{apiVersion: autoscaling.openshift.io/v1, kind: ClusterAutoscaler, metadata: {name: default}, spec: %s}`
)

// Every reason of SPEC C66 that a Node can have here ends up on the Node, with the number or the name that matters.
func TestNodesSayWhyTheyStay(t *testing.T) {
	t.Parallel()
	idle := fmt.Sprintf(podOnB, "", "500m")
	for _, tt := range []struct{ name, objects, want string }{
		{"used", fmt.Sprintf(podOnB, "", "2100m"), "NotUnderutilized: cpu above 0.50, threshold 0.5"},
		{"idle for a minute", idle, "NotUnneededLongEnough: unneeded since 2026-01-01T12:00:00Z, due 2026-01-01T12:10:00Z"},
		{"pod of nobody", podOfNobody, "BlockedByPod: pod default/web-b: NotReplicated"},
		{"job that runs", fmt.Sprintf(podOnB, `, annotations: {cluster-autoscaler.kubernetes.io/safe-to-evict: on-completion}`, "500m"), "BlockedByOnCompletionPod: pod default/web-b: BlockedByOnCompletionPod"},
		{
			"budget", idle + "\n---\n" + `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: default}, spec: {selector: {matchLabels: {app: web}}}, status: {disruptionsAllowed: 0}}`,
			"BlockedByPod: pod default/web-b: NotEnoughPdb: web allows 0 disruptions",
		},
		{
			"two budgets", idle + "\n---\n" + fmt.Sprintf(budgetOfAll, "x") + "\n---\n" + fmt.Sprintf(budgetOfAll, "z"),
			"BlockedByPod: pod default/web-b: NotEnoughPdb: x and z both cover it, and no pod of two budgets is evicted",
		},
		{"two budgets of a pod that does not run yet", strings.Replace(idle, "Running", "Pending", 1) + "\n---\n" + fmt.Sprintf(budgetOfAll, "x") + "\n---\n" + fmt.Sprintf(budgetOfAll, "z"), "NotUnneededLongEnough: unneeded since 2026-01-01T12:00:00Z, due 2026-01-01T12:10:00Z"},
		{"no place", fmt.Sprintf(podOnB, "", "1600m"), "NoPlaceToMovePods: no place to move pod default/web-b"},
		{"annotated", idle + "\n---\n" + disabledNode, "ScaleDownDisabledAnnotation: annotation cluster-autoscaler.kubernetes.io/scale-down-disabled"},
		{"minimum of the set", idle + "\n---\n" + `{apiVersion: autoscaling.openshift.io/v1beta1, kind: MachineAutoscaler, metadata: {name: worker, namespace: openshift-machine-api, finalizers: [machinetarget.autoscaling.openshift.io]},
  spec: {minReplicas: 2, maxReplicas: 4, scaleTargetRef: {apiVersion: machine.openshift.io/v1beta1, kind: MachineSet, name: worker}}}`, "NodeGroupMinSizeReached: MachineSet/openshift-machine-api/worker is at its minimum of 2"},
		{
			"minimum of the cluster", idle + "\n---\n" + fmt.Sprintf(settingsOf, `{resourceLimits: {cores: {min: 6, max: 100}, memory: {min: 10, max: 100}}}`),
			"MinimalResourceLimitExceeded: cpu 4 without it, minimum 6, memory 8Gi without it, minimum 10Gi",
		},
		{"cooling down", idle + "\n---\n" + fmt.Sprintf(settingsOf, `{scaleDown: {enabled: true, unneededTime: 0s}}`) + "\n---\n" + cooling, "NotUnneededOtherReason: cooling down after a scale-up until 2026-01-01T12:09:00Z"},
		{"scale-down is off", fmt.Sprintf(settingsOf, `{scaleDown: {enabled: false}}`), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, epoch)
			w.load(t, "small.yaml")
			objects, err := snapshot.Decode([]byte(tt.objects))
			if err != nil {
				t.Fatal(err)
			}
			w.must(t, w.Put(objects...))
			for range 8 {
				if _, err := w.scan(t.Context(), snapshot.Request{}); err != nil {
					t.Fatal(err)
				}
				w.now = w.now.Add(10 * time.Second)
			}
			n := memory.Get[*corev1.Node](w.Server, "", "b")
			if got := n.Annotations[machine.AnnotationScaleDownReason]; got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

const (
	budgetOfAll = `{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: %s, namespace: default}, spec: {selector: {}}, status: {disruptionsAllowed: 1}}`
	podOfNobody = `{apiVersion: v1, kind: Pod, metadata: {name: web-b, namespace: default, uid: pod-web-b, creationTimestamp: "2026-01-01T09:30:00Z"},
  spec: {nodeName: b, containers: [{name: c, resources: {requests: {cpu: 500m}}}]}, status: {phase: Running}}`
	disabledNode = `{apiVersion: v1, kind: Node, metadata: {name: b, uid: node-b, creationTimestamp: "2026-01-01T09:05:00Z", labels: {kubernetes.io/hostname: b}, annotations: {cluster-autoscaler.kubernetes.io/scale-down-disabled: "true"}},
  status: {capacity: {cpu: "4", memory: 8Gi, pods: "110"}, allocatable: {cpu: "4", memory: 8Gi, pods: "110"}, conditions: [{type: Ready, status: "True", lastTransitionTime: "2026-01-01T09:06:00Z"}]}}`
	cooling = `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-status, namespace: openshift-machine-api}, data: {state: '{"schema": 1, "lastScaleUp": "2026-01-01T11:59:00Z", "seen": {"nodes": 2, "pods": 2}}'}}`
)

// A reason is not written before it has held for a minute, on at most twenty Nodes in one scan, and then never again.
func TestReasonsAreWrittenSlowly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, epoch)
	w.load(t, "small.yaml")
	b := memory.Get[*corev1.Node](w.Server, "", "b")
	for i := range 50 {
		n := b.DeepCopy()
		n.Name, n.UID, n.ResourceVersion, n.Annotations = fmt.Sprintf("by-hand-%02d", i), "", "", nil
		w.must(t, w.Put(n))
	}
	explained := func() (n int) {
		for _, x := range memory.List[*corev1.Node](w.Server) {
			if strings.HasPrefix(x.Annotations[machine.AnnotationScaleDownReason], "NotAutoscaled: ") {
				n++
			}
		}
		return n
	}
	for i, want := range []int{0, 0, 0, 0, 0, 0, 20, 40, 50, 50} {
		before := len(w.ours())
		if _, err := w.scan(t.Context(), snapshot.Request{}); err != nil {
			t.Fatal(err)
		}
		if got := explained(); got != want {
			t.Errorf("scan %d: reasons on %d Nodes, want %d", i, got, want)
		}
		if i == 9 && len(w.ours()) > before {
			t.Errorf("the last scan wrote %v", w.ours()[before:])
		}
		w.now = w.now.Add(10 * time.Second)
	}
	cm := memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)
	if state, err := autoscaling.ParseState(cm.Data[autoscaling.StateKey]); err != nil || len(state.Held) > 0 {
		t.Errorf("held %v, error %v", state.Held, err)
	}
}
