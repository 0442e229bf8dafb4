// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

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
	long := odd.DeepCopy()
	long.Status.LabelSelector = strings.Repeat("a", 4097)
	for name, c := range map[string]struct {
		action plan.Action
		fault  string
	}{
		"as it may be":        {plan.UpdateStatus{Old: fine, New: fine}, ""},
		"no such word":        {plan.Update{Old: fine, New: odd}, "spec.deletePolicy"},
		"created so":          {plan.Create{Object: odd}, "spec.deletePolicy"},
		"too long a text":     {plan.UpdateStatus{Old: odd, New: long}, "status.labelSelector"},
		"it stood there":      {plan.Update{Old: long, New: long}, ""},
		"a kind without any":  {plan.Create{Object: &corev1.Node{}}, ""},
		"nothing that writes": {plan.Delete{Object: long}, ""},
	} {
		faults, err := Inadmissible(c.action)
		if got := strings.Join(faults, "; "); err != nil || !strings.Contains(got, c.fault) || (c.fault == "") != (got == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}
