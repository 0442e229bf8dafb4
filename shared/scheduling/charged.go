// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
)

// Charged returns those of the budgets that cover a Pod which its eviction is asked of: the API server looks at none for a Pod that does
// not run yet (RELIABILITY 2e), nor at one that lets go of Pods that are not ready.
func Charged(p *corev1.Pod, all []*policyv1.PodDisruptionBudget) []*policyv1.PodDisruptionBudget {
	if p.Status.Phase == corev1.PodPending || len(all) == 1 && !podReady(p) && sparesReady(all[0]) {
		return nil
	}
	return all
}

func podReady(p *corev1.Pod) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// sparesReady reports whether a budget guards ready Pods only: it says so, or there are as many of them as it wants.
func sparesReady(b *policyv1.PodDisruptionBudget) bool {
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
}
