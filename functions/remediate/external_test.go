// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Whoever may write a check must not have anything made but what asks somebody else to remediate: no Pods from a PodTemplate, and nothing in
// another namespace (SPEC B58).
func TestTemplatesOfRemediationAlone(t *testing.T) {
	t.Parallel()
	const metal3 = "infrastructure.cluster.x-k8s.io/v1beta1"
	for name, c := range map[string]struct {
		ref  corev1.ObjectReference
		want bool
	}{
		"somebody else's":            {corev1.ObjectReference{APIVersion: metal3, Kind: "Metal3RemediationTemplate", Name: "a"}, true},
		"with the check's namespace": {corev1.ObjectReference{APIVersion: metal3, Kind: "Metal3RemediationTemplate", Name: "a", Namespace: machine.Namespace}, true},
		"in another namespace":       {corev1.ObjectReference{APIVersion: metal3, Kind: "Metal3RemediationTemplate", Name: "a", Namespace: "kube-system"}, false},
		"of pods":                    {corev1.ObjectReference{APIVersion: "v1", Kind: "PodTemplate", Name: "a"}, false},
		"of too long a kind":         {corev1.ObjectReference{APIVersion: metal3, Kind: strings.Repeat("A", 60) + "Template", Name: "a"}, false},
		"of nothing":                 {corev1.ObjectReference{APIVersion: metal3, Kind: "Template", Name: "a"}, false},
		"without a name":             {corev1.ObjectReference{APIVersion: metal3, Kind: "Metal3RemediationTemplate"}, false},
	} {
		h := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "workers"}}
		h.Spec.RemediationTemplate = &c.ref
		if _, err := externalOf(h); (err == nil) != c.want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A slot of the budget that another function took for a Machine is that function's while the Machine is there, whatever the checks say of it
// (RELIABILITY G8); one for a Machine that is gone is over, though another has its name.
func TestSlotsOfOthersStand(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "worker-a", UID: "machine-a"}}
	d := newDecision(snapshot.Snapshot{Now: now, Machines: []*machine.Machine{m}})
	slot := machine.Slot{Namespace: m.Namespace, Machine: m.Name, UID: m.UID, By: name, At: metav1.NewTime(now)}
	if !d.over(slot) {
		t.Error("ours is needed, though the machine is in no check's flight")
	}
	slot.By = "evaluate-autoscale"
	if d.over(slot) {
		t.Error("another function's is over, though the machine is there")
	}
	if slot.UID = "machine-of-before"; !d.over(slot) {
		t.Error("that of a machine that is gone is needed")
	}
	if slot.ControlPlane = true; !d.over(slot) {
		t.Error("another function's of the control plane is needed once its machine is gone")
	}
}
