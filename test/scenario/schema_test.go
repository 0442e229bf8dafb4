// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// What an API server refuses by a kind's schema no plan may write; what stood there before is nobody's fault.
func TestInadmissible(t *testing.T) {
	t.Parallel()
	set := func(change func(*machine.MachineSet)) *machine.MachineSet {
		s := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "worker"}}
		change(s)
		return s
	}
	fine := set(func(*machine.MachineSet) {})
	odd := set(func(s *machine.MachineSet) { s.Spec.DeletePolicy = "Cheapest" })
	long := func(n int) string { return strings.Repeat("a", n) }
	selects := odd.DeepCopy()
	selects.Status.LabelSelector = long(4097)
	node := func(change func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker"}}
		change(n)
		return n
	}
	taint := corev1.Taint{Key: "k", Effect: "NoSchedule"}
	buffer := func(reason string) plan.Object {
		u := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "b", "namespace": "n"}}}
		u.SetGroupVersionKind(schema.GroupVersionKind{Group: "autoscaling.x-k8s.io", Version: "v1beta1", Kind: "CapacityBuffer"})
		if reason != "" {
			u.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "T", "status": "True", "reason": reason, "lastTransitionTime": "2026-01-01T10:00:00Z"}}}
		}
		return u
	}
	for name, c := range map[string]struct {
		action plan.Action
		fault  string
	}{
		"as it may be":        {plan.UpdateStatus{Old: fine, New: fine}, ""},
		"no such word":        {plan.Update{Old: fine, New: odd}, "spec.deletePolicy"},
		"created so":          {plan.Create{Object: odd}, "spec.deletePolicy"},
		"too long a text":     {plan.UpdateStatus{Old: odd, New: selects}, "status.labelSelector"},
		"it stood there":      {plan.Update{Old: selects, New: selects}, ""},
		"a kind without any":  {plan.Create{Object: node(func(*corev1.Node) {})}, ""},
		"no such label":       {plan.Create{Object: node(func(n *corev1.Node) { n.Labels = map[string]string{"zone": "a b"} })}, "metadata.labels"},
		"no such taint":       {plan.Create{Object: node(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Value: "a b"}} })}, "spec.taints[0].value"},
		"a taint twice":       {plan.Create{Object: node(func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{taint, taint} })}, "spec.taints[1]"},
		"large annotations":   {plan.Update{Old: fine, New: set(func(s *machine.MachineSet) { s.Annotations = map[string]string{"a": long(262_144)} })}, "metadata.annotations"},
		"a large object":      {plan.Update{Old: fine, New: set(func(s *machine.MachineSet) { s.Spec.Template.Spec.ProviderID = new(long(1_600_000)) })}, "Too long"},
		"a large ConfigMap":   {plan.Create{Object: &corev1.ConfigMap{ObjectMeta: fine.ObjectMeta, Data: map[string]string{"a": long(1<<20 + 1)}}}, "data"},
		"of another's kind":   {plan.UpdateStatus{Old: buffer(""), New: buffer("no word")}, "status.conditions[0].reason"},
		"nothing that writes": {plan.Delete{Object: selects}, ""},
	} {
		faults, err := Inadmissible(c.action)
		if got := strings.Join(faults, "; "); err != nil || !strings.Contains(got, c.fault) || (c.fault == "") != (got == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
