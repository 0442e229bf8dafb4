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
