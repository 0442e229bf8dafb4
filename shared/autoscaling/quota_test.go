// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func amountsOf(pairs ...string) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		list[corev1.ResourceName(pairs[i])] = resource.MustParse(pairs[i+1])
	}
	return list
}

// Room is kept for no more Pods than the quotas of the namespace admit that hold for them, beside what runs and what other buffers
// took (SPEC C83).
func TestQuotasAreTaken(t *testing.T) {
	t.Parallel()
	quota := func(name string, hard, used corev1.ResourceList, scopes ...corev1.ResourceQuotaScope) *corev1.ResourceQuota {
		q := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		q.Spec.Scopes, q.Status.Hard, q.Status.Used = scopes, hard, used
		return q
	}
	classes := func(name string, op corev1.ScopeSelectorOperator, values ...string) *corev1.ResourceQuota {
		x := quota(name, amountsOf("example.com/disk", "2"), nil)
		x.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
			ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: op, Values: values,
		}}}
		return x
	}
	q := NewQuotas([]*corev1.ResourceQuota{
		quota("all", amountsOf("requests.cpu", "10", "limits.cpu", "1", "pods", "1"), amountsOf("requests.cpu", "4")),
		quota("memory", amountsOf("memory", "8Gi"), nil),
		quota("best-effort", amountsOf("cpu", "0"), nil, corev1.ResourceQuotaScopeBestEffort),
		quota("best-effort-disks", amountsOf("example.com/ssd", "0"), nil, corev1.ResourceQuotaScopeBestEffort),
		quota("ends", amountsOf("cpu", "0"), nil, corev1.ResourceQuotaScopeTerminating),
		quota("important", amountsOf("cpu", "500m"), nil, corev1.ResourceQuotaScopePriorityClass),
		quota("across", amountsOf("cpu", "0"), nil, corev1.ResourceQuotaScopeCrossNamespacePodAffinity),
		quota("goes-on", amountsOf("example.com/fpga", "0"), nil, corev1.ResourceQuotaScopeNotTerminating),
		quota("not-best-effort", amountsOf("example.com/nic", "0"), nil, corev1.ResourceQuotaScopeNotBestEffort),
		quota("lowered", amountsOf("example.com/usb", "1"), amountsOf("example.com/usb", "5")),
		quota("huge", amountsOf("example.com/tape", "1e30"), nil),
		quota("none", amountsOf("example.com/zero", "0"), nil),
		classes("gold-or-silver", corev1.ScopeSelectorOpIn, "gold", "silver"),
		classes("no-bronze", corev1.ScopeSelectorOpNotIn, "bronze"),
		classes("without", corev1.ScopeSelectorOpDoesNotExist),
	})
	elsewhere := corev1.PodAffinityTerm{NamespaceSelector: &metav1.LabelSelector{}}
	may := []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: elsewhere}}
	here := []corev1.PodAffinityTerm{{TopologyKey: "zone"}}
	near := &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{Namespaces: []string{"other"}}}}}
	for _, tt := range []struct {
		name, namespace string
		spec            corev1.PodSpec
		each            corev1.ResourceList
		wanted, want    int
		held            []string
	}{
		{"elsewhere there are none", "other", corev1.PodSpec{}, amountsOf("cpu", "100"), 9, 9, nil},
		{"more than may be", "ns", corev1.PodSpec{}, amountsOf("memory", "1Mi"), 10, 10, nil},
		{"what runs is taken", "ns", corev1.PodSpec{}, amountsOf("cpu", "1500m", "memory", "1Gi"), 3, 3, nil},
		{"what others took is", "ns", corev1.PodSpec{}, amountsOf("cpu", "500m", "memory", "2Gi"), 5, 2, []string{"all", "memory"}},
		{"nothing is left", "ns", corev1.PodSpec{}, amountsOf("cpu", "1", "memory", "1Gi"), 1, 0, []string{"all"}},
		{"who asks for none of it", "ns", corev1.PodSpec{}, amountsOf("example.com/gpu", "1"), 7, 7, nil},
		{"of a class", "ns", corev1.PodSpec{PriorityClassName: "high"}, amountsOf("cpu", "100m"), 7, 5, []string{"all", "important"}},
		{"that ends", "ns", corev1.PodSpec{ActiveDeadlineSeconds: new(int64(9))}, amountsOf("cpu", "1m"), 7, 0, []string{"all", "ends"}},
		{"that looks across", "ns", corev1.PodSpec{Affinity: near}, amountsOf("cpu", "1m"), 7, 0, []string{"all", "across"}},
		{"that may look across", "ns", corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: may}}}, amountsOf("cpu", "1m"), 7, 0, []string{"all", "across"}},
		{"that keeps away from others", "ns", corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{elsewhere}}}}, amountsOf("cpu", "1m"), 7, 0, []string{"all", "across"}},
		{"that looks at its own", "ns", corev1.PodSpec{Affinity: &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: here}}}, amountsOf("cpu", "1m"), 7, 0, []string{"all"}},
		{"that goes on", "ns", corev1.PodSpec{}, amountsOf("example.com/fpga", "1"), 7, 0, []string{"goes-on"}},
		{"that ends is not one that goes on", "ns", corev1.PodSpec{ActiveDeadlineSeconds: new(int64(9))}, amountsOf("example.com/fpga", "1"), 7, 7, nil},
		{"that asks for neither cpu nor memory", "ns", corev1.PodSpec{}, amountsOf("example.com/nic", "1"), 7, 7, nil},
		{"that asks for one of them", "ns", corev1.PodSpec{}, amountsOf("example.com/nic", "1", "memory", "1Mi"), 7, 0, []string{"not-best-effort"}},
		{"of the best-effort ones", "ns", corev1.PodSpec{}, amountsOf("example.com/ssd", "1"), 7, 0, []string{"best-effort-disks"}},
		{"that asks for memory is none of those", "ns", corev1.PodSpec{}, amountsOf("example.com/ssd", "1", "memory", "1"), 7, 7, nil},
		{"nor is one that asks for cpu", "ns", corev1.PodSpec{}, amountsOf("example.com/ssd", "1", "cpu", "0"), 7, 7, nil},
		{"that asks for cpu is not best-effort", "ns", corev1.PodSpec{}, amountsOf("example.com/nic", "1", "cpu", "0"), 7, 0, []string{"not-best-effort"}},
		{"that looks nowhere", "ns", corev1.PodSpec{Affinity: &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: here}}}, amountsOf("cpu", "1m"), 7, 0, []string{"all"}},
		{"that is choosy about nodes", "ns", corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}}, amountsOf("cpu", "1m"), 7, 0, []string{"all"}},
		{"less than is used", "ns", corev1.PodSpec{}, amountsOf("example.com/usb", "1"), 7, 0, []string{"lowered"}},
		{"more than can be counted", "ns", corev1.PodSpec{}, amountsOf("example.com/tape", "1"), 7, 7, nil},
		{"nothing of nothing", "ns", corev1.PodSpec{}, amountsOf("example.com/zero", "0"), 7, 7, nil},
		{"of a class that is named", "ns", corev1.PodSpec{PriorityClassName: "silver"}, amountsOf("example.com/disk", "1"), 3, 2, []string{"gold-or-silver", "no-bronze"}},
		{"of one that is not meant", "ns", corev1.PodSpec{PriorityClassName: "bronze"}, amountsOf("example.com/disk", "1"), 3, 3, nil},
		{"of none", "ns", corev1.PodSpec{}, amountsOf("example.com/disk", "1"), 3, 0, []string{"no-bronze", "without"}},
	} {
		if got, held := q.Take(tt.namespace, tt.spec, tt.each, tt.wanted, 9); got != tt.want || !slices.Equal(held, tt.held) {
			t.Errorf("%s: %d of %d, held by %v; want %d, %v", tt.name, got, tt.wanted, held, tt.want, tt.held)
		}
	}
}
