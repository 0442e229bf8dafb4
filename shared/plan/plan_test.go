// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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
		Do:    []Action{Update{Old: old, New: updated, Why: "cordon"}, Delete{Object: old, IfUnchanged: true, Why: "it is empty"}},
		Notes: []Note{Normal(old, "Deleted", `Node "n1" drained`).From("machine-drain-controller")},
	})
	fmt.Print(p)
	// Output:
	// update node/n1 (cordon)
	//     metadata.labels.old: x → none
	//     metadata.labels.zone: a → b
	//     spec.unschedulable: true
	//   then delete node/n1 if unchanged (it is empty)
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

func TestForeignKinds(t *testing.T) {
	t.Parallel()
	for text, want := range map[Kind]bool{
		"Metal3Remediation.v1beta1.infrastructure.cluster.x-k8s.io":     true,
		"SelfNodeRemediation.v1alpha1.self-node-remediation.medik8s.io": true,
		"Machine.v1beta1.machine.openshift.io":                          false, // a group of ours
		"ClusterRole.v1.rbac.authorization.k8s.io":                      false, // of Kubernetes itself
		"Secret.v1.":   false,
		"Secret.v1":    false,
		"Pod":          false,
		"x.v1.a.b":     false,
		"X.v1.a/../.b": false,
	} {
		if got := Foreign(text); got != want {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
	r, ok := ResourceOf("Metal3Remediation.v1beta1.infrastructure.cluster.x-k8s.io")
	if !ok || r.Plural != "metal3remediations" || KindOf(r.New()) != r.Kind {
		t.Errorf("got %v %v, of kind %s", r, ok, KindOf(r.New()))
	}
	if k, ok := KindFor(schema.FromAPIVersionAndKind("healthchecking.openshift.io/v1alpha1", "MachineHealthCheck")); !ok || k != LegacyHealthCheck {
		t.Errorf("got %s, %v", k, ok)
	}
}

// What is rendered of an object without a type is a copy: the object stays as it is.
func TestPatchesLeaveForeignObjectsAlone(t *testing.T) {
	t.Parallel()
	before := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": "a", "resourceVersion": "1"},
		"spec": map[string]any{"n": int64(1)}, "status": map[string]any{"ready": true},
	}}
	after := before.DeepCopy()
	if err := unstructured.SetNestedField(after.Object, int64(2), "spec", "n"); err != nil {
		t.Fatal(err)
	}
	patch, err := MergePatch(before, after, false)
	if err != nil || string(patch) != `{"metadata":{"resourceVersion":"1"},"spec":{"n":2}}` {
		t.Errorf("got %s, %v", patch, err)
	}
	if before.GetKind() != "Thing" || before.Object["status"] == nil {
		t.Errorf("became %v", before.Object)
	}
}
