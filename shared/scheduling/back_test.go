// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Only who was made after the cordon, and tolerates it, comes back (RELIABILITY 2e). Where it is not known when, he did not.
func TestWhoCameThoughCordoned(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	now := since.Add(10 * time.Minute)
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	for name, tt := range map[string]struct {
		made, since time.Time
		tolerates   corev1.Toleration
		want        bool
	}{
		"made later":                     {since.Add(time.Minute), since, all, true},
		"made later, tolerates that":     {since.Add(time.Minute), since, corev1.Toleration{Key: corev1.TaintNodeUnschedulable, Operator: corev1.TolerationOpExists}, true},
		"made later, tolerates another":  {since.Add(time.Minute), since, corev1.Toleration{Key: "gpu", Operator: corev1.TolerationOpExists}, false},
		"made later, tolerates nothing":  {since.Add(time.Minute), since, corev1.Toleration{Key: "none"}, false},
		"made before":                    {since.Add(-time.Minute), since, all, false},
		"made in that second":            {since, since, all, false},
		"nobody knows since when":        {since.Add(time.Minute), time.Time{}, all, false},
		"made by a clock that was ahead": {now.Add(time.Hour), since, all, false},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(tt.made)}, Spec: corev1.PodSpec{Tolerations: []corev1.Toleration{tt.tolerates}}}
		if got := CameThoughCordoned(p, tt.since, now); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Who was bound in the second of the look, or later, may not have been seen by it (R-B24). Where it is not known when, that was before.
func TestWhoWasBoundSince(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	now := since.Add(10 * time.Minute)
	for name, tt := range map[string]struct {
		made, bound time.Time
		status      corev1.ConditionStatus
		want        bool
	}{
		"bound before":                    {since.Add(-time.Minute), since.Add(-time.Second), corev1.ConditionTrue, false},
		"bound in that second":            {since.Add(-time.Minute), since, corev1.ConditionTrue, true},
		"made before, bound later":        {since.Add(-time.Minute), since.Add(time.Minute), corev1.ConditionTrue, true},
		"made before, not bound later":    {since.Add(-time.Minute), since.Add(time.Minute), corev1.ConditionFalse, false},
		"made later, does not say more":   {since.Add(time.Second), time.Time{}, "", true},
		"says nothing":                    {time.Time{}, time.Time{}, "", false},
		"bound by a clock that was ahead": {since.Add(-time.Minute), now.Add(time.Hour), corev1.ConditionTrue, false},
	} {
		p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(tt.made)}, Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now)},
			{Type: corev1.PodScheduled, Status: tt.status, LastTransitionTime: metav1.NewTime(tt.bound)},
		}}}
		if got := BoundSince(p, since, now); got != tt.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if BoundSince(&corev1.Pod{}, time.Time{}, now) {
		t.Error("it says nothing, and nobody looked")
	}
}
