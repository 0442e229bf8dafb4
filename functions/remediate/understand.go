// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"errors"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// understand says what is wrong with the spec of a check, where the CRD lets pass what means nothing. What is not
// understood must not be guessed: Machines are deleted for it.
func understand(h *machine.MachineHealthCheck) error {
	if why, unreadable := h.Annotations[machine.AnnotationUnreadable]; unreadable {
		return fmt.Errorf("spec: %s", why)
	}
	if t := h.Spec.NodeStartupTimeout; t != nil && t.Duration < 0 {
		return fmt.Errorf("spec.nodeStartupTimeout: %v is less than nothing", t.Duration)
	}
	for i, u := range h.Spec.UnhealthyConditions {
		if err := understandCondition(u); err != nil {
			return fmt.Errorf("spec.unhealthyConditions[%d]%w", i, err)
		}
	}
	if _, err := maxUnhealthy(h, 1); err != nil {
		return fmt.Errorf("spec.maxUnhealthy: %w", err)
	}
	if s := h.Annotations[machine.AnnotationStrategy]; s != "" && s != strategyBareMetal {
		return fmt.Errorf("annotation %s: %q is not %s", machine.AnnotationStrategy, s, strategyBareMetal)
	}
	return nil
}

// understandCondition continues the name of a condition. Of a timeout that was not given nothing is known but that it is
// zero; nobody calls a Node sick for not being Ready for no time at all.
func understandCondition(u machinev1beta1.UnhealthyCondition) error {
	switch {
	case u.Type == "":
		return errors.New(": no type")
	case u.Status != corev1.ConditionTrue && u.Status != corev1.ConditionFalse && u.Status != corev1.ConditionUnknown:
		return fmt.Errorf(".status: %q is none of True, False, Unknown", u.Status)
	case u.Timeout.Duration < 0:
		return fmt.Errorf(".timeout: %v is less than nothing", u.Timeout.Duration)
	case u.Timeout.Duration == 0 && u.Type == corev1.NodeReady:
		return fmt.Errorf(".timeout: 0s, or none: whatever has Ready=%s for a moment would be replaced", u.Status)
	}
	return nil
}
