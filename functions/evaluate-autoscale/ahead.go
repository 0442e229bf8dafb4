// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// bounded returns what is remembered as it counts at now: nothing of it happened later, nor waits for longer than anything does. A
// clock that was ahead, and was set back, must not hold all scaling up until that time comes again (RELIABILITY G7). s is not
// modified.
func bounded(s autoscaling.State, now time.Time) autoscaling.State {
	at := func(t *metav1.Time, longest time.Duration) {
		if machine.TooFar(t.Time, now, longest) {
			*t = metav1.NewTime(now.Truncate(time.Second))
		}
	}
	maybe := func(t **metav1.Time, longest time.Duration) {
		if *t != nil {
			own := **t
			at(&own, longest)
			*t = &own
		}
	}
	for _, t := range []**metav1.Time{&s.LastScaleUp, &s.LastScaleDown, &s.LastFailure, &s.Stopped, &s.Seen.Doubt} {
		maybe(t, 0)
	}
	s.Groups, s.Unneeded, s.Held = maps.Clone(s.Groups), maps.Clone(s.Unneeded), maps.Clone(s.Held)
	for id, g := range s.Groups {
		maybe(&g.LastFailure, 0)
		maybe(&g.BackoffUntil, longestBackoff)
		if g.Resize != nil {
			r := *g.Resize
			at(&r.At, 0)
			g.Resize = &r
		}
		if g.Request != nil {
			r := *g.Request
			at(&r.At, 0)
			g.Request = &r
		}
		g.Waves, g.Useless = slices.Clone(g.Waves), slices.Clone(g.Useless)
		for i := range g.Waves {
			at(&g.Waves[i].At, 0)
		}
		for i := range g.Useless {
			at(&g.Useless[i].Until, longestUseless)
		}
		s.Groups[id] = g
	}
	for uid, since := range s.Unneeded {
		at(&since, 0)
		s.Unneeded[uid] = since
	}
	for uid, h := range s.Held {
		at(&h.Since, 0)
		s.Held[uid] = h
	}
	s.Removals = slices.Clone(s.Removals)
	for i := range s.Removals {
		at(&s.Removals[i].At, 0)
		maybe(&s.Removals[i].Committed, 0)
	}
	if s.Repack != nil {
		r := *s.Repack
		at(&r.At, 0)
		s.Repack = &r
	}
	return s
}
