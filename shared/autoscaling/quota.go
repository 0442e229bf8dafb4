// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// Quotas are the ResourceQuotas of all namespaces, with what was taken of them: room for Pods that their quotas would not admit
// helps nobody (SPEC C83).
type Quotas struct {
	all   []*corev1.ResourceQuota
	taken map[*corev1.ResourceQuota]corev1.ResourceList
}

// NewQuotas returns quotas of which nothing is taken but what runs.
func NewQuotas(all []*corev1.ResourceQuota) Quotas {
	return Quotas{all, map[*corev1.ResourceQuota]corev1.ResourceList{}}
}

// Take takes what so many Pods ask for, or as many as the quotas admit, and returns how many that are, with the names of the
// quotas that admit fewer. More than most are not taken: nobody keeps room for them. What they say of limits and of numbers of
// objects is left to the API server.
func (q Quotas) Take(namespace string, spec corev1.PodSpec, each corev1.ResourceList, wanted, most int) (count int, held []string) {
	count = wanted
	var hold []*corev1.ResourceQuota
	for _, x := range q.all {
		if x.Namespace != namespace || slices.ContainsFunc(scopesOf(x), func(s corev1.ScopedResourceSelectorRequirement) bool { return !inScope(s, spec, each) }) {
			continue
		}
		hold = append(hold, x)
		if room := q.room(x, each); room < wanted {
			held, count = append(held, x.Name), min(count, room)
		}
	}
	if count > most {
		return count, held
	}
	for _, x := range hold {
		for name, amount := range each {
			taken := q.taken[x][name]
			for range count {
				taken.Add(amount)
			}
			if q.taken[x] == nil {
				q.taken[x] = corev1.ResourceList{}
			}
			q.taken[x][name] = taken
		}
	}
	return count, held
}

// room returns how many Pods a quota still admits.
func (q Quotas) room(x *corev1.ResourceQuota, each corev1.ResourceList) int {
	most := maxHeadroom
	for name, amount := range each {
		for _, as := range []corev1.ResourceName{name, "requests." + name} {
			hard, ok := x.Status.Hard[as]
			if !ok || amount.Sign() <= 0 {
				continue
			}
			left := hard.DeepCopy()
			left.Sub(x.Status.Used[as])
			left.Sub(q.taken[x][name])
			most = min(most, times(left, amount))
		}
	}
	return most
}

// times returns how often an amount goes into what is left.
func times(left, amount resource.Quantity) int {
	if left.Sign() <= 0 {
		return 0
	}
	return int(min(maxHeadroom, left.AsApproximateFloat64()/amount.AsApproximateFloat64()+1e-9))
}

func scopesOf(x *corev1.ResourceQuota) (all []corev1.ScopedResourceSelectorRequirement) {
	for _, s := range x.Spec.Scopes {
		all = append(all, corev1.ScopedResourceSelectorRequirement{ScopeName: s, Operator: corev1.ScopeSelectorOpExists})
	}
	if x.Spec.ScopeSelector != nil {
		all = append(all, x.Spec.ScopeSelector.MatchExpressions...)
	}
	return all
}

// inScope reports whether a quota of a scope holds for Pods of a spec.
func inScope(s corev1.ScopedResourceSelectorRequirement, spec corev1.PodSpec, each corev1.ResourceList) bool {
	_, cpu := each[corev1.ResourceCPU]
	_, memory := each[corev1.ResourceMemory]
	switch s.ScopeName {
	case corev1.ResourceQuotaScopeTerminating:
		return spec.ActiveDeadlineSeconds != nil
	case corev1.ResourceQuotaScopeNotTerminating:
		return spec.ActiveDeadlineSeconds == nil
	case corev1.ResourceQuotaScopeBestEffort:
		return !cpu && !memory
	case corev1.ResourceQuotaScopeNotBestEffort:
		return cpu || memory
	case corev1.ResourceQuotaScopePriorityClass:
		return hasClass(s, spec.PriorityClassName)
	case corev1.ResourceQuotaScopeCrossNamespacePodAffinity:
		return looksAcross(spec.Affinity)
	case corev1.ResourceQuotaScopeVolumeAttributesClass: // of claims alone
	}
	return false
}

func hasClass(s corev1.ScopedResourceSelectorRequirement, class string) bool {
	switch s.Operator {
	case corev1.ScopeSelectorOpIn:
		return slices.Contains(s.Values, class)
	case corev1.ScopeSelectorOpNotIn:
		return !slices.Contains(s.Values, class)
	case corev1.ScopeSelectorOpDoesNotExist:
		return class == ""
	case corev1.ScopeSelectorOpExists:
	}
	return class != ""
}

// looksAcross reports a rule about Pods of other namespaces.
func looksAcross(a *corev1.Affinity) bool {
	if a == nil {
		return false
	}
	across := func(required []corev1.PodAffinityTerm, preferred []corev1.WeightedPodAffinityTerm) bool {
		is := func(t corev1.PodAffinityTerm) bool { return len(t.Namespaces) > 0 || t.NamespaceSelector != nil }
		return slices.ContainsFunc(required, is) || slices.ContainsFunc(preferred, func(t corev1.WeightedPodAffinityTerm) bool { return is(t.PodAffinityTerm) })
	}
	near, far := a.PodAffinity, a.PodAntiAffinity
	return near != nil && across(near.RequiredDuringSchedulingIgnoredDuringExecution, near.PreferredDuringSchedulingIgnoredDuringExecution) ||
		far != nil && across(far.RequiredDuringSchedulingIgnoredDuringExecution, far.PreferredDuringSchedulingIgnoredDuringExecution)
}
