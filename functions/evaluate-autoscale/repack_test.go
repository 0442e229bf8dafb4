// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

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

// A Node that nobody needs goes by itself: to keep it for the Pods of another one costs what it costs. An idle dear Node is
// no place for the Pods of a cheap one; an idle cheap Node is one for those of a dear Node, and nothing is asked for; one that
// its set's minimum keeps costs nothing more (SPEC W10, W13).
func TestRepackingPaysForTheIdleNodesThatItKeeps(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		used, idle string // price of a Node
		least      int32  // of the idle one's set
		gone       string
		text       string
	}{
		{"idle and dear", "1", "10", 0, "", ""},
		{"idle, dear, and kept by its minimum", "1", "10", 1, "used", "saves 1 per hour"},
		{"idle and cheap", "10", "1", 0, "used", "saves 9 per hour"},
	} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) {
			ca.Annotations = map[string]string{autoscaling.RepackAnnotation: "migration=0.001 payback=24h"}
		}))
		for _, set := range []struct{ name, price string }{{"used", tt.used}, {"idle", tt.idle}} {
			w.set(t, set.name, 1, 4, midsize(machine.AnnotationPrice, set.price), nil)
			w.member(t, set.name, set.name, epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		}
		w.must(t, memory.Patch(w.Server, machine.Namespace, "idle", func(ma *autoscaling.MachineAutoscaler) { ma.Spec.MinReplicas = tt.least }))
		w.must(t, w.Put(running("p", "used", resources("cpu", "3", "memory", "1Gi"))))
		w.scans(t, 3)
		s, err := stateOf(snapshotOf(memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)))
		w.must(t, err)
		gone, text := "", ""
		if s.Repack != nil {
			gone = s.Repack.Node
		}
		for _, e := range w.Events() {
			if e.Reason == "Repack" {
				text = e.Message
			}
		}
		if gone != tt.gone || !strings.Contains(text, tt.text) || !slices.Equal(w.replicas("used", "idle"), []int32{1, 1}) {
			t.Errorf("%s: node %q is to go, %q, replicas %d; want %q, %q", tt.name, gone, text, w.replicas("used", "idle"), tt.gone, tt.text)
		}
	}
}

// The Nodes that are asked for hold the Pods: idle ones that cost more go, as they would have. A Node that its set's minimum
// keeps, once they are gone, is not replaced: what came for its Pods would come for nobody (SPEC C41, W10, W13).
func TestReplacementIsForTheNodeThatGoes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		least    int32
		limits   string
		cheap    int32
		unneeded []types.UID
	}{
		{0, "", 1, []types.UID{"node-d1", "node-d2"}},
		{1, "", 0, []types.UID{"node-d2"}},
		{0, "resourceLimits: {memory: {min: 12, max: 200}}", 0, []types.UID{"node-d2"}},
	} {
		w := fresh(t, "{scaleDown: {enabled: true}, "+tt.limits+"}")
		w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) {
			ca.Annotations = map[string]string{autoscaling.RepackAnnotation: "migration=0.001 payback=24h"}
		}))
		w.set(t, "dear", 2, 4, midsize(machine.AnnotationPrice, "10"), nil)
		w.set(t, "cheap", 0, 4, map[string]string{machine.CapacityCPU: "3500m", machine.CapacityMemory: "8Gi", machine.AnnotationPrice: "1"}, nil)
		w.must(t, memory.Patch(w.Server, machine.Namespace, "dear", func(ma *autoscaling.MachineAutoscaler) { ma.Spec.MinReplicas = tt.least }))
		for _, name := range []string{"d1", "d2"} {
			w.member(t, "dear", name, epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		}
		w.must(t, w.Put(running("p", "d1", resources("cpu", "3", "memory", "1Gi"))))
		w.scans(t, 3)
		if got := w.replicas("dear", "cheap"); !slices.Equal(got, []int32{2, tt.cheap}) {
			t.Errorf("at least %d dear, %q: %d Nodes, want %d cheap", tt.least, tt.limits, got, tt.cheap)
			continue
		}
		if tt.cheap > 0 {
			w.member(t, "cheap", "c1", w.now, resources("cpu", "3500m", "memory", "8Gi", "pods", "110"), nil)
		}
		w.scans(t, 20)
		s, err := stateOf(snapshotOf(memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)))
		w.must(t, err)
		if got := slices.Sorted(maps.Keys(s.Unneeded)); !slices.Equal(got, tt.unneeded) {
			t.Errorf("at least %d dear, %q: %v are unneeded, want %v", tt.least, tt.limits, got, tt.unneeded)
		}
	}
}

