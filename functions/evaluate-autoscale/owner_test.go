// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// A MachineAutoscaler that is deleted waits for no set that is on its way out, however long that takes; nor has such a set its bounds
// changed (SPEC B86).
func TestMachineAutoscalerDoesNotWaitForASetThatGoes(t *testing.T) {
	t.Parallel()
	for _, goes := range []bool{false, true} {
		w := fresh(t, "{}")
		w.set(t, "s", 0, 4, midsize(), nil)
		w.scans(t, 3)
		if goes {
			w.must(t, memory.Patch(w.Server, machine.Namespace, "s", func(s *machine.MachineSet) { s.Finalizers = []string{"example.com/keep"} }))
			w.must(t, w.Remove("MachineSet", machine.Namespace, "s", memory.Background))
		}
		before := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "s")
		w.must(t, w.Remove("MachineAutoscaler", machine.Namespace, "s", memory.Background))
		w.scans(t, 3)
		if ma := memory.Get[*autoscaling.MachineAutoscaler](w.Server, machine.Namespace, "s"); ma != nil {
			t.Errorf("the set goes: %v; the MachineAutoscaler is there with %v", goes, ma.Finalizers)
		}
		after := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "s")
		if before.Annotations[machine.AnnotationAutoscaler] == "" || (after.ResourceVersion == before.ResourceVersion) != goes {
			t.Errorf("the set goes: %v; its annotations were %v, are %v", goes, before.Annotations, after.Annotations)
		}
	}
}
