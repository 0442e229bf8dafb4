// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// Buffers of many namespaces together bring no more Pods into a scan than it can plan for: those that go beyond are told, the
// others have their room, and once all are told the scan is quiet (SPEC C83).
func TestBuffersAreBoundedTogether(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.pool(t, "s", 0, 4, nil, nil)
	w.yaml(t, "{apiVersion: v1, kind: PodTemplate, metadata: {name: chunk, namespace: default, uid: template}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1m}}}]}}}")
	for i, n := range []int{10_000, 9_000, 10_000, 1_000} {
		w.yaml(t, fmt.Sprintf("{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: b-%d, namespace: default, uid: buffer-%[1]d}, spec: {podTemplateRef: {name: chunk}, replicas: %d}}", i, n))
	}
	w.once(t)
	var refused []string
	for i := range 4 {
		name := fmt.Sprint("b-", i)
		if strings.Contains(fmt.Sprint(w.Object(bufferKind, "default", name)), "which leaves 1000") {
			refused = append(refused, name)
		}
	}
	if !slices.Equal(refused, []string{"b-2"}) {
		t.Errorf("refused: %v", refused)
	}
	before := len(w.ours())
	w.once(t)
	if again := w.ours()[before:]; len(again) > 0 {
		t.Errorf("told again: %v", again)
	}
}

// A buffer that is refused takes nothing of its namespace's quotas: what is left of them is for those after it (SPEC C83).
func TestRefusedBufferTakesNoQuota(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.pool(t, "s", 0, 4, nil, nil)
	w.yaml(t, "{apiVersion: v1, kind: ResourceQuota, metadata: {name: all, namespace: late, uid: quota}, status: {hard: {cpu: 10100m}}}")
	for i, of := range []struct {
		namespace string
		replicas  int
	}{{"early", 10_000}, {"early", 9_000}, {"late", 10_000}, {"late", 200}} {
		w.yaml(t, fmt.Sprintf("{apiVersion: v1, kind: PodTemplate, metadata: {name: chunk-%d, namespace: %s, uid: template-%[1]d}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1m}}}]}}}", i, of.namespace))
		w.yaml(t, fmt.Sprintf("{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: b-%d, namespace: %s, uid: buffer-%[1]d}, spec: {podTemplateRef: {name: chunk-%[1]d}, replicas: %[3]d}}", i, of.namespace, of.replicas))
	}
	w.once(t)
	if got := fmt.Sprint(w.Object(bufferKind, "late", "b-2")); !strings.Contains(got, "TooMany") {
		t.Errorf("the buffer beyond what all may have: %s", got)
	}
	if got := fmt.Sprint(w.Object(bufferKind, "late", "b-3")); strings.Contains(got, "limited from") || !strings.Contains(got, "replicas:200") {
		t.Errorf("the buffer after it: %s", got)
	}
}

// Room that is kept free takes no place from a Pod that waits: where a spread constraint leaves one place in the zone that can
// grow, it is the Pod's, every scan (SPEC C9, C83).
func TestBufferTakesNoPlaceOfAPod(t *testing.T) {
	t.Parallel()
	app := map[string]string{"app": "x"}
	w := fresh(t, "{}")
	for z, most := range map[string]int32{"a": 4, "b": 1} {
		zone := map[string]string{corev1.LabelTopologyZone: z}
		w.set(t, "set-"+z, 1, most, midsize(), zone)
		w.member(t, "set-"+z, "n-"+z, epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), zone)
		p := running("on-"+z, "n-"+z, resources("cpu", "3500m"))
		p.Labels, p.Namespace = app, "default"
		w.must(t, w.Put(p))
	}
	w.set(t, "big-a", 0, 4, map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "64Gi"}, map[string]string{corev1.LabelTopologyZone: "a"})
	p := pending("real", epoch.Add(-time.Minute), resources("cpu", "7"))
	p.Labels, p.Spec.TopologySpreadConstraints = app, []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: app}}}
	w.must(t, w.Put(p))
	w.yaml(t, "{apiVersion: v1, kind: PodTemplate, metadata: {name: chunk, namespace: default, uid: template}, template: {metadata: {labels: {app: x}}, spec: {topologySpreadConstraints: [{maxSkew: 1, topologyKey: topology.kubernetes.io/zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {matchLabels: {app: x}}}], containers: [{name: c, resources: {requests: {cpu: 3}}}]}}}")
	w.yaml(t, "{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: b, namespace: default, uid: buffer}, spec: {podTemplateRef: {name: chunk}, replicas: 1}}")
	w.scans(t, 1)
	if got := fmt.Sprint(w.replicas("big-a"), w.replicas("set-a")); got != "[1] [1]" {
		t.Errorf("Nodes for the Pod that waits, and for the buffer: %s, want [1] [1]", got)
	}
}

// A cluster serves the same buffer in both versions: its room is kept once (SPEC C83).
func TestBufferOfBothVersionsIsOne(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "s", 0, 4, midsize(), nil)
	w.yaml(t, "{apiVersion: v1, kind: PodTemplate, metadata: {name: chunk, namespace: default, uid: template}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}}}")
	for _, version := range []string{"v1beta1", "v1alpha1"} {
		w.yaml(t, fmt.Sprintf("{apiVersion: autoscaling.x-k8s.io/%s, kind: CapacityBuffer, metadata: {name: b, namespace: default, uid: buffer}, spec: {podTemplateRef: {name: chunk}, replicas: 1}}", version))
	}
	w.scans(t, 2)
	if got := w.replicas("s")[0]; got != 1 {
		t.Errorf("%d Nodes for one place of three cores", got)
	}
}
