// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// A Node is replaced by Nodes of several sets only where the limits that these share leave room for all of them, and the
// minimums of the cluster let the old one go afterwards (SPEC W10, C30, C41).
func TestReplacementsKeepTheLimits(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		limits string
		want   []int32
	}{
		{"{maxNodesTotal: 3}", []int32{1, 1, 1}},
		{"{maxNodesTotal: 2}", []int32{1, 0, 0}},
		{"{cores: {min: 0, max: 20}}", []int32{1, 0, 0}},
		{"{cores: {min: 12, max: 100}}", []int32{1, 0, 0}},
	} {
		w := fresh(t, "{scaleDown: {enabled: true}, resourceLimits: "+tt.limits+"}")
		w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) {
			ca.Annotations = map[string]string{autoscaling.RepackAnnotation: "migration=0.001 payback=24h"}
		}))
		w.set(t, "big", 1, 4, midsize(machine.AnnotationPrice, "10"), nil)
		w.member(t, "big", "x", epoch.Add(-time.Hour), resources("cpu", "16", "memory", "64Gi", "pods", "110"), nil)
		for i, set := range []string{"one", "two"} {
			w.set(t, set, 0, 4, midsize(machine.AnnotationPrice, "0.2"), map[string]string{"kind": set})
			p := running(fmt.Sprintf("p%d", i), "x", resources("cpu", "3", "memory", "1Gi"))
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{
				{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "kind", Operator: corev1.NodeSelectorOpNotIn, Values: []string{set}}}},
			}}}}
			w.must(t, w.Put(p))
		}
		w.scans(t, 3)
		if got := w.replicas("big", "one", "two"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: replicas %v, want %v", tt.limits, got, tt.want)
		}
	}
}
