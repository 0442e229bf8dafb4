// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// unschedulable is the taint that a cordon is.
var unschedulable = corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}

// CameThoughCordoned reports whether a Pod was made after its Node was cordoned, and may be there because it tolerates that: the next one in
// its place may come as well. Of a Pod that a clock which was ahead made nobody knows when that was: it did not (RELIABILITY G7).
func CameThoughCordoned(p *corev1.Pod, since, now time.Time) bool {
	made := p.CreationTimestamp.Time
	return !since.IsZero() && made.After(since) && !machine.TooFar(made, now, 0) && Tolerated(p.Spec.Tolerations, unschedulable)
}

// BoundSince reports whether a Pod was bound to its Node at a time or since, as far as it says when; one that was made since was. Of what a
// clock which was ahead says nobody knows: it was not (RELIABILITY G7).
func BoundSince(p *corev1.Pod, since, now time.Time) bool {
	bound := p.CreationTimestamp.Time
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(bound) {
			bound = c.LastTransitionTime.Time
		}
	}
	return !bound.IsZero() && !bound.Before(since) && !machine.TooFar(bound, now, 0)
}
