// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// oldEnough reports whether a Pod has waited for as long as the settings, or its own annotation, want it to. Of one that a clock which was
// ahead made nobody knows: it has (RELIABILITY G7). For a Node that there is no Pod is too young.
func (sc *scan) oldEnough(p *corev1.Pod) bool {
	own, _ := ownDelay(p)
	delay := max(sc.settings.NewPodScaleUpDelay, own)
	return delay == 0 || sc.going != nil || sc.Now.Sub(p.CreationTimestamp.Time) > delay || machine.TooFar(p.CreationTimestamp.Time, sc.Now, 0)
}

// ownDelay returns how long a Pod wants to wait before Nodes are added for it; one that nobody can read is none.
func ownDelay(p *corev1.Pod) (time.Duration, error) {
	text, is := p.Annotations[delayAnnotation]
	if !is {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("metadata.annotations[%s]: %q must be a duration like 10m", delayAnnotation, clip(text))
	}
	return d, nil
}

// tellDelays tells Pods without a place that nobody can read how long they want to wait, whether Nodes are added for them or not.
func (sc *scan) tellDelays() {
	var all []unhelped
	for _, p := range sc.unbound {
		if _, err := ownDelay(p); err != nil && unschedulable(p) {
			all = append(all, unhelped{p, err.Error})
		}
	}
	for _, u := range sc.inTurn(nil, all) {
		sc.notes = append(sc.notes, plan.Warning(u.pod, "FailedValidate", u.why()).From(source))
	}
}
