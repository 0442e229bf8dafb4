// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// What a Node can carry stays, whatever stands beside it; the rest is named by field and value.
func TestFit(t *testing.T) {
	t.Parallel()
	good := corev1.Taint{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}
	got, wrong := machine.Carried{
		Labels:      map[string]string{"example.com/rack": "row 7", "a b": "x", "example.com/row": "7", "kubernetes.io/hostname": "rack-7"},
		Annotations: map[string]string{"example.com/Note": "any text: at all", "/": "x"},
		Taints:      []corev1.Taint{good, {Key: "k", Value: "a b", Effect: good.Effect}, {Key: "k", Effect: "Never"}},
	}.Fit()
	want := machine.Carried{
		Labels: map[string]string{"example.com/row": "7"}, Annotations: map[string]string{"example.com/Note": "any text: at all"}, Taints: []corev1.Taint{good},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	var said []string
	for _, e := range wrong {
		said = append(said, e.Error())
	}
	if diff := cmp.Diff([]string{
		`spec.metadata.labels: Invalid value: "a b": must be the key of a label`,
		`spec.metadata.labels[example.com/rack]: Invalid value: "row 7": must be the value of a label`,
		`spec.metadata.labels[kubernetes.io/hostname]: Forbidden: names one Node, and is its kubelet's`,
		`spec.metadata.annotations: Invalid value: "/": must be the key of an annotation`,
		`spec.taints[1][k]: Invalid value: "a b": must be the value of a label`,
		`spec.taints[2].effect: Unsupported value: "Never": supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"`,
	}, said); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// All annotations of a Node share 256 KiB: for the sake of those that are too large it would get neither labels nor taints.
func TestAnnotationsThatFit(t *testing.T) {
	t.Parallel()
	c := machine.Carried{Annotations: map[string]string{"a": strings.Repeat("x", 100_000), "b": strings.Repeat("x", 100_000), "c": "small"}}
	got, wrong := c.Fit()
	if len(got.Annotations) != 2 || got.Annotations["b"] != "" || len(wrong) != 1 || !strings.HasPrefix(wrong[0].Error(), "spec.metadata.annotations[b]: ") || len(wrong[0].Error()) > 200 {
		t.Errorf("%d annotations fit, wrong: %.300v", len(got.Annotations), wrong)
	}
}

// What a controller takes off whenever it does not tell the state of a Node would be put on and taken off for ever (B3, R-S14).
func TestCarriedComesNotAndGoes(t *testing.T) {
	t.Parallel()
	keep := []string{"node.kubernetes.io/out-of-service", "node-role.kubernetes.io/infra", "example.com/ToBeDeletedByClusterAutoscaler"}
	leave := []string{
		"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable", "node.kubernetes.io/unschedulable", "node.kubernetes.io/memory-pressure",
		"node.kubernetes.io/disk-pressure", "node.kubernetes.io/pid-pressure", "node.kubernetes.io/network-unavailable",
		"node.cloudprovider.kubernetes.io/uninitialized", "node.cloudprovider.kubernetes.io/shutdown",
		"ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler",
	}
	taint := func(key string) corev1.Taint { return corev1.Taint{Key: key, Effect: corev1.TaintEffectNoSchedule} }
	for _, key := range keep {
		if got, wrong := (machine.Carried{Taints: []corev1.Taint{taint(key)}}).Fit(); len(got.Taints) != 1 || len(wrong) != 0 {
			t.Errorf("%s: %v, wrong: %v", key, got.Taints, wrong)
		}
	}
	for _, key := range leave {
		got, wrong := machine.Carried{Taints: []corev1.Taint{taint(key), taint("dedicated")}}.Fit()
		want := "spec.taints[0][" + key + "]: Forbidden: comes and goes with the state of a Node: its controller would take it off each time"
		if len(got.Taints) != 1 || got.Taints[0].Key != "dedicated" || len(wrong) != 1 || wrong[0].Error() != want {
			t.Errorf("%s: %v, wrong: %v", key, got.Taints, wrong)
		}
	}
	for _, key := range []string{"machine.openshift.io/scale-down-reason", "machine.openshift.io/cordoned-by-plan"} {
		got, wrong := machine.Carried{Annotations: map[string]string{key: "x", "cluster-autoscaler.kubernetes.io/scale-down-disabled": "true"}}.Fit()
		want := "spec.metadata.annotations[" + key + "]: Forbidden: is evaluate-autoscale's"
		if len(got.Annotations) != 1 || got.Annotations[key] != "" || len(wrong) != 1 || wrong[0].Error() != want {
			t.Errorf("%s: %v, wrong: %v", key, got.Annotations, wrong)
		}
	}
}
