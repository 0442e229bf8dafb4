// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// Of empty Nodes that are about to go as many are given back as the Pods that wait need and no other Node has room for; Pods that bring no
// Nodes need none (SPEC C6, C8, C9, R-S4).
func TestAsManyAreGivenBackAsAreNeeded(t *testing.T) {
	t.Parallel()
	waits := func(name, cpu string) *corev1.Pod { return pod("default", name, "", resources("cpu", cpu)) }
	daemon, cheap := waits("daemon", "3"), waits("cheap", "3")
	daemon.OwnerReferences[0].Kind = "DaemonSet"
	cheap.Spec.Priority = new(int32(-1000))
	young := pending("young", epoch.Add(-time.Second), resources("cpu", "3"))
	group := []*corev1.Pod{waits("g0", "3"), waits("g1", "3"), waits("g2", "3"), waits("g3", "3")}
	for _, p := range group {
		p.Annotations = map[string]string{sizeAnnotation: "4"}
		p.Labels = map[string]string{"scheduling.x-k8s.io/pod-group": "g"}
	}
	for _, tt := range []struct {
		name  string
		drain bool
		pods  []*corev1.Pod
		stay  int
	}{
		{"one needs one", false, []*corev1.Pod{waits("p", "3")}, 1},
		{"two in one", false, []*corev1.Pod{waits("p", "2"), waits("q", "1500m")}, 1},
		{"two need two", false, []*corev1.Pod{waits("p", "3"), waits("q", "3")}, 2},
		{"room elsewhere", false, []*corev1.Pod{waits("p", "1")}, 0},
		{"too large", false, []*corev1.Pod{waits("p", "5")}, 0},
		{"a DaemonSet's", false, []*corev1.Pod{daemon}, 0},
		{"below the priority", false, []*corev1.Pod{cheap}, 0},
		{"very new", false, []*corev1.Pod{young}, 0},
		{"a group that would be torn", false, group, 0},
		{"drains go on", true, []*corev1.Pod{waits("p", "3")}, 0},
	} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.pool(t, "s", 4, 9, nil, nil)
		state := autoscaling.State{}
		for _, n := range []string{"a", "b", "c", "d"} {
			w.idler(t, "s", n)
			if n == "a" {
				w.must(t, w.Put(pod("default", "p-a", n, resources("cpu", "2500m"))))
				continue
			}
			w.must(t, memory.Patch(w.Server, "", n, func(x *corev1.Node) {
				x.Spec.Taints = []corev1.Taint{{Key: machine.TaintToBeDeleted, Value: "down-" + n, Effect: corev1.TaintEffectNoSchedule}}
			}))
			state.Removals = append(state.Removals, autoscaling.Removal{
				Plan: "down-" + n, Group: "MachineSet/openshift-machine-api/s", Node: n, NodeUID: types.UID("node-" + n), Machine: n,
				MachineUID: types.UID("machine-" + n), At: metav1.NewTime(epoch.Add(-3 * time.Second)), Drain: tt.drain, MaxGrace: 600,
			})
		}
		for _, p := range tt.pods {
			w.must(t, w.Put(p))
		}
		w.remember(t, state)
		w.once(t)
		if got := w.tainted(); len(got) != 3-tt.stay {
			t.Errorf("%s: Nodes about to go %v, want %d to stay", tt.name, got, tt.stay)
		}
		if grown := w.replicas("s")[0] > 4; grown != slices.Contains([]string{"drains go on", "a group that would be torn"}, tt.name) {
			t.Errorf("%s: the set grew: %v", tt.name, grown)
		}
	}
}
