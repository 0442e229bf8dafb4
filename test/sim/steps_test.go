// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Power-cycle first: where somebody carries it out and it helps, the Machine stays; where nobody does, it is replaced ten
// minutes later. Either way nothing is left behind (D15, D17, R-S11).
func TestPowerCycleFirst(t *testing.T) {
	t.Parallel()
	for name, helped := range map[string]bool{"somebody does it": true, "nobody does it": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clinic(t, 3, check("40%", map[string]string{machine.AnnotationSteps: "power-cycle=10m,replace"}))
			before := memory.List[*machine.Machine](w.API)[0]
			strike(t, w, 1, corev1.ConditionUnknown)
			asked := 0
			for range 6 * 25 {
				if err := w.Tick(t.Context()); err != nil {
					t.Fatal(err)
				}
				if _, is := machineNamed(w, before.Name).Annotations[machine.AnnotationExternalRepair]; is && helped {
					asked++
					powerCycle(t, w, before.Name)
				}
			}
			settle(t, w, 1)
			if got := machineNamed(w, before.Name).UID == before.UID; got != helped || helped && asked != 1 || running(w) != 3 {
				t.Errorf("the Machine is still there: %v, want %v; asked %d times; %s", got, helped, asked, state(w))
			}
			for _, m := range memory.List[*machine.Machine](w.API) {
				if len(m.Annotations[machine.AnnotationRemediatedBy]+m.Annotations[machine.AnnotationExternalRepair]) != 0 {
					t.Errorf("%s is left with %v", m.Name, m.Annotations)
				}
			}
			if h := memory.List[*machine.MachineHealthCheck](w.API)[0]; h.Annotations[machine.AnnotationInFlight] != "" {
				t.Errorf("the check still remembers %s", h.Annotations[machine.AnnotationInFlight])
			}
		})
	}
}

func machineNamed(w *World, name string) *machine.Machine {
	if m := memory.Get[*machine.Machine](w.API, machine.Namespace, name); m != nil {
		return m
	}
	return &machine.Machine{}
}

// powerCycle does what the host's operator does.
func powerCycle(t *testing.T, w *World, name string) {
	t.Helper()
	strike(t, w, 1, corev1.ConditionTrue)
	err := memory.Patch(w.API, machine.Namespace, name, func(m *machine.Machine) { delete(m.Annotations, machine.AnnotationExternalRepair) })
	if err != nil {
		t.Fatal(err)
	}
}

// With a template somebody else remediates: the request comes when the Machine is sick and goes when it is well (B58).
func TestRemediationBySomebodyElse(t *testing.T) {
	t.Parallel()
	const group, kind = "remediation.example.com/v1", "Reboot"
	h := check("40%", nil)
	h.Spec.RemediationTemplate = &corev1.ObjectReference{APIVersion: group, Kind: kind + "Template", Name: "gently"}
	template := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group, "kind": kind + "Template", "metadata": map[string]any{"namespace": machine.Namespace, "name": "gently"},
		"spec": map[string]any{"template": map[string]any{"spec": map[string]any{"seconds": int64(30)}}},
	}}
	w := clinic(t, 3, h)
	if err := w.API.Put(template); err != nil {
		t.Fatal(err)
	}
	strike(t, w, 1, corev1.ConditionFalse)
	run(t, w, 6*10)
	m := memory.List[*machine.Machine](w.API)[0]
	request := requestFor(t, w, kind+".v1.remediation.example.com", m.Name)
	if request == nil || !metav1.IsControlledBy(request, m) && request.GetOwnerReferences()[0].UID != m.UID || deletions(w) != 0 {
		t.Fatalf("request %v, %d deletions", request, deletions(w))
	}
	if seconds, _, err := unstructured.NestedInt64(request.Object, "spec", "seconds"); seconds != 30 || err != nil {
		t.Errorf("the request is %v", request.Object)
	}
	strike(t, w, 1, corev1.ConditionTrue)
	run(t, w, 6)
	if request := requestFor(t, w, kind+".v1.remediation.example.com", m.Name); request != nil || running(w) != 3 {
		t.Errorf("left behind: %v", request)
	}
}

func requestFor(t *testing.T, w *World, kind plan.Kind, name string) *unstructured.Unstructured {
	t.Helper()
	s, err := w.API.As("somebody").Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{snapshot.One(kind, machine.Namespace, name)})
	if err != nil {
		t.Fatal(err)
	}
	return s.ForeignObject(kind, machine.Namespace, name)
}
