// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// gang puts a group of Pods, one of each size, that wait.
func gang(t *testing.T, w *world, name string, priority int32, sizes ...string) {
	t.Helper()
	for i, size := range sizes {
		p := pending(fmt.Sprint(name, "-", i), epoch.Add(-time.Minute), resources("cpu", size))
		p.Annotations = map[string]string{groupAnnotation: name, sizeAnnotation: fmt.Sprint(len(sizes))}
		p.Spec.Priority = &priority
		w.must(t, w.Put(p))
	}
}

// told returns the Pods that Events of a reason are about, with what the last one says.
func (w *world) told(reason string) map[string]string {
	all := map[string]string{}
	for _, e := range w.Events() {
		if e.Reason == reason {
			all[e.InvolvedObject.Name] = e.Message
		}
	}
	return all
}

// A group that can never have its Nodes keeps no other one from them, whatever they are called, and however important it
// is; only its own Pods are told that they have no place (SPEC C31, W12).
func TestGroupThatNeverFitsStarvesNobody(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"a", "z"} {
		for _, priority := range []int32{-1, 0, 1000} {
			w := fresh(t, "{}")
			w.set(t, "s", 0, 3, midsize(), nil)
			gang(t, w, name, priority, "3", "3", "3", "3")
			gang(t, w, "m", 0, "3", "3")
			w.scans(t, 5)
			if got := w.replicas("s")[0]; got != 2 {
				t.Errorf("four of %s (%d) never fit three Nodes, two of m do: %d Nodes", name, priority, got)
			}
			told := w.told("NotTriggerScaleUp")
			if told["m-0"] != "" || told["m-1"] != "" || !strings.Contains(told[name+"-0"], "have no place") {
				t.Errorf("%s (%d): %v", name, priority, told)
			}
		}
	}
}

// Of groups that could have the room that another one leaves, the most important has it, then the first by name.
func TestRoomOfGroupsLeftOutIsTheMostImportants(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "s", 0, 3, midsize(), nil)
	gang(t, w, "huge", 2000, "3", "3", "3", "3")
	gang(t, w, "a", 0, "3", "3")
	gang(t, w, "y", 1000, "3", "3")
	gang(t, w, "z", 1000, "3", "3")
	w.scans(t, 5)
	if got := slices.Sorted(maps.Keys(w.told("TriggeredScaleUp"))); !slices.Equal(got, []string{"y-0", "y-1"}) || w.replicas("s")[0] != 2 {
		t.Errorf("Nodes for %v, %d in all", got, w.replicas("s")[0])
	}
}

// However many groups are torn apart, one that fits gets its Nodes, and no Node comes for half of another.
func TestManyTornGroupsLeaveOneWhole(t *testing.T) {
	t.Parallel()
	for _, n := range []int{2, 12, 13, 40} {
		w := fresh(t, "{}")
		w.set(t, "s", 0, 3, midsize(), nil)
		for g := range n {
			gang(t, w, fmt.Sprintf("g%02d", g), 0, fmt.Sprintf("%dm", 3500+g), fmt.Sprintf("%dm", 2500+g))
		}
		w.scans(t, 5)
		if got := w.replicas("s")[0]; got != 2 {
			t.Errorf("%d groups that need two Nodes, there may be three: %d", n, got)
		}
	}
}

// Where more groups are left out than can be tried, the most important are tried each time, and every other one in turn.
func TestGroupsLeftOutAreTriedInTurn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ groups, tried, minutes int }{{25, 7, 8}, {238, 14, 34}, {326, 20, 33}, {400, 20, 40}, {5, 1, 12}, {2, 1, 3}, {1, 1, 1}} { // one at least, however many the first half of the tries were
		var all []tornGroup
		for i := range tt.groups {
			all = append(all, tornGroup{name: fmt.Sprint(i)})
		}
		seen := map[string]bool{}
		for minute := range tt.minutes {
			sc := &scan{}
			sc.Now = epoch.Add(time.Duration(minute) * time.Minute)
			for _, g := range sc.fromTurn(all)[:tt.tried] {
				seen[g.name] = true
			}
		}
		if len(seen) != tt.groups {
			t.Errorf("%+v: %d groups had their turn", tt, len(seen))
		}
	}
}

