// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Balance is for sets that the expanders like as well as each other: it takes nothing back of what people prefer
// (SPEC C28, C40, B113, W5).
func TestBalanceKeepsToWhatExpandersPrefer(t *testing.T) {
	t.Parallel()
	priorities := `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-priority-expander, namespace: openshift-machine-api, uid: p}, data: {priorities: "50: [a-set]\n10: [b-set]\n"}}`
	tests := []struct {
		name   string
		spec   string
		a, b   string // prices
		extra  string
		amount []int32
	}{
		{"prices differ", "expanders: [Price]", "0.1", "1.0", "", []int32{8, 0}},
		{"prices differ, by default", "", "0.1", "1.0", "", []int32{8, 0}},
		{"priorities differ", "expanders: [Priority]", "0.1", "0.1", priorities, []int32{8, 0}},
		{"nobody asks for prices", "expanders: [LeastWaste]", "0.1", "1.0", "", []int32{4, 4}},
		{"prices are the same", "expanders: [Price]", "0.1", "0.1", "", []int32{4, 4}},
		{"chance is no preference", "expanders: [Random]", "0.1", "0.1", "", []int32{4, 4}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := fresh(t, "{scaleDown: {enabled: true}, balanceSimilarNodeGroups: true, "+tt.spec+"}")
			w.set(t, "a-set", 0, 10, midsize(machine.AnnotationPrice, tt.a), nil)
			w.set(t, "b-set", 0, 10, midsize(machine.AnnotationPrice, tt.b), nil)
			if tt.extra != "" {
				w.yaml(t, tt.extra)
			}
			for i := range 8 {
				w.must(t, w.Put(pending(fmt.Sprint("p-", i), epoch.Add(-time.Minute), resources("cpu", "3"))))
			}
			w.once(t)
			if got := w.replicas("a-set", "b-set"); !slices.Equal(got, tt.amount) {
				t.Errorf("%d, want %d", got, tt.amount)
			}
		})
	}
}