// dearAndCheap returns a world that repacks, with a Node of a dear type that a cheap one may replace.
func dearAndCheap(t *testing.T) *world {
	t.Helper()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) {
		ca.Annotations = map[string]string{autoscaling.RepackAnnotation: "migration=0.001 payback=24h"}
	}))
	w.set(t, "dear", 1, 4, midsize(machine.AnnotationPrice, "10"), nil)
	w.set(t, "cheap", 0, 4, map[string]string{machine.CapacityCPU: "3500m", machine.CapacityMemory: "8Gi", machine.AnnotationPrice: "1"}, nil)
	w.member(t, "dear", "d1", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
	return w
}

// Once repacking is off again, the Node that was to be replaced stays: it is used (SPEC W10).
func TestNothingIsReplacedOnceThatIsOff(t *testing.T) {
	t.Parallel()
	for _, off := range []bool{false, true} {
		w := dearAndCheap(t)
		w.must(t, w.Put(running("p", "d1", resources("cpu", "3", "memory", "1Gi"))))
		w.scans(t, 3)
		if got := w.replicas("dear", "cheap"); !slices.Equal(got, []int32{1, 1}) {
			t.Fatalf("replicas %v", got)
		}
		w.member(t, "cheap", "c1", w.now, resources("cpu", "3500m", "memory", "8Gi", "pods", "110"), nil)
		if off {
			w.must(t, memory.Patch(w.Server, "", "default", func(ca *autoscaling.ClusterAutoscaler) { ca.Annotations = nil }))
		}
		goes := false
		for range 200 {
			w.scans(t, 1)
			goes = goes || slices.Contains(w.tainted(), "d1")
		}
		if goes == off {
			t.Errorf("off %v: the dear Node goes: %v", off, goes)
		}
	}
}

// No cheaper Node comes for one that cannot go, because of its Pods or of their disruption budgets, nor while Pods wait that have a place, or
// may get one: it would be paid for beside it. A Pod that no Node is made for keeps nothing from being cheaper (SPEC W10).
func TestNothingComesForANodeThatCannotGo(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		safe  string // to evict
		allow int    // disruptions
		waits string // cores that a Pod asks for
		most  int32  // Nodes of the dear set
		want  int32
	}{
		{"its Pod may move", "true", 1, "", 4, 1},
		{"its Pod may not", "false", 1, "", 4, 0},
		{"the budget of its Pod has no room", "true", 0, "", 4, 0},
		{"a Pod waits to be bound", "true", 1, "500m", 4, 0},
		{"a Pod waits for which there may be no Node more", "true", 1, "4", 1, 0},
		{"a Pod waits for which no Node is large enough", "true", 1, "100", 4, 1},
	} {
		w := dearAndCheap(t)
		w.must(t, memory.Patch(w.Server, machine.Namespace, "dear", func(ma *autoscaling.MachineAutoscaler) { ma.Spec.MaxReplicas = tt.most }))
		p := running("p", "d1", resources("cpu", "3", "memory", "1Gi"))
		p.Labels, p.Annotations = map[string]string{"app": "web"}, map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": tt.safe}
		w.must(t, w.Put(p))
		w.yaml(t, fmt.Sprintf("{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: web, namespace: default, uid: web}, spec: {selector: {matchLabels: {app: web}}}, status: {disruptionsAllowed: %d}}", tt.allow))
		if tt.waits != "" {
			w.must(t, w.Put(pending("waits", epoch.Add(-time.Minute), resources("cpu", tt.waits))))
		}
		w.scans(t, 3)
		if got := w.replicas("cheap")[0]; got != tt.want {
			t.Errorf("%s: %d cheaper Nodes, want %d", tt.name, got, tt.want)
		}
	}
}
