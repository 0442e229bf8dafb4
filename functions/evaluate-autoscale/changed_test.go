// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// Somebody gives a set that has a Node another instance type, other labels and taints. What Pods are told, and what is planned,
// follows from the Machines that the set makes now, not from those that it made before (SPEC C13, C14, C34).
func TestChangedSetIsPlannedWithAsItIsNow(t *testing.T) {
	t.Parallel()
	made := func(text string) *runtime.RawExtension { return &runtime.RawExtension{Raw: []byte(text)} }
	now := map[string]string{"pool": "new", "both": "x"}
	for _, tt := range []struct {
		name    string
		was     string // what the Machine that is there was made from
		cpu     string // what a Pod asks for
		pool    string // what it selects
		grows   bool
		because string
	}{
		{"the new type holds it", `{"type":"small","filled":"in"}`, "7", "", true, ""},
		{"of the same type, the node says what it is", `{"type":"big","filled":"in"}`, "7", "", false, "wants 7, a new node has 4"},
		{"the new label", `{"type":"big"}`, "3", "new", true, ""},
		{"the old label", `{"type":"big"}`, "3", "old", false, "didn't match Pod's node affinity/selector"},
	} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.set(t, "s", 1, 9, map[string]string{machine.CapacityCPU: "16", machine.CapacityMemory: "64Gi"}, now)
		w.member(t, "s", "a", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), map[string]string{"pool": "old", "both": "x"})
		w.must(t, memory.Patch(w.Server, machine.Namespace, "s", func(s *machine.MachineSet) {
			s.Spec.Template.Spec.ProviderSpec.Value = made(`{"type":"big"}`)
			s.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "new", Effect: corev1.TaintEffectNoSchedule}}
		}))
		w.must(t, memory.Patch(w.Server, machine.Namespace, "a", func(m *machine.Machine) {
			m.Spec.ProviderSpec.Value, m.Spec.Labels = made(tt.was), map[string]string{"pool": "old", "both": "x"}
			m.Spec.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectNoSchedule}}
		}))
		w.must(t, memory.Patch(w.Server, "", "a", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "old", Effect: corev1.TaintEffectNoSchedule}}
		}))
		p := pending("p", epoch.Add(-time.Minute), resources("cpu", tt.cpu))
		p.Spec.Tolerations = []corev1.Toleration{{Key: "new", Operator: corev1.TolerationOpExists}}
		if tt.pool != "" {
			p.Spec.NodeSelector = map[string]string{"pool": tt.pool}
		}
		w.must(t, w.Put(p))
		got := w.once(t).String()
		if grew := w.replicas("s")[0] == 2; grew != tt.grows || !strings.Contains(got, tt.because) {
			t.Errorf("%s: grew %t\n%s", tt.name, grew, got)
		}
	}
}
