// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
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

// ruled binds Pods where the scheduler's rules let them, and says so where they do not.
func (w *world) ruled(t *testing.T) {
	t.Helper()
	for _, p := range memory.List[*corev1.Pod](w.Server) {
		if p.Spec.NodeName != "" {
			continue
		}
		var nodes []scheduling.Node
		for _, n := range memory.List[*corev1.Node](w.Server) {
			nodes = append(nodes, scheduling.Node{Node: n})
			for _, on := range memory.List[*corev1.Pod](w.Server) {
				if on.Spec.NodeName == n.Name {
					nodes[len(nodes)-1].Pods = append(nodes[len(nodes)-1].Pods, on)
				}
			}
		}
		q := scheduling.NewWorld(nodes, []*corev1.Pod{p}, nil).Ask(p)
		w.must(t, memory.Patch(w.Server, p.Namespace, p.Name, func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
			for n := range nodes {
				if q.Refused(n) == "" {
					p.Spec.NodeName, p.Status = nodes[n].Name, corev1.PodStatus{Phase: corev1.PodRunning}
					return
				}
			}
		}))
	}
}

// Idle Nodes whose Pods are spread over them go one after the other. The scheduler lets nobody's Pods start elsewhere while their Node is
// there and holds the others down: nothing is bought for these, and no Node stays for them (SPEC C56).
func TestIdleNodesOfASpreadGo(t *testing.T) {
	t.Parallel()
	apart := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
		TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}}}
	over := func(key string) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
		}
	}
	for name, tt := range map[string]struct {
		rule func(*corev1.Pod)
		on   []string // Nodes with a Pod
		want int32
	}{
		"over hosts": {over(corev1.LabelHostname), []string{"a", "b", "c"}, 1},
		"over zones": {over(corev1.LabelTopologyZone), []string{"a", "b", "c"}, 1},
		"with itself": {func(p *corev1.Pod) {
			p.Spec.Affinity = &corev1.Affinity{PodAffinity: (*corev1.PodAffinity)(apart.PodAntiAffinity)}
		}, []string{"a"}, 1},
		"apart from itself": {func(p *corev1.Pod) { p.Spec.Affinity = apart }, []string{"a", "b"}, 2},
	} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.pool(t, "s", 3, 9, nil, nil)
		for _, n := range []string{"a", "b", "c"} {
			w.member(t, "s", n, epoch.Add(-9*time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), map[string]string{corev1.LabelTopologyZone: n})
		}
		for _, n := range tt.on {
			p := pod("default", "web-"+n, n, resources("cpu", "100m"))
			p.Labels = map[string]string{"app": "web"}
			tt.rule(p)
			w.must(t, w.Put(p))
		}
		most := int32(3)
		for range 9 * 60 {
			w.once(t)
			if now := w.replicas("s")[0]; now > most {
				t.Fatalf("%s: the set grows to %d", name, now)
			} else {
				most = now
			}
			w.drain(t)
			w.ruled(t)
			w.victimsGo(t)
			w.now = w.now.Add(10 * time.Second)
		}
		if most != tt.want {
			t.Errorf("%s: %d nodes are left, want %d", name, most, tt.want)
		}
		for _, p := range memory.List[*corev1.Pod](w.Server) {
			if p.Spec.NodeName == "" {
				t.Errorf("%s: %s has no place", name, p.Name)
			}
		}
	}
}

// What a spread must not wait for: an empty Node, which is given back if somebody needs it, and one whose deletion is late.
func TestDrainedNodesAreAsGoodAsGone(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{UID: "n"}}
	at := func(before time.Duration) *metav1.Time { return &metav1.Time{Time: epoch.Add(-before)} }
	for name, tt := range map[string]struct {
		removals []autoscaling.Removal
		want     bool
	}{
		"nobody removes it":       {nil, false},
		"it is drained":           {[]autoscaling.Removal{{NodeUID: "n", Drain: true}}, true},
		"it was empty":            {[]autoscaling.Removal{{NodeUID: "n"}}, false},
		"its machine is to go":    {[]autoscaling.Removal{{NodeUID: "n", Drain: true, Committed: at(time.Minute)}}, true},
		"its machine does not go": {[]autoscaling.Removal{{NodeUID: "n", Drain: true, Committed: at(maxDeletion)}}, false},
	} {
		sc := &scan{Snapshot: snapshot.Snapshot{Now: epoch}}
		sc.state.Removals = tt.removals
		if got := sc.drained(n); got != tt.want {
			t.Errorf("%s: got %v, want %v", name, got, tt.want)
		}
	}
}
