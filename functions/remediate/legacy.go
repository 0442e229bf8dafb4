// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// legacyKind is the MachineHealthCheck that knows a selector only (SPEC B61).
const legacyKind = "MachineHealthCheck.v1alpha1.healthchecking.openshift.io"

// rulesQuery asks for the rules of all legacy checks.
var rulesQuery = snapshot.One("ConfigMap", machine.Namespace, machine.ConfigMapUnhealthy)

// legacyTimeout is for how long a Node may be not Ready where no ConfigMap says anything (S88).
const legacyTimeout = 5 * time.Minute

// translate returns the check of today that a legacy one stands for: a Machine without a Node is never sick for it.
func translate(old *machine.LegacyHealthCheck, rules *corev1.ConfigMap) (*machine.MachineHealthCheck, error) {
	h := &machine.MachineHealthCheck{ObjectMeta: old.ObjectMeta, Status: old.Status}
	h.Spec.Selector = old.Spec.Selector
	h.Spec.NodeStartupTimeout = &metav1.Duration{}
	if rules == nil {
		for _, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionUnknown} {
			h.Spec.UnhealthyConditions = append(h.Spec.UnhealthyConditions, machinev1beta1.UnhealthyCondition{
				Type: corev1.NodeReady, Status: status, Timeout: metav1.Duration{Duration: legacyTimeout},
			})
		}
		return h, nil
	}
	var list struct {
		Items []struct {
			Name    corev1.NodeConditionType `json:"name"`
			Timeout metav1.Duration          `json:"timeout"`
			Status  string                   `json:"status"` // YAML reads the True of S89 as a boolean
		} `json:"items"`
	}
	text, ok := rules.Data["conditions"]
	if !ok {
		return h, fmt.Errorf("configmap %s has no key conditions", rules.Name)
	}
	if err := provider.ReadYAML(text, &list); err != nil {
		return h, fmt.Errorf("configmap %s key conditions: %w", rules.Name, err)
	}
	for _, i := range list.Items {
		status, known := statuses[strings.ToLower(i.Status)]
		if !known || i.Name == "" {
			return h, fmt.Errorf("configmap %s key conditions: condition %q has the status %q", rules.Name, i.Name, i.Status)
		}
		if i.Timeout.Duration <= 0 {
			return h, fmt.Errorf("configmap %s key conditions: condition %q has no timeout above 0", rules.Name, i.Name)
		}
		h.Spec.UnhealthyConditions = append(h.Spec.UnhealthyConditions, machinev1beta1.UnhealthyCondition{Type: i.Name, Status: status, Timeout: i.Timeout})
	}
	return h, nil
}

var statuses = map[string]corev1.ConditionStatus{
	"true": corev1.ConditionTrue, "false": corev1.ConditionFalse, "unknown": corev1.ConditionUnknown,
}