// A price cannot be compared with none: where one of two similar sets has none, balance takes back what it brought (SPEC D29).
func TestBalanceTakesBackWhateverPricesAreMissing(t *testing.T) {
	t.Parallel()
	for _, price := range []string{"none", "1"} { // the first is no price
		w := fresh(t, "{scaleDown: {enabled: true}, balanceSimilarNodeGroups: true}")
		w.set(t, "s-a", 1, 4, midsize(machine.AnnotationPrice, price), nil)
		w.set(t, "s-b", 3, 4, midsize(), nil)
		for _, of := range []string{"s-a/a1", "s-b/b1", "s-b/b2", "s-b/b3"} {
			set, name, _ := strings.Cut(of, "/")
			w.member(t, set, name, epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
			w.must(t, w.Put(running("on-"+name, name, resources("cpu", "1"))))
		}
		for range 90 {
			if w.scans(t, 1); len(w.tainted()) > 0 {
				break
			}
		}
		if got := w.tainted(); !slices.Equal(got, []string{"b1"}) {
			t.Errorf("price of s-a %q, none of s-b: %v go first, want one of the three of s-b", price, got)
		}
	}
}

// Who may go to either set makes up for who may not, whatever comes first in the plan (SPEC C40).
func TestBalanceMakesUpForPodsThatHaveNoChoice(t *testing.T) {
	t.Parallel()
	for _, zone := range []string{"a", "b"} {
		for _, fixed := range []string{"2500m", "3", "3200m"} {
			w := fresh(t, "{balanceSimilarNodeGroups: true}")
			for _, z := range []string{"a", "b"} {
				w.set(t, "set-"+z, 0, 4, midsize(), map[string]string{corev1.LabelTopologyZone: z})
			}
			for i := range 4 {
				p := pending(fmt.Sprint("p-", i), epoch.Add(-time.Minute), resources("cpu", "3"))
				if i < 2 {
					p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
					p.Spec.Containers[0].Resources.Requests = resources("cpu", fixed)
				}
				w.must(t, w.Put(p))
			}
			w.once(t)
			if got := w.replicas("set-a", "set-b"); !slices.Equal(got, []int32{2, 2}) {
				t.Errorf("two of four Pods want %s of zone %s, the others 3 of either: %d Nodes", fixed, zone, got)
			}
		}
	}
}

// As on the way up, a set without a price takes the prices of others their say only where it can grow itself: else the cheaper of
// two sets would shrink for its sake, which the next scale-up prefers again (SPEC C28, D29).
func TestBalanceKeepsTheCheaperSetWhateverOthersCost(t *testing.T) {
	t.Parallel()
	for most, want := range map[int32]string{1: "a1", 2: "b1"} {
		w := fresh(t, "{scaleDown: {enabled: true}, balanceSimilarNodeGroups: true, expanders: [Price]}")
		w.set(t, "s-a", 1, 4, midsize(machine.AnnotationPrice, "1"), nil)
		w.set(t, "s-b", 3, 4, midsize(machine.AnnotationPrice, "0.1"), nil)
		w.set(t, "s-c", 1, most, map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "64Gi"}, nil)
		for _, of := range []string{"s-a/a1", "s-b/b1", "s-b/b2", "s-b/b3"} {
			set, name, _ := strings.Cut(of, "/")
			w.member(t, set, name, epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
			w.must(t, w.Put(running("on-"+name, name, resources("cpu", "1"))))
		}
		w.member(t, "s-c", "c1", epoch.Add(-time.Hour), resources("cpu", "8", "memory", "64Gi", "pods", "110"), nil)
		w.must(t, w.Put(running("on-c1", "c1", resources("cpu", "7500m"))))
		for range 90 {
			if w.scans(t, 1); len(w.tainted()) > 0 {
				break
			}
		}
		if got := w.tainted(); !slices.Equal(got, []string{want}) {
			t.Errorf("s-a is dearer than s-b, s-c has no price and room for %d: %v go first, want %s", most-1, got, want)
		}
	}
}

// What people prefer is larger because they prefer it: balance takes none of its Nodes for the sake of a set of lower priority, as it
// brings that none on the way up (SPEC B113, D29).
func TestBalanceKeepsTheSetThatPeoplePrefer(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, expanders, priorities, want string }{
		{"preferred", "[Priority]", `50: [s-b]\n10: [s-a]\n`, "a1"},
		{"not named", "[Priority]", `50: [s-b]\n`, "a1"},
		{"whatever it costs", "[Price, Priority]", `50: [s-b]\n10: [s-a]\n`, "a1"},
		{"of one priority", "[Priority]", `50: [s-.]\n`, "b1"},
		{"nobody asks for it", "[LeastWaste]", `50: [s-b]\n10: [s-a]\n`, "b1"},
		{"unreadable", "[Priority]", `50: ['[']\n`, "b1"},
		{"none is named", "[Priority]", `50: [other]\n`, "b1"},
	}
	for _, tt := range tests {
		w := fresh(t, "{scaleDown: {enabled: true}, balanceSimilarNodeGroups: true, expanders: "+tt.expanders+"}")
		w.yaml(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-priority-expander, namespace: openshift-machine-api, uid: p}, data: {priorities: "`+tt.priorities+`"}}`)
		w.set(t, "s-a", 1, 4, midsize(machine.AnnotationPrice, "1"), nil)
		w.set(t, "s-b", 3, 4, midsize(machine.AnnotationPrice, "1"), nil)
		for _, of := range []string{"s-a/a1", "s-b/b1", "s-b/b2", "s-b/b3"} {
			set, name, _ := strings.Cut(of, "/")
			w.member(t, set, name, epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
			w.must(t, w.Put(running("on-"+name, name, resources("cpu", "1"))))
		}
		for range 90 {
			if w.scans(t, 1); len(w.tainted()) > 0 {
				break
			}
		}
		if got := w.tainted(); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: %v go first, want %s", tt.name, got, tt.want)
		}
	}
}

// What balance costs a scan that may remove Nodes grows with their number, whether or not a set that is full has a price.
func BenchmarkBalanceOnTheWayDown(b *testing.B) {
	for _, price := range []string{"2", ""} {
		b.Run("price="+price, func(b *testing.B) {
			w := fresh(b, "{scaleDown: {enabled: true, unneededTime: 20s}, balanceSimilarNodeGroups: true, expanders: [Price]}")
			w.set(b, "s-a", 20, 2000, midsize(machine.AnnotationPrice, "1"), nil)
			w.set(b, "s-b", 1500, 2000, midsize(machine.AnnotationPrice, "0.1"), nil)
			w.set(b, "s-c", 1, 1, midsize(machine.AnnotationPrice, price), nil)
			for i := range 1520 {
				set := map[bool]string{true: "s-a", false: "s-b"}[i < 20]
				w.member(b, set, fmt.Sprintf("n%04d", i), epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
			}
			w.scans(b, 2)
			var s snapshot.Snapshot
			for rest := s.Missing(Function.Reads(s)); !rest.Empty(); rest = s.Missing(Function.Reads(s)) {
				var err error
				s, err = w.As(Function.Name).Observe(b.Context(), s, rest.Objects)
				w.must(b, err)
			}
			for b.Loop() {
				if p := Function.Decide(s).String(); !strings.Contains(p, machine.TaintToBeDeleted) {
					b.Fatal("no Node goes: " + p)
				}
			}
		})
	}
}

// Balance leaves every set the room that the plan still has for it: else a group of Pods that has a place as a whole is
// torn, and gets none. Who may go to either set leaves the other ones theirs, with balance and without (SPEC C9, C31, C40, W12).
func TestBalanceLeavesRoomForTheRestOfThePlan(t *testing.T) {
	t.Parallel()
	for _, balance := range []string{"false", "true"} {
		for _, zone := range []string{"a", "b"} {
			for _, either := range []string{"2500m", "3"} {
				w := fresh(t, "{scaleDown: {enabled: true}, balanceSimilarNodeGroups: "+balance+"}")
				for _, z := range []string{"a", "b"} {
					w.set(t, "set-"+z, 0, 2, midsize(), map[string]string{corev1.LabelTopologyZone: z})
				}
				for i := range 4 {
					p := pending(fmt.Sprint("p-", i), epoch.Add(-time.Minute), resources("cpu", "3"))
					p.Annotations = map[string]string{groupAnnotation: "g"}
					if i < 2 {
						p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: zone}
					} else {
						p.Spec.Containers[0].Resources.Requests = resources("cpu", either)
					}
					w.must(t, w.Put(p))
				}
				w.once(t)
				if got := w.replicas("set-a", "set-b"); !slices.Equal(got, []int32{2, 2}) {
					t.Errorf("balance %s, two of four Pods want zone %s, the others %s of either: %d Nodes", balance, zone, either, got)
				}
			}
		}
	}
}

// Nor does balance take more of the cluster's limits than the plan: similar sets need not be of one size (SPEC C30, C37).
func TestBalanceKeepsTheLimitsForTheRestOfThePlan(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{balanceSimilarNodeGroups: true, expanders: [LeastWaste], resourceLimits: {memory: {min: 0, max: 64}}}")
	w.set(t, "a-set", 0, 4, midsize(), nil)
	w.set(t, "b-set", 0, 4, map[string]string{machine.CapacityCPU: "4", machine.CapacityMemory: "16500Mi"}, nil)
	for i := range 4 {
		p := pending(fmt.Sprint("p-", i), epoch.Add(-time.Minute), resources("cpu", "3"))
		p.Annotations = map[string]string{groupAnnotation: "g"}
		w.must(t, w.Put(p))
	}
	w.once(t)
	if got := w.replicas("a-set", "b-set"); !slices.Equal(got, []int32{4, 0}) {
		t.Errorf("four Nodes of 16Gi fit into 64Gi, as soon as one is larger only three: %d", got)
	}
}

// What Pods of all sets share, the most important ones have first (SPEC C9, C30).
func TestHigherPriorityTakesTheLastNode(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"maxNodesTotal: 1", "cores: {min: 0, max: 4}", "memory: {min: 0, max: 16}"} {
		for _, high := range []string{"a", "b"} {
			w := fresh(t, "{scaleDown: {enabled: true}, resourceLimits: {"+limit+"}}")
			want := map[string]int32{high: 1}
			for _, pool := range []string{"a", "b"} {
				w.set(t, "set-"+pool, 0, 4, midsize(), map[string]string{"pool": pool})
				p := pending("p-"+pool, epoch.Add(-time.Minute), resources("cpu", "1"))
				p.Spec.NodeSelector, p.Spec.Priority = map[string]string{"pool": pool}, new(int32(0))
				if pool == high {
					p.Spec.Priority = new(int32(1_000_000))
				} else {
					p.Spec.Containers[0].Resources.Requests = resources("cpu", "3") // worth more of a Node
				}
				w.must(t, w.Put(p))
			}
			w.once(t)
			if got := w.replicas("set-a", "set-b"); !slices.Equal(got, []int32{want["a"], want["b"]}) {
				t.Errorf("%s, the important Pod wants set-%s: %d", limit, high, got)
			}
		}
	}
}

// Of Pods that are as important as each other, a limit that their sets share leaves Nodes to as many as it can (SPEC C9, C30).
func TestLimitsLeaveTheNodesThatServeMost(t *testing.T) {
	t.Parallel()
	for _, small := range []string{"a", "b"} {
		w := fresh(t, "{scaleDown: {enabled: true}, resourceLimits: {maxNodesTotal: 3}}")
		want := map[string]int32{"a": 1, "b": 1}
		want[small] = 2
		for _, pool := range []string{"a", "b"} {
			w.set(t, "set-"+pool, 0, 4, midsize(), map[string]string{"pool": pool})
			size, count := "3", 4
			if pool == small {
				size, count = "1700m", 4
			}
			for i := range count {
				p := pending(fmt.Sprint("p-", pool, i), epoch.Add(-time.Minute), resources("cpu", size))
				p.Spec.NodeSelector = map[string]string{"pool": pool}
				w.must(t, w.Put(p))
			}
		}
		w.once(t)
		if got := w.replicas("set-a", "set-b"); !slices.Equal(got, []int32{want["a"], want["b"]}) {
			t.Errorf("a Node of set-%s has room for two, of the other for one: %d", small, got)
		}
	}
}

// From the larger of similar sets no Node is taken whose time has not come (SPEC C58, D29).
func TestBalanceTakesNoNodeBeforeItsTime(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}, balanceSimilarNodeGroups: true}")
	w.pool(t, "s-a", 1, 4, nil, nil)
	w.pool(t, "s-b", 3, 4, nil, nil)
	unneeded := map[types.UID]metav1.Time{"node-a1": metav1.NewTime(epoch.Add(-time.Hour))}
	for _, of := range []string{"s-a/a1", "s-b/b1", "s-b/b2", "s-b/b3"} {
		set, name, _ := strings.Cut(of, "/")
		w.idler(t, set, name)
		if set == "s-b" {
			unneeded[types.UID("node-"+name)] = metav1.NewTime(epoch.Add(-time.Minute))
		}
	}
	w.remember(t, autoscaling.State{Unneeded: unneeded})
	w.scans(t, 3)
	if got := w.tainted(); !slices.Equal(got, []string{"a1"}) {
		t.Errorf("%v go, want a1: the others have been unneeded for a minute", got)
	}
}

// What is compared is what takes Pods: of a zone that lost most of its Nodes none goes that works while the other one has more (SPEC D29). One
// that takes no Pods makes way for none that does.
func TestBalanceCountsTheNodesThatWork(t *testing.T) {
	t.Parallel()
	for silent, want := range map[string]string{"": "a1", "a2 a3": "b1", "b1": "b1", "a1 a2": "b1"} {
		w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 1m}, balanceSimilarNodeGroups: true}")
		w.pool(t, "zone-a", 3, 4, nil, nil)
		w.pool(t, "zone-b", 2, 4, nil, nil)
		w.pool(t, "full", 5, 5, nil, nil)
		unneeded := map[types.UID]metav1.Time{"node-b1": metav1.NewTime(epoch.Add(-3 * time.Hour)), "node-a1": metav1.NewTime(epoch.Add(-2 * time.Hour))}
		for _, n := range []string{"a1", "a2", "a3", "b1", "b2"} {
			w.idler(t, "zone-"+n[:1], n)
			w.must(t, w.Put(pod("default", "p-"+n, n, resources("cpu", "1"))))
			if strings.Contains(silent, n) {
				w.must(t, memory.Patch(w.Server, "", n, func(n *corev1.Node) {
					n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(epoch.Add(-time.Hour))
				}))
			}
		}
		for i := range 5 {
			n := fmt.Sprint("full-", i)
			w.member(t, "full", n, epoch.Add(-9*time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), map[string]string{"x": "y"})
			w.must(t, w.Put(pod("default", "p-"+n, n, resources("cpu", "3800m"))))
		}
		w.remember(t, autoscaling.State{Unneeded: unneeded})
		w.scans(t, 1)
		if got := w.tainted(); !slices.Equal(got, []string{want}) {
			t.Errorf("silent %q: %v go, want %s", silent, got, want)
		}
	}
}

// Of similar sets that are idle as many stay of each, of those that go in one scan and of those that go in the next (SPEC D29).
func TestBalanceCountsTheNodesThatAreToGo(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}, balanceSimilarNodeGroups: true, resourceLimits: {cores: {min: 8, max: 100}}}")
	unneeded := map[types.UID]metav1.Time{}
	for i, zone := range []string{"a", "b"} {
		w.pool(t, "zone-"+zone, 3, 4, nil, nil)
		for k := range 3 {
			name := fmt.Sprint(zone, k)
			w.idler(t, "zone-"+zone, name)
			unneeded[types.UID("node-"+name)] = metav1.NewTime(epoch.Add(-time.Duration(2-i) * time.Hour))
		}
	}
	w.yaml(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: machine-disruption, namespace: openshift-machine-api, uid: d}, data: {max-at-once: "4"}}`)
	w.remember(t, autoscaling.State{Unneeded: unneeded})
	w.scans(t, 1)
	if got := w.tainted(); len(got) != 3 || !slices.ContainsFunc(got, func(n string) bool { return n[0] == 'b' }) {
		t.Errorf("%v are the first to go", got)
	}
	for range 12 {
		w.scans(t, 3)
		w.victimsGo(t)
	}
	if got := w.replicas("zone-a", "zone-b"); !slices.Equal(got, []int32{1, 1}) {
		t.Errorf("%d stay", got)
	}
}