// Pods of a group that Nodes are on their way for keep the room there when another one joins them and has none.
func TestGroupThatGrowsKeepsWhatItWasPromised(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "s", 0, 2, midsize(), nil)
	member := func(i int) {
		p := pending(fmt.Sprint("g-", i), epoch.Add(-time.Minute), resources("cpu", "3"))
		p.Annotations = map[string]string{groupAnnotation: "g"}
		w.must(t, w.Put(p))
	}
	member(0)
	member(1)
	w.scans(t, 2)
	member(2)
	w.must(t, w.Put(pending("single", epoch.Add(-time.Minute), resources("cpu", "3500m"))))
	var r Reply
	w.must(t, json.Unmarshal(post(t, w, "{}").Body.Bytes(), &r))
	if r.Pods != (Counts{Waiting: 4, Fit: 2, Unplaced: 2}) {
		t.Errorf("%+v, %v", r.Pods, r.Unplaced)
	}
}

// All Pods of a group are counted on and the set is at its limit; then one comes that is like them, but of no group. It has no place, the
// group keeps its own, and the scan ends.
func TestPodLikeThoseOfAGroupTearsNoneApart(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "s", 0, 2, midsize(), nil)
	gang(t, w, "g", 0, "3", "3")
	w.scans(t, 1)
	w.must(t, w.Put(pending("z", epoch.Add(-time.Minute), resources("cpu", "3"))))
	w.scans(t, 2)
	if got := w.replicas("s"); got[0] != 2 {
		t.Errorf("%d replicas, want 2", got[0])
	}
}

// Who joins a group brings its Node although a Pod that stands for itself, and is like those of the group that have their
// Nodes, has none.
func TestLikePodTearsNoGroupThatHasItsNodes(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "x", 0, 2, midsize(), map[string]string{"pool": "x"})
	w.set(t, "y", 0, 9, map[string]string{"capacity.cluster-autoscaler.kubernetes.io/cpu": "2", "capacity.cluster-autoscaler.kubernetes.io/memory": "16Gi"}, nil)
	member := func(name, cores string) *corev1.Pod {
		p := ranked(name, "", 0, cores)
		p.Annotations = map[string]string{groupAnnotation: "g"}
		return p
	}
	w.must(t, w.Put(member("g-0", "3"), member("g-1", "3")))
	w.scans(t, 2)
	w.must(t, w.Put(member("g-2", "1500m"), ranked("z", "", 0, "3")))
	w.scans(t, 3)
	if got := w.replicas("x", "y"); !slices.Equal(got, []int32{2, 1}) {
		t.Errorf("g-2 fits y: %v, told %v", got, w.told("NotTriggerScaleUp")["g-2"])
	}
}

