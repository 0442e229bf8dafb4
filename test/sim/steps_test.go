// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Power-cycle first: where that helps, the Machine stays; where it does not, or where the cloud refuses, it is replaced ten
// minutes later. With three copies of every function the instance is power-cycled once, and nothing is left behind (D15,
// D17, W19, R-S11).
func TestPowerCycleFirst(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		refused, helps bool
		cycles         int
	}{
		"it helps":          {helps: true, cycles: 1},
		"it does not help":  {cycles: 1},
		"the cloud refuses": {refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := clinic(t, 3, check("40%", map[string]string{machine.AnnotationSteps: "power-cycle=10m,replace"}))
			before := memory.List[*machine.Machine](w.API)[0]
			w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
				if tt.refused && c.Op == cloud.OpPowerCycle {
					return provider.Errorf(provider.Denied, "not allowed to reboot")
				}
				return nil
			}
			strike(t, w, 1, corev1.ConditionUnknown)
			for range 6 * 25 {
				storm(t.Context(), w)
				if tt.helps && cycled(w, before.UID) > 0 {
					strike(t, w, 1, corev1.ConditionTrue)
				}
			}
			settle(t, w, 3)
			kept := slices.ContainsFunc(memory.List[*machine.Machine](w.API), func(m *machine.Machine) bool { return m.UID == before.UID })
			if n := cycled(w, before.UID); kept != tt.helps || n != tt.cycles || running(w) != 3 {
				t.Errorf("the Machine is still there: %v, want %v; power-cycled %d times, want %d; %s", kept, tt.helps, n, tt.cycles, state(w))
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

// Where the cloud has no room for another Machine, who was power-cycled in vain is held before it is replaced. It is power-cycled once and no more,
// however long that takes, and the one place of the check is for others meanwhile; once there is room it is replaced (D15, D17, 2f.ledger).
func TestPowerCycledOnceWhereThereIsNoRoom(t *testing.T) {
	t.Parallel()
	h := check("100%", map[string]string{machine.AnnotationSteps: "power-cycle=10m,replace", machine.AnnotationMaxInFlight: "1"})
	h.Spec.NodeStartupTimeout = &metav1.Duration{}
	w := clinic(t, 3, h)
	before := memory.List[*machine.Machine](w.API)
	full := true
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		if full && c.Op == cloud.OpCreate {
			return provider.Errorf(provider.Exhausted, "no capacity in zone a")
		}
		return nil
	}
	err := memory.Patch(w.API, machine.Namespace, "worker", func(s *machine.MachineSet) { s.Spec.Replicas = new(int32(4)) })
	if err != nil {
		t.Fatal(err)
	}
	strike(t, w, 2, corev1.ConditionFalse)
	for range 6 * 60 * 3 {
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, m := range before {
		if n, want := cycled(w, m.UID), min(1, max(0, 2-i)); n != want {
			t.Errorf("%s was power-cycled %d times in three hours, want %d", m.Name, n, want)
		}
	}
	if n := deletions(w); n != 0 {
		t.Errorf("%d were deleted while there was no room", n)
	}
	released := int32(0)
	for _, e := range w.API.Events() {
		if e.Reason == "RemediationReleased" {
			released += e.Count
		}
	}
	if released != 2 {
		t.Errorf("RemediationReleased was told %d times, want once of each", released)
	}
	full = false
	for range 6 * 60 {
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if running(w) != 4 || deletions(w) != 2 || cycled(w, before[0].UID)+cycled(w, before[1].UID) != 2 {
		t.Errorf("%d run, want 4; %d were deleted, want 2; %s", running(w), deletions(w), state(w))
	}
}

// cycled counts how often the cloud powered the instance of a Machine off and on.
func cycled(w *World, uid types.UID) int {
	n := 0
	for _, e := range w.Cloud.History() {
		if e.What == cloud.Cycled && e.UID == uid {
			n++
		}
	}
	return n
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