// Nor has anybody a place on a Node that there may be where somebody more important would fit (SPEC C9, C30).
func TestHigherPriorityTakesTheRoomOfTheLastNode(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}, resourceLimits: {maxNodesTotal: 1}}")
	w.set(t, "s", 0, 4, midsize(), nil)
	for i := range 2 {
		high, low := pending(fmt.Sprint("high-", i), epoch.Add(-time.Minute), resources("cpu", "1500m")), pending(fmt.Sprint("low-", i), epoch.Add(-time.Minute), resources("cpu", "2500m"))
		high.Spec.Priority, low.Spec.Priority = new(int32(1_000_000)), new(int32(0))
		w.must(t, w.Put(high, low))
	}
	w.once(t)
	told := map[string]bool{}
	for _, e := range w.Events() {
		if e.Reason == "TriggeredScaleUp" {
			told[e.InvolvedObject.Name] = true
		}
	}
	if got := w.replicas("s"); got[0] != 1 || !told["high-0"] || !told["high-1"] || len(told) != 2 {
		t.Errorf("%d Nodes, for %v", got, told)
	}
}

// A group of Pods that says how many it has to have begins with so many: those that find no place beside them do not hold up
// the others (SPEC C31, W12).
func TestGroupBeginsWithAsManyAsItHasToHave(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]int32{"": 0, "8": 0, "5": 0, "4": 4, "2": 4} {
		w := fresh(t, "{}")
		w.pool(t, "s", 0, 4, nil, nil)
		for i := range 8 {
			p := pod("default", fmt.Sprint("p-", i), "", resources("cpu", "3"))
			p.Labels = map[string]string{groupLabels[0]: "g"}
			if size != "" {
				p.Annotations = map[string]string{sizeAnnotation: size}
			}
			w.must(t, w.Put(p))
		}
		w.scans(t, 3)
		if got := w.replicas("s"); got[0] != want {
			t.Errorf("4 of 8 find a place, %q are wanted: %d Nodes, want %d", size, got[0], want)
		}
	}
}