// A group that is torn apart names the sets with the numbers that stand against it, also where it is another one that it leaves no room
// for (SPEC W3, W12).
func TestTornGroupTellsTheLimit(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ settings, size, want string }{
		{"{}", "3", "1 of 4 pods have no place: 1 max node group size reached (s: 3 of 3)"},
		{"{resourceLimits: {maxNodesTotal: 2}}", "3", "2 of 4 pods have no place: 1 max total nodes in cluster reached (s: 2 of 2)"},
		{"{resourceLimits: {cores: {min: 0, max: 10}}}", "3", "2 of 4 pods have no place: 1 exceeded quota: \"cluster-wide\", resources: cpu (s: cpu 8 + 4 of 10)"},
		{"{}", "7", "4 of 4 pods have no place: 1 Insufficient cpu (s: wants 7, a new node has 4)"},
	} {
		w := fresh(t, tt.settings)
		w.set(t, "s", 0, 3, midsize(), nil)
		gang(t, w, "g", 0, tt.size, tt.size, tt.size, tt.size)
		w.scans(t, 1)
		if got := w.told("NotTriggerScaleUp")["g-0"]; !strings.Contains(got, tt.want) {
			t.Errorf("%s: told %q, want %q", tt.settings, got, tt.want)
		}
	}
	w := fresh(t, "{}")
	w.set(t, "s", 0, 3, midsize(), nil)
	gang(t, w, "a", 1, "3", "3")
	gang(t, w, "b", 0, "3", "3")
	w.scans(t, 1)
	var r Reply
	w.must(t, json.Unmarshal(post(t, w, "{}").Body.Bytes(), &r))
	if len(r.Unplaced) != 1 || !strings.Contains(r.Unplaced[0].Why, "s: 3 of 3") {
		t.Errorf("%v", r.Unplaced)
	}
}

// Pods of a group that fit room on its way keep it as those do that Nodes came for with them: another Pod of the same priority that comes later
// does not take it, which would leave the Nodes of the others without use (SPEC C9, W12).
func TestGroupKeepsRoomOnItsWay(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "s", 0, 2, midsize(), nil)
	w.must(t, w.Put(pending("first", epoch.Add(-time.Minute), resources("cpu", "1"))))
	w.scans(t, 1)
	gang(t, w, "g", 0, "2500m", "3500m") // the first beside the Pod that a Node is on its way for, the second on a new one
	w.scans(t, 1)
	if got := w.replicas("s")[0]; got != 2 {
		t.Fatalf("%d Nodes", got)
	}
	w.must(t, w.Put(pending("later", w.now.Add(-time.Minute), resources("cpu", "2900m"))))
	w.scans(t, 3)
	if told := w.told("NotTriggerScaleUp"); told["g-0"] != "" || told["later"] == "" {
		t.Errorf("told that nothing is done for them: %v", told)
	}
}

// A group that there is room for within the limits of the cluster gets its Nodes, also where cheaper ones, or smaller ones, would be too
// many for these (SPEC C9, C31, W12); and so do Pods of no group, at once.
func TestGroupThatFitsTheLimitsGetsItsNodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		settings, small, large string
		want                   []int32
	}{
		{"{expanders: [Price], resourceLimits: {maxNodesTotal: 2}}", "1", "3", []int32{1, 1}},
		{"{expanders: [Price], resourceLimits: {maxNodesTotal: 2, cores: {min: 0, max: 100}}}", "1", "3", []int32{1, 1}},
		{"{resourceLimits: {maxNodesTotal: 2}}", "1", "3", []int32{1, 1}},
		{"{expanders: [Price], resourceLimits: {cores: {min: 0, max: 12}}}", "4", "3", []int32{1, 1}},
		{"{expanders: [Price], resourceLimits: {maxNodesTotal: 9}}", "1", "3", []int32{3, 0}},
	} {
		for _, group := range []bool{true, false} {
			w := fresh(t, tt.settings)
			w.set(t, "small", 0, 9, midsize(machine.AnnotationPrice, tt.small), nil)
			w.set(t, "large", 0, 9, map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi", machine.AnnotationPrice: tt.large}, nil)
			if group {
				gang(t, w, "g", 0, "3", "3", "3")
			} else {
				w.must(t, w.Put(ranked("a", "", 0), ranked("b", "", 0), ranked("c", "", 0)))
			}
			w.scans(t, 1)
			if got := w.replicas("small", "large"); !slices.Equal(got, tt.want) {
				t.Errorf("%s, a group %v: %v, want %v", tt.settings, group, got, tt.want)
			}
		}
	}
}

