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

// What a buffer refers to may have any name, also one that no object has: the buffer is told that it is not there, and everybody else
// is served (SPEC C83).
func TestBufferOfAnImpossibleNameStopsNobody(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a/b", "..", "%", "A b"} {
		w := fresh(t, "{}")
		w.set(t, "s", 0, 4, midsize(), nil)
		w.must(t, w.Put(pending("p", epoch.Add(-time.Minute), resources("cpu", "3"))))
		for i, ref := range []string{"scalableRef: {apiGroup: apps, kind: Deployment, name: %q}, percentage: 10", "podTemplateRef: {name: %q}, replicas: 1"} {
			w.yaml(t, fmt.Sprintf("{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: b-%d, namespace: default, uid: buffer-%[1]d}, spec: {"+ref+"}}", i, name))
		}
		w.once(t)
		if got := w.replicas("s")[0]; got != 1 {
			t.Errorf("%q: %d Nodes for the Pod that waits, want 1", name, got)
		}
		for i := range 2 {
			if got := fmt.Sprint(w.Object(bufferKind, "default", fmt.Sprint("b-", i))); !strings.Contains(got, "NotFound") {
				t.Errorf("%q: the buffer says %s", name, got)
			}
		}
	}
}

// A limit that no amount is read from is told once; a buffer of somebody else's strategy is told nothing (SPEC C83, G11).
func TestBufferOfAnImpossibleLimitIsToldOnce(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.pool(t, "s", 0, 4, nil, nil)
	w.yaml(t, "{apiVersion: v1, kind: PodTemplate, metadata: {name: chunk, namespace: default, uid: template}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}}}")
	for i, strategy := range []string{"buffer.x-k8s.io/active-capacity", "example.com/standby"} {
		w.yaml(t, fmt.Sprintf("{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: b-%d, namespace: default, uid: buffer-%[1]d}, spec: {podTemplateRef: {name: chunk}, provisioningStrategy: %s, limits: {cpu: 1e1.5}}}", i, strategy))
	}
	w.scans(t, 1)
	if got := fmt.Sprint(w.Object(bufferKind, "default", "b-0")); !strings.Contains(got, "reason:Invalid") {
		t.Errorf("the buffer says %s", got)
	}
	if got := fmt.Sprint(w.Object(bufferKind, "default", "b-1")); strings.Contains(got, "status") {
		t.Errorf("the other's says %s", got)
	}
	before := len(w.ours())
	w.scans(t, 2)
	if again := w.ours()[before:]; len(again) > 0 {
		t.Errorf("told again: %v", again)
	}
}

// A buffer that is being deleted keeps nothing free; one whose template names a Node, as that of a Pod that ran does, keeps room
// anywhere; and what another API calls a Deployment is none of apps (SPEC C83).
func TestBufferKeepsWhatItWants(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, meta, pod, ref string
		want                 int32
	}{
		{"a buffer", "", "", "podTemplateRef: {name: chunk}, replicas: 1", 1},
		{"a buffer that is being deleted", ", deletionTimestamp: 2026-01-01T00:00:00Z, finalizers: [example.com/keep]", "", "podTemplateRef: {name: chunk}, replicas: 1", 0},
		{"a template that names a Node", "", "nodeName: n, ", "podTemplateRef: {name: chunk}, replicas: 1", 1},
		{"a Deployment", "", "", "scalableRef: {apiGroup: apps, kind: Deployment, name: web}, replicas: 1", 1},
		{"a Deployment of another API", "", "", "scalableRef: {apiGroup: example.com, kind: Deployment, name: web}, replicas: 1", 0},
	} {
		w := fresh(t, "{}")
		w.set(t, "s", 0, 4, midsize(), nil)
		w.must(t, w.Put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n"}}))
		template := "template: {metadata: {labels: {app: web}}, spec: {" + tt.pod + "containers: [{name: c, resources: {requests: {cpu: 3}}}]}}"
		w.yaml(t, "{apiVersion: v1, kind: PodTemplate, metadata: {name: chunk, namespace: default, uid: template}, "+template+"}")
		w.yaml(t, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web, namespace: default, uid: web}, spec: {replicas: 1, selector: {matchLabels: {app: web}}, "+template+"}}")
		w.yaml(t, "{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: b, namespace: default, uid: buffer"+tt.meta+"}, spec: {"+tt.ref+"}}")
		w.scans(t, 2)
		if got := w.replicas("s")[0]; got != tt.want {
			t.Errorf("%s: %d Nodes, want %d", tt.name, got, tt.want)
		}
	}
}

// Nobody is told of room before it was looked for: while all Pods that wait are new, a buffer says nothing of it (SPEC C6, C83).
func TestBufferSaysNothingOfRoomThatNobodyLookedFor(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "s", 0, 1, midsize(), nil)
	w.yaml(t, "{apiVersion: v1, kind: PodTemplate, metadata: {name: chunk, namespace: default, uid: template}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 7}}}]}}}")
	w.yaml(t, "{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: b, namespace: default, uid: buffer}, spec: {podTemplateRef: {name: chunk}, replicas: 1}}")
	w.must(t, w.Put(pending("p", epoch, resources("cpu", "3"))))
	for _, want := range []bool{false, true} {
		w.once(t)
		got := fmt.Sprint(w.Object(bufferKind, "default", "b"))
		if strings.Contains(got, "RoomIsKept") || strings.Contains(got, "RoomIsMissing") != want {
			t.Errorf("%s: %s", w.now, got)
		}
		w.now = w.now.Add(10 * time.Second)
	}
}

// What others, or a newer version of the API, say in a buffer's status stays there.
func TestStatusOfABufferKeepsWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.pool(t, "s", 0, 4, nil, nil)
	w.yaml(t, "{apiVersion: v1, kind: PodTemplate, metadata: {name: chunk, namespace: default, uid: template}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 1m}}}]}}}")
	w.yaml(t, "{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: b, namespace: default, uid: buffer}, spec: {podTemplateRef: {name: chunk}, replicas: 2}, status: {replicas: 1, newer: {said: by-others}}}")
	w.once(t)
	if got := fmt.Sprint(w.Object(bufferKind, "default", "b")); !strings.Contains(got, "by-others") || !strings.Contains(got, "replicas:2") {
		t.Error(got)
	}
}
