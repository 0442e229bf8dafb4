// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
)

// spreading has so many Pods wait that are spread evenly.
func (w *world) spreading(t *testing.T, pods int, cpu, over string) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	for i := range pods {
		p := pending(fmt.Sprintf("web-%d", i), epoch.Add(-5*time.Second), resources("cpu", cpu))
		p.Labels = labels
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: over, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
		}}
		w.must(t, w.Put(p))
	}
}

// growsNot holds that in a few scans none of some sets grows while an empty Node of it goes.
func (w *world) growsNot(t *testing.T, what string, sets ...string) {
	t.Helper()
	before := w.replicas(sets...)
	for range 3 {
		w.once(t)
		for i, n := range w.replicas(sets...) {
			if n > before[i] && len(w.tainted()) > 0 {
				t.Errorf("%s: set %s grew from %d to %d while %v go", what, sets[i], before[i], n, w.tainted())
			}
		}
		w.victimsGo(t)
		w.now = w.now.Add(10 * time.Second)
	}
}

// A Node that goes counts for the spread over hosts with no Pod on it, and holds all others down to the skew: none is bought for what
// it holds down (SPEC C20, C58).
func TestNodesThatHoldASpreadDownAreGivenBack(t *testing.T) {
	t.Parallel()
	for _, pods := range []int{3, 4, 5, 6, 8} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.beside(t, 9, []int64{3000, 3000})
		w.spreading(t, pods, "500m", corev1.LabelHostname)
		w.growsNot(t, fmt.Sprintf("%d Pods", pods), "s")
	}
}

// Where another zone gets new Nodes, more Pods of a spread have a place in this one, also on a Node that goes.
func TestNodeOfASpreadThatGrowsElsewhereIsGivenBack(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	for name, zone := range map[string]string{"a1": "a", "a2": "a", "b1": "b"} {
		labels := map[string]string{corev1.LabelTopologyZone: zone}
		w.pool(t, "s"+zone, map[string]int32{"a": 2, "b": 1}[zone], 9, nil, labels)
		w.member(t, "s"+zone, name, epoch.Add(-9*time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), labels)
	}
	w.must(t, w.Put(pod("default", "on-a1", "a1", resources("cpu", "3")), pod("default", "on-b1", "b1", resources("cpu", "3900m"))))
	w.remember(t, autoscaling.State{Removals: []autoscaling.Removal{w.leaving(t, "sa", "a2")}})
	w.spreading(t, 4, "1", corev1.LabelTopologyZone)
	w.growsNot(t, "zones", "sa")
}
