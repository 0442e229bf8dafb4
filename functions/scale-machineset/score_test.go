// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// Who failed goes first, whichever of the two its status has; then, where people have no wish, who has no Node (B43).
func TestScoreOfWhoFailed(t *testing.T) {
	t.Parallel()
	node := &corev1.ObjectReference{Kind: "Node", Name: "node-a"}
	reason := machinev1beta1.CreateMachineError
	for name, c := range map[string]struct {
		status machinev1beta1.MachineStatus
		want   float64
	}{
		"a reason":    {machinev1beta1.MachineStatus{NodeRef: node, ErrorReason: &reason}, 100},
		"a message":   {machinev1beta1.MachineStatus{NodeRef: node, ErrorMessage: new("it is gone")}, 100},
		"without any": {machinev1beta1.MachineStatus{NodeRef: node}, 20},
		"no Node":     {machinev1beta1.MachineStatus{}, 40},
	} {
		if got := score(&machine.MachineSet{}, candidate{machine: &machine.Machine{Status: c.status}}, time.Time{}); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
