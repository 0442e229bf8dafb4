// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// SPEC E36: what a Node carries is kept whole, but for what was being done with it.
func TestKeptNode(t *testing.T) {
	t.Parallel()
	m := &Machine{}
	if Restarting(m) {
		t.Error("a Machine restarts from the beginning")
	}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Labels:      map[string]string{"rack": "b12"},
		Annotations: map[string]string{"owner": "team-a", AnnotationCordonedBy: "plan-1", AnnotationScaleDownReason: "empty"},
	}}
	if err := KeepNode(m, n); err != nil {
		t.Fatal(err)
	}
	labels, annotations := KeptNode(m)
	if !maps.Equal(labels, n.Labels) || !maps.Equal(annotations, map[string]string{"owner": "team-a"}) || !Restarting(m) {
		t.Errorf("kept %v %v", labels, annotations)
	}
	m.Annotations[AnnotationNodeLabels] = "{"
	if labels, annotations = KeptNode(m); labels != nil || len(annotations) != 1 {
		t.Errorf("of what cannot be read there is %v %v", labels, annotations)
	}
	if ForgetNode(m); len(m.Annotations) != 0 || Restarting(m) {
		t.Errorf("left: %v", m.Annotations)
	}
}
