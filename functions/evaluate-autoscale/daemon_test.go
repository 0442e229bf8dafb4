// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
)

// agentOn is the Pod of a DaemonSet on a Node, for which admission asks for two cores: its template says a tenth of one.
func agentOn(node string) *corev1.Pod {
	p := running("agent-"+node, node, resources("cpu", "1900m"))
	p.Labels = map[string]string{"app": "agent"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "agent", UID: "agent", Controller: new(true)}}
	return p
}

// withAgent is a world with that DaemonSet, and a set of Nodes of four cores.
func withAgent(t *testing.T, replicas int32) *world {
	t.Helper()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "s", replicas, 6, midsize(), nil)
	w.yaml(t, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: agent, namespace: default, uid: agent}, spec: {selector: {matchLabels: {app: agent}}, "+
		"template: {metadata: {labels: {app: agent}}, spec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}}}}")
	w.must(t, w.Put(pending("wants", epoch.Add(-time.Minute), resources("cpu", "3"))))
	return w
}

// comeWith lets time pass in steps of a scan, with Nodes that come and go, and a Pod on each.
func (w *world) comeWith(t *testing.T, pod func(node string) *corev1.Pod, scans int) {
	t.Helper()
	for range scans {
		w.once(t)
		w.comes(t, "s", resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		w.victimsGo(t)
		for _, p := range memory.List[*corev1.Pod](w.Server) {
			if p.Spec.NodeName != "" && memory.Get[*corev1.Node](w.Server, "", p.Spec.NodeName) == nil {
				w.must(t, w.Remove("Pod", p.Namespace, p.Name, memory.Force))
			}
		}
		for _, n := range memory.List[*corev1.Node](w.Server) {
			w.must(t, w.Put(pod(n.Name)))
		}
		w.now = w.now.Add(10 * time.Second)
	}
}

// The Pods of a DaemonSet ask for what admission makes of their template: a LimitRange, a webhook, a class. What they ask for on Nodes
// that are there they will on the next: none comes for a Pod that has no room beside them (SPEC C14).
func TestDaemonSetsTakeWhatTheirPodsAskFor(t *testing.T) {
	t.Parallel()
	w := withAgent(t, 1)
	w.member(t, "s", "a", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
	w.must(t, w.Put(agentOn("a"), running("full", "a", resources("cpu", "1500m"))))
	w.comeWith(t, agentOn, 6*60)
	if w.born != 0 {
		t.Errorf("%d Nodes came in an hour for a Pod that fits none", w.born)
	}
}

// Where no Pod of the DaemonSet is there nobody knows: a Node comes that does not help, and no other one before an hour is over (SPEC C9).
func TestDaemonSetWithoutPodsIsTriedOnce(t *testing.T) {
	t.Parallel()
	w := withAgent(t, 0)
	w.comeWith(t, agentOn, 6*180)
	if w.born != 2 {
		t.Errorf("%d Nodes came in three hours for a Pod that fits none, want 2", w.born)
	}
}

// Nor does one after the other come to a set without Nodes whose static Pods take a port: they are not remembered (SPEC C9, C13).
func TestPortOfStaticPodsIsTriedOnce(t *testing.T) {
	t.Parallel()
	ports := []corev1.ContainerPort{{HostPort: 9100, ContainerPort: 9100}}
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "s", 0, 6, midsize(), nil)
	p := pending("wants", epoch.Add(-time.Minute), resources("cpu", "2"))
	p.Spec.Containers[0].Ports = ports
	w.must(t, w.Put(p))
	w.comeWith(t, func(node string) *corev1.Pod {
		p := running("static-"+node, node, resources("cpu", "100m"))
		p.OwnerReferences, p.Annotations = nil, map[string]string{corev1.MirrorPodAnnotationKey: "x"}
		p.Spec.Containers[0].Ports = ports
		return p
	}, 6*180)
	if w.born != 2 {
		t.Errorf("%d Nodes came in three hours for a Pod that fits none, want 2", w.born)
	}
}
