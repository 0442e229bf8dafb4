// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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
	if left, err := KeepNode(m, n); err != nil || len(left) > 0 {
		t.Fatal(left, err)
	}
	labels, annotations := KeptNode(m)
	if !maps.Equal(labels, n.Labels) || !maps.Equal(annotations, map[string]string{"owner": "team-a"}) || !Restarting(m) {
		t.Errorf("kept %v %v", labels, annotations)
	}
	if WasCordoned(m) {
		t.Error("a Node that took Pods was cordoned")
	}
	m.Annotations[AnnotationNodeLabels] = "{"
	if labels, annotations = KeptNode(m); labels != nil || len(annotations) != 1 {
		t.Errorf("of what cannot be read there is %v %v", labels, annotations)
	}
	for _, people := range []bool{true, false, true} { // or a plan
		cordoned := n.DeepCopy()
		cordoned.Spec.Unschedulable = true
		if people {
			delete(cordoned.Annotations, AnnotationCordonedBy)
		}
		if _, err := KeepNode(m, cordoned); err != nil || WasCordoned(m) != people {
			t.Errorf("cordoned by people %v: kept %v %v", people, WasCordoned(m), err)
		}
	}
	if ForgetNode(m); len(m.Annotations) != 0 || Restarting(m) {
		t.Errorf("left: %v", m.Annotations)
	}
}

// All annotations of an object share 256 KiB: what a Node carries beyond what a Machine has room for is left out and named, the longest
// first, or the Machine could not be written and its host stayed off.
func TestKeptNodeHasRoom(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"rack": "b12"}, Annotations: map[string]string{"owner": "team-a"}}}
	for i := range 4 {
		n.Annotations[fmt.Sprint("example.com/", i)] = strings.Repeat(`"`, 25_000+i)
	}
	m := &Machine{}
	left, err := KeepNode(m, n)
	if want := []string{"example.com/1", "example.com/2", "example.com/3"}; err != nil || !slices.Equal(left, want) {
		t.Errorf("left out %q, want %q, error %v", left, want, err)
	}
	if labels, annotations := KeptNode(m); labels["rack"] != "b12" || annotations["owner"] != "team-a" || len(annotations) != 2 || len(m.Annotations[AnnotationNodeAnnotations]) > 1<<16 {
		t.Errorf("kept %v and %d annotations", labels, len(annotations))
	}
}

// Where a Machine has much of its own, less is kept: together they have room.
func TestKeptNodeHasRoomBesideWhatAMachineHas(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"rack": "b12"}, Annotations: map[string]string{"example.com/large": strings.Repeat("x", 60_000)}}}
	for _, own := range []int{10_000, 220_000, 262_000} {
		m := &Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"example.com/own": strings.Repeat("x", own)}}}
		left, err := KeepNode(m, n)
		size := 0
		for k, v := range m.Annotations {
			size += len(k) + len(v)
		}
		if most := 262_144; err != nil || size > most || (own < 200_000) != (len(left) == 0) {
			t.Errorf("beside %d bytes it takes %d, at most %d, left out %q, error %v", own, size, most, left, err)
		}
	}
}
