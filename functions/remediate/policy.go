// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"
	"strings"
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// strategyBareMetal asks for a power-cycle instead of a new Machine (SPEC B57).
const strategyBareMetal = "external-baremetal"

// stormCooldown is how long nothing is remediated after a storm, unless a check says otherwise: what recovers a little
// later than the rest is not replaced for it (D14).
const stormCooldown = 5 * time.Minute

// What a step does about a sick Machine.
const (
	stepReplace    = "replace"     // delete it: its set makes another (B56)
	stepPowerCycle = "power-cycle" // ask whoever runs its host to power it off and on (B57)
	stepTemplate   = "template"    // create an object from spec.remediationTemplate: somebody else remediates (B58)
)

// step is one attempt to remediate. After its timeout it is the next one's turn (D15); the last has none.
type step struct {
	does    string
	timeout time.Duration
}

// policy is what people want of a check beside its spec, in annotations that the API of OpenShift tolerates.
type policy struct {
	maxInFlight  string // a number or a percentage; empty: the usual
	cooldown     time.Duration
	healthyDelay time.Duration
	steps        []step
}

// policyOf reads the annotations of a check. Its error names the annotation.
func policyOf(h *machine.MachineHealthCheck) (p policy, err error) {
	p.maxInFlight = h.Annotations[machine.AnnotationMaxInFlight]
	if p.maxInFlight != "" {
		if _, err := machine.ParseShare(p.maxInFlight, 1); err != nil {
			return p, fmt.Errorf("annotation %s: %w", machine.AnnotationMaxInFlight, err)
		}
	}
	if p.cooldown, err = durationOf(h, machine.AnnotationStormCooldown, stormCooldown); err != nil {
		return p, err
	}
	if p.healthyDelay, err = durationOf(h, machine.AnnotationHealthyDelay, 0); err != nil {
		return p, err
	}
	if p.steps, err = stepsOf(h); err != nil {
		return p, fmt.Errorf("annotation %s: %w", machine.AnnotationSteps, err)
	}
	return p, nil
}

func durationOf(h *machine.MachineHealthCheck, key string, usual time.Duration) (time.Duration, error) {
	text, ok := h.Annotations[key]
	if !ok {
		return usual, nil
	}
	d, err := time.ParseDuration(text)
	if err == nil && d < 0 {
		err = fmt.Errorf("%v is less than nothing", d)
	}
	if err != nil {
		return 0, fmt.Errorf("annotation %s: %w", key, err)
	}
	return d, nil
}

// stepsOf reads "power-cycle=10m,template=20m,replace". Without it there is the one step that the spec asks for.
func stepsOf(h *machine.MachineHealthCheck) ([]step, error) {
	text, ok := h.Annotations[machine.AnnotationSteps]
	switch {
	case ok:
	case h.Spec.RemediationTemplate != nil:
		text = stepTemplate
	case h.Annotations[machine.AnnotationStrategy] == strategyBareMetal:
		text = stepPowerCycle
	default:
		text = stepReplace
	}
	var steps []step
	parts := strings.Split(text, ",")
	for i, part := range parts {
		s, err := parseStep(strings.TrimSpace(part), i == len(parts)-1)
		if err == nil && s.does == stepTemplate && h.Spec.RemediationTemplate == nil {
			err = fmt.Errorf("step %q without spec.remediationTemplate", s.does)
		}
		if err != nil {
			return nil, err
		}
		steps = append(steps, s)
	}
	return steps, nil
}

// parseStep reads "power-cycle=10m": every step but the last has a timeout.
func parseStep(text string, last bool) (step, error) {
	does, timeout, timed := strings.Cut(text, "=")
	s := step{does: does}
	if timed {
		var err error
		if s.timeout, err = time.ParseDuration(timeout); err != nil {
			return step{}, fmt.Errorf("step %q: %w", text, err)
		}
	}
	switch {
	case does != stepReplace && does != stepPowerCycle && does != stepTemplate:
		return step{}, fmt.Errorf("step %q is none of %s, %s, %s", does, stepPowerCycle, stepTemplate, stepReplace)
	case s.timeout < 0:
		return step{}, fmt.Errorf("step %q: %v is less than nothing", does, s.timeout)
	case !last && s.timeout == 0:
		return step{}, fmt.Errorf("step %q needs a timeout before the next one", does)
	case last && timed:
		return step{}, fmt.Errorf("step %q is the last one, it cannot have a timeout", does)
	}
	return s, nil
}