// Of dear Nodes that save what is limited only as many come as it takes.
func TestLimitsBringFewDearNodes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pods, most int
		want       []int32
	}{{10, 10, []int32{10, 0}}, {11, 10, []int32{9, 1}}, {15, 10, []int32{5, 5}}, {20, 10, []int32{0, 10}}, {3, 2, []int32{1, 1}}, {110, 100, []int32{89, 11}}} { // of many one or two more
		w := fresh(t, fmt.Sprintf("{expanders: [Price], resourceLimits: {maxNodesTotal: %d}}", tt.most))
		w.set(t, "small", 0, 999, midsize(machine.AnnotationPrice, "1"), nil)
		w.set(t, "large", 0, 999, map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi", machine.AnnotationPrice: "3"}, nil)
		for i := range tt.pods {
			w.must(t, w.Put(ranked(fmt.Sprint("p-", i), "", 0)))
		}
		w.scans(t, 1)
		if got := w.replicas("small", "large"); !slices.Equal(got, tt.want) {
			t.Errorf("%d Pods on at most %d Nodes: %v, want %v", tt.pods, tt.most, got, tt.want)
		}
	}
}

// A plan that saves what is limited comes true only where it leaves fewer important Pods over: here the large Nodes are for many Pods that
// matter less.
func TestLimitsAreForTheMostImportant(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{expanders: [Price], resourceLimits: {maxNodesTotal: 1}}")
	w.set(t, "small", 0, 9, midsize(machine.AnnotationPrice, "1"), map[string]string{"pool": "small"})
	w.set(t, "large", 0, 9, map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi", machine.AnnotationPrice: "3"}, nil)
	w.must(t, w.Put(ranked("high", "small", 5), ranked("a", "", 0), ranked("b", "", 0)))
	w.scans(t, 1)
	if got := w.replicas("small", "large"); !slices.Equal(got, []int32{1, 0}) {
		t.Errorf("%v", got)
	}
}

// A Pod of a group that has ended, or is about to, is none of those that it has to have: no Node comes for the rest (SPEC C31, W12).
func TestPodsThatEndMakeNoGroupComplete(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		change func(p *corev1.Pod)
		want   int32
	}{
		"runs":          {func(*corev1.Pod) {}, 2},
		"has failed":    {func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, 1},
		"has succeeded": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, 1},
		"is deleted": {func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Finalizers = new(metav1.NewTime(epoch)), []string{"example.com/keep"}
		}, 1},
	} {
		w := fresh(t, "{}")
		w.set(t, "s", 1, 3, midsize(), nil)
		w.member(t, "s", "n", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		first, second := running("g-0", "n", resources("cpu", "3")), pending("g-1", epoch.Add(-time.Minute), resources("cpu", "3"))
		for _, p := range []*corev1.Pod{first, second} {
			p.Annotations = map[string]string{groupAnnotation: "g", sizeAnnotation: "2"}
		}
		tt.change(first)
		w.must(t, w.Put(first, running("other", "n", resources("cpu", "3")), second))
		w.scans(t, 2)
		if got := w.replicas("s")[0]; got != tt.want {
			t.Errorf("one of two Pods %s, the other waits: %d Nodes, want %d", name, got, tt.want)
		}
	}
}

// A group that says that it can do without some of its Pods gets Nodes for as many as there may be (SPEC C31, W12).
func TestGroupThatCanDoWithoutSomeGetsNodesForTheOthers(t *testing.T) {
	t.Parallel()
	for needs, want := range map[int]int32{2: 2, 3: 0} {
		w := fresh(t, "{}")
		w.set(t, "s", 0, 2, midsize(), nil)
		gang(t, w, "g", 0, "3", "3", "3")
		for i := range 3 {
			w.must(t, memory.Patch(w.Server, "default", fmt.Sprint("g-", i), func(p *corev1.Pod) { p.Annotations[sizeAnnotation] = fmt.Sprint(needs) }))
		}
		w.scans(t, 2)
		if got := w.replicas("s")[0]; got != want {
			t.Errorf("three Pods, of which the group needs %d, and two Nodes that there may be: %d Nodes, want %d", needs, got, want)
		}
	}
}
