// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

func node(version string, labels map[string]string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "u1", ResourceVersion: version, Labels: labels}}
}

func ExamplePlan_String() {
	old := node("7", map[string]string{"zone": "a", "old": "x"})
	updated := node("7", map[string]string{"zone": "b"})
	updated.Spec.Unschedulable = true
	var p Plan
	p.Add(Sequence{
		Do:    []Action{Update{Old: old, New: updated, Why: "cordon"}, Delete{Object: old, Why: "it is empty"}},
		Notes: []Note{Normal(old, "Deleted", `Node "n1" drained`).From("machine-drain-controller")},
	})
	fmt.Print(p)
	// Output:
	// update node/n1 (cordon)
	//     metadata.labels.old: x → none
	//     metadata.labels.zone: a → b
	//     spec.unschedulable: true
	//   then delete node/n1 (it is empty)
	//   tell Normal Deleted node/n1: Node "n1" drained [machine-drain-controller]
}

func ExampleUpdate_lines() {
	old := &corev1.ConfigMap{Data: map[string]string{"state": "one\ntwo\nthree\n"}}
	updated := &corev1.ConfigMap{Data: map[string]string{"state": "one\n2\nthree\nfour\n"}}
	old.Name, updated.Name = "memory", "memory"
	fmt.Println(Update{Old: old, New: updated, Why: "remember more"})
	// Output:
	// update configmap/memory (remember more)
	//     data.state:
	//       - two
	//       + 2
	//       + four
}

func ExampleMergePatch() {
	old := node("7", map[string]string{"zone": "a", "old": "x"})
	updated := node("7", map[string]string{"zone": "b"})
	updated.Status.Phase = corev1.NodeRunning // not written: it has a subresource of its own
	patch, err := MergePatch(old, updated, false)
	fmt.Println(string(patch), err)
	// Output: {"metadata":{"labels":{"old":null,"zone":"b"},"resourceVersion":"7"}} <nil>
}

func TestMergePatchOfNothingIsNothing(t *testing.T) {
	t.Parallel()
	for _, status := range []bool{false, true} {
		if patch, err := MergePatch(node("7", nil), node("7", nil), status); err != nil || patch != nil {
			t.Errorf("got %s, %v", patch, err)
		}
	}
}

// The same wish about another revision is another action: it was decided on fresh reads.
func TestKeysDifferByRevision(t *testing.T) {
	t.Parallel()
	a := Update{Old: node("7", nil), New: node("7", nil)}.Key()
	b := Update{Old: node("8", nil), New: node("8", nil)}.Key()
	c := UpdateStatus{Old: node("7", nil), New: node("7", nil)}.Key()
	if a == b || a == c {
		t.Errorf("%q %q %q", a, b, c)
	}
}

func TestEveryKindIsKnownByItsType(t *testing.T) {
	t.Parallel()
	for _, r := range Resources() {
		if got := KindOf(r.New()); got != r.Kind {
			t.Errorf("%T is %q, want %q", r.New(), got, r.Kind)
		}
	}
	if got := Name("Machine", machine.Namespace, "a"); got != "machine/a" {
		t.Errorf("got %q", got)
	}
	if got := Name("Pod", "default", "a"); got != "pod/default/a" {
		t.Errorf("got %q", got)
	}
}
