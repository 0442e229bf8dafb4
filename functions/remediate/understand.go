// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"

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
		if u.Timeout.Duration < 0 {
			return fmt.Errorf("spec.unhealthyConditions[%d].timeout: %v is less than nothing", i, u.Timeout.Duration)
		}
	}
	if _, err := maxUnhealthy(h, 1); err != nil {
		return fmt.Errorf("spec.maxUnhealthy: %w", err)
	}
	return nil
}
