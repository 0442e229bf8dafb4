// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// Whatever stands in a spec or an annotation that is not understood, and however long it is: an API server takes what is said of it,
// which it does not of more than 32768 characters (RELIABILITY §4, inputs).
func TestWhatIsNotUnderstoodIsToldInShort(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/invalid-machineautoscaler-takes-no-set.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil || len(seen.MachineAutoscalers) != 2 {
		t.Fatalf("%d MachineAutoscalers, error %v", len(seen.MachineAutoscalers), err)
	}
	ma := seen.MachineAutoscalers[0].DeepCopy()
	metav1.SetMetaDataAnnotation(&ma.ObjectMeta, autoscaling.ScheduleAnnotation, strings.Repeat("ü", 50_000))
	seen.MachineAutoscalers[0] = ma
	for _, a := range Decide(seen).Actions() {
		u, is := a.(plan.UpdateStatus)
		if !is {
			continue
		}
		next, is := u.New.(*autoscaling.MachineAutoscaler)
		if !is || next.Name != ma.Name {
			continue
		}
		text := next.Status.Conditions[0].Message
		if len(text) > 4096 || !strings.HasPrefix(text, "[spec.maxReplicas: Invalid value: 4: ") || !strings.HasSuffix(text, "ü…") {
			t.Errorf("%d bytes: %.100q … %q", len(text), text, text[max(0, len(text)-20):])
		}
		return
	}
	t.Error("nothing is told")
}
