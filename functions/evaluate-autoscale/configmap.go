// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// storing returns the write of the autoscaler's ConfigMap that makes it say data beside what else it says, or makes it. A key without a text
// is taken off.
func storing(s snapshot.Snapshot, data map[string]string, why string) plan.Action {
	cm := s.ConfigMap(machine.Namespace, machine.ConfigMapStatus)
	next := cm.DeepCopy()
	if next == nil {
		next = &corev1.ConfigMap{}
		next.Namespace, next.Name = machine.Namespace, machine.ConfigMapStatus
	}
	if next.Data == nil {
		next.Data = map[string]string{}
	}
	for key, text := range data {
		if next.Data[key] = text; text == "" {
			delete(next.Data, key)
		}
	}
	if cm == nil {
		return plan.Create{Object: next, Why: why}
	}
	return plan.Update{Old: cm, New: next, Why: why}
}
