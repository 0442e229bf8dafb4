// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// Pods that come while the Nodes of earlier ones are on their way bring Nodes of their own, whatever they are called and
// however many they are (SPEC C9, C44, RELIABILITY 2d).
func TestEveryWaveBringsItsNodes(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 5, 10, 50} {
		for _, name := range []func(wave, i int) string{
			func(wave, i int) string { return fmt.Sprintf("p-%d-%d", wave, i) },
			func(wave, i int) string { return fmt.Sprintf("p-%d-%d", 9-wave, i) }, // later ones sort first
		} {
			w := fresh(t, "{scaleDown: {enabled: true}}")
			w.set(t, "s", 0, 5000, midsize(), nil)
			var got, want []int32
			for wave := range 5 {
				for i := range n {
					w.must(t, w.Put(pending(name(wave, i), w.now.Add(-5*time.Second), resources("cpu", "3"))))
				}
				w.scans(t, 3)
				got, want = append(got, w.replicas("s")...), append(want, int32(n*(wave+1)))
			}
			if !slices.Equal(got, want) {
				t.Errorf("waves of %d Pods, %s…: %d Nodes wanted, want %d", n, name(0, 0), got, want)
			}
		}
	}
}

// A Pod that the scheduler comes to only after Nodes were asked for was not counted on then: it brings its own Node, at
// a steady load as well (SPEC C9, RELIABILITY 2d).
func TestPodsLookedAtLateAreNotForgotten(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "s", 0, 5000, midsize(), nil)
	made := 0
	for range 60 {
		for i := range 10 {
			name, pod := fmt.Sprintf("ci-%05d", made), pending
			if i == 9 {
				pod = notLookedAt
			}
			w.must(t, w.Put(pod(name, w.now.Add(-2*time.Second), resources("cpu", "3"))))
			made++
		}
		w.now = w.now.Add(time.Second)
		w.once(t)
		w.must(t, w.Put(pending(fmt.Sprintf("ci-%05d", made-1), w.now.Add(-3*time.Second), resources("cpu", "3"))))
		w.now = w.now.Add(9 * time.Second)
	}
	w.once(t)
	if got := int(w.replicas("s")[0]); got != made {
		t.Errorf("%d Pods of a Node each: %d Nodes wanted", made, got)
	}
}

// One Machine that hangs holds up nobody but its own Pod (SPEC C47).
func TestWaveDoesNotWaitForTheSlowest(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "s", 0, 5000, midsize(), nil)
	for i := range 10 {
		w.must(t, w.Put(pending(fmt.Sprintf("a-%d", i), epoch.Add(-5*time.Second), resources("cpu", "3"))))
	}
	w.scans(t, 3)
	for i := range 9 {
		w.member(t, "s", fmt.Sprint("s-", i), w.now, resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		w.must(t, w.Put(running(fmt.Sprintf("a-%d", i), fmt.Sprint("s-", i), resources("cpu", "3"))))
	}
	for i := range 5 {
		w.must(t, w.Put(pending(fmt.Sprintf("b-%d", i), w.now.Add(-5*time.Second), resources("cpu", "3"))))
	}
	w.once(t)
	if got := w.replicas("s")[0]; got != 15 {
		t.Errorf("ten Pods, one of which still waits, and five: %d Nodes wanted", got)
	}
	w.scans(t, 12)
	if got := w.replicas("s")[0]; got != 15 {
		t.Errorf("two minutes later %d Nodes are wanted", got)
	}
}

// What becomes of Pods adds up in an answer, for those that wait for Nodes on their way as well (SPEC W1).
func TestAnswerAddsUp(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "s", 0, 50, midsize(), nil)
	for i := range 4 {
		w.must(t, w.Put(pending(fmt.Sprintf("a-%d", i), epoch.Add(-5*time.Second), resources("cpu", "3"))))
	}
	w.scans(t, 3)
	for i := range 3 {
		w.must(t, w.Put(pending(fmt.Sprintf("b-%d", i), w.now.Add(-5*time.Second), resources("cpu", "3"))))
	}
	var r Reply
	w.must(t, json.Unmarshal(post(t, w, "{}").Body.Bytes(), &r))
	if r.Pods != (Counts{Waiting: 7, Fit: 4, Helped: 3}) {
		t.Errorf("%+v, resize %v", r.Pods, r.Resize)
	}
	if n := len(memory.List[*corev1.Pod](w.Server)); n != 7 {
		t.Errorf("%d Pods after a question", n)
	}
}

// What was promised to Pods that Nodes are on their way for is not given to Pods of other sizes that come meanwhile, and
// once no more Pods come no more Nodes are asked for (SPEC C9, W4, RELIABILITY 2d).
func TestPromisedRoomIsNotGivenAway(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "s", 0, 500, midsize(), nil)
	for wave := range 6 {
		for i := range 20 {
			size := resources("cpu", fmt.Sprintf("%dm", 2500+1000*(i%2)+20*wave+i))
			w.must(t, w.Put(pending(fmt.Sprintf("p-%d-%02d", wave, i), w.now.Add(-time.Minute), size)))
		}
		w.scans(t, 3)
		if got := w.replicas("s")[0]; got != int32(20*(wave+1)) {
			t.Errorf("%d Pods of which a Node holds one: %d Nodes", 20*(wave+1), got)
		}
	}
}

// Where there may be no more Nodes, one that is on its way for somebody else is the more important Pod's.
func TestPromisedRoomGoesToMoreImportantPodsAtTheLimit(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"{}", "{resourceLimits: {maxNodesTotal: 2}}"} {
		w := fresh(t, settings)
		w.set(t, "s", 0, map[bool]int32{true: 2, false: 9}[settings == "{}"], midsize(), nil)
		w.must(t, w.Put(pending("a", epoch.Add(-time.Minute), resources("cpu", "3")), pending("b", epoch.Add(-time.Minute), resources("cpu", "2500m"))))
		w.scans(t, 1)
		high := pending("high", w.now.Add(-time.Minute), resources("cpu", "3500m"))
		high.Spec.Priority = new(int32(1000))
		w.must(t, w.Put(high))
		var r Reply
		w.must(t, json.Unmarshal(post(t, w, "{}").Body.Bytes(), &r))
		if r.Pods != (Counts{Waiting: 3, Fit: 2, Unplaced: 1}) || len(r.Unplaced) != 1 || r.Unplaced[0].Pod == "default/high" {
			t.Errorf("%s: %+v, %v", settings, r.Pods, r.Unplaced)
		}
	}
}

// ranked is a Pod of three cores, or as many as are said, that waits for a Node, of one pool or of any.
func ranked(name, pool string, priority int32, cores ...string) *corev1.Pod {
	p := pending(name, epoch.Add(-time.Minute), resources("cpu", append(cores, "3")[0]))
	if p.Spec.Priority = &priority; pool != "" {
		p.Spec.NodeSelector = map[string]string{"pool": pool}
	}
	return p
}

// Who gives way to a more important Pod has its turn before those that are less important: they do not take the room that is left
// of what it was promised, and whoever has none then brings a Node elsewhere, or is told why not (SPEC C9, W3).
func TestWhoGaveWayHasItsTurn(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, pool string // where those that were counted on may run
		priority   int32  // of the one that comes with the important Pod
		want       Counts
		nodes      []int32
		told       []string
	}{
		{"nowhere else", "x", 0, Counts{Waiting: 4, Fit: 2, Helped: 1, Unplaced: 1}, []int32{2, 1}, []string{"c-1"}},
		{"anywhere", "", 0, Counts{Waiting: 4, Fit: 2, Helped: 2}, []int32{2, 2}, nil},
		{"beside a more important one", "x", 7, Counts{Waiting: 4, Fit: 2, Unplaced: 2}, []int32{2, 0}, []string{"c-0", "c-1"}},
	} {
		w := fresh(t, "{expanders: [Price]}")
		w.set(t, "x", 0, 2, midsize(machine.AnnotationPrice, "1"), map[string]string{"pool": "x"})
		w.set(t, "y", 0, 5, midsize(machine.AnnotationPrice, "2"), nil)
		w.must(t, w.Put(ranked("c-0", tt.pool, 5), ranked("c-1", tt.pool, 5)))
		w.scans(t, 1)
		other := ranked("other", "", tt.priority)
		if tt.priority > 5 {
			other.Spec.NodeSelector = map[string]string{"pool": "x"}
		}
		w.must(t, w.Put(ranked("high", "x", 1000, "3500m"), other))
		if r := asked(t, w, "{}"); r.Pods != tt.want {
			t.Errorf("%s: %+v, %v", tt.name, r.Pods, r.Unplaced)
		}
		w.scans(t, 60)
		if got := w.replicas("x", "y"); !slices.Equal(got, tt.nodes) {
			t.Errorf("%s: Nodes of x and y: %v, want %v", tt.name, got, tt.nodes)
		}
		if got := slices.Sorted(maps.Keys(w.told("NotTriggerScaleUp"))); !slices.Equal(got, tt.told) {
			t.Errorf("%s: %v are told that nothing is done for them, want %v", tt.name, got, tt.told)
		}
	}
}

// Only as many as must give way to a more important Pod do: one that came with it, less important than it and free to run elsewhere, does
// not take the room of those that can have no other (SPEC C9).
func TestOnlyWhoMustGivesWay(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{expanders: [Price]}")
	w.set(t, "x", 0, 2, midsize(machine.AnnotationPrice, "1"), map[string]string{"pool": "x"})
	w.set(t, "y", 0, 5, midsize(machine.AnnotationPrice, "2"), nil)
	w.must(t, w.Put(ranked("c-0", "x", 0), ranked("c-1", "x", 0)))
	w.scans(t, 1)
	w.must(t, w.Put(ranked("high", "x", 1000, "3500m"), ranked("other", "", 5)))
	w.scans(t, 60)
	if got := w.replicas("x", "y"); !slices.Equal(got, []int32{2, 1}) {
		t.Errorf("Nodes of x and y: %v", got)
	}
	if got := slices.Sorted(maps.Keys(w.told("NotTriggerScaleUp"))); !slices.Equal(got, []string{"c-1"}) {
		t.Errorf("%v are told that nothing is done for them", got)
	}
}

// A Node that comes in place of one that was given up is counted on as well, also once the Nodes of the first request are there.
func TestWhoGaveWayKeepsItsNewNode(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{expanders: [Price]}")
	w.set(t, "x", 0, 2, midsize(machine.AnnotationPrice, "1"), map[string]string{"pool": "x"})
	w.set(t, "y", 0, 1, midsize(machine.AnnotationPrice, "2"), nil)
	w.must(t, w.Put(ranked("c-0", "", 5), ranked("c-1", "", 5)))
	w.scans(t, 1)
	w.must(t, w.Put(ranked("high", "x", 1000, "3500m")))
	w.scans(t, 1)
	for i, p := range []string{"c-0", "high"} {
		name := fmt.Sprint("x-", i)
		w.member(t, "x", name, w.now, resources("cpu", "4", "memory", "16Gi", "pods", "110"), map[string]string{"pool": "x"})
		w.must(t, memory.Patch(w.Server, "default", p, func(p *corev1.Pod) { p.Spec.NodeName, p.Status.Phase = name, corev1.PodRunning }))
	}
	w.must(t, w.Put(ranked("new", "", 5, "3500m")))
	w.now = w.now.Add(2 * time.Minute)
	w.scans(t, 3)
	if told := w.told("NotTriggerScaleUp"); told["c-1"] != "" || told["new"] == "" {
		t.Errorf("the Node of y is on its way for c-1: %v are told that nothing is done for them", told)
	}
}

// A CapacityBuffer whose room went to a more important Pod says so.
func TestBufferThatGaveWaySaysSo(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "x", 0, 2, midsize(), nil)
	w.yaml(t, "{apiVersion: v1, kind: PodTemplate, metadata: {name: chunk, namespace: default, uid: template}, template: {spec: {containers: [{name: c, resources: {requests: {cpu: 3}}}]}}}")
	w.yaml(t, "{apiVersion: autoscaling.x-k8s.io/v1beta1, kind: CapacityBuffer, metadata: {name: b, namespace: default, uid: buffer}, spec: {podTemplateRef: {name: chunk}, replicas: 2}}")
	w.scans(t, 2)
	if got := fmt.Sprint(w.Object(bufferKind, "default", "b")); !strings.Contains(got, "RoomIsKept") {
		t.Errorf("before: %s", got)
	}
	w.must(t, w.Put(ranked("high", "", 1000, "3500m")))
	w.scans(t, 2)
	if got := fmt.Sprint(w.Object(bufferKind, "default", "b")); !strings.Contains(got, "1 of 2 places are missing") {
		t.Errorf("after: %s", got)
	}
}

// A group some of whose Pods gave way has a place for all of them elsewhere, or no Node comes for any (SPEC C31, W12).
func TestGroupThatGaveWayIsNotTorn(t *testing.T) {
	t.Parallel()
	for most, want := range map[int32]int32{1: 0, 2: 2} {
		w := fresh(t, "{expanders: [Price]}")
		w.set(t, "x", 0, 2, midsize(machine.AnnotationPrice, "1"), map[string]string{"pool": "x"})
		w.set(t, "y", 0, most, midsize(machine.AnnotationPrice, "2"), nil)
		gang(t, w, "g", 0, "3", "3")
		w.scans(t, 1)
		w.must(t, w.Put(ranked("high-0", "x", 1000, "3500m"), ranked("high-1", "x", 1000, "3500m")))
		w.scans(t, 30)
		if got := w.replicas("x", "y"); !slices.Equal(got, []int32{2, want}) {
			t.Errorf("two of a group lost both Nodes of x, y may have %d: %v", most, got)
		}
		if told := w.told("NotTriggerScaleUp"); (told["g-0"] != "") != (want == 0) {
			t.Errorf("y may have %d: %v", most, told)
		}
	}
}

// Nor does a Node come for the one of a group that some Node fits, beside others that have none: they are told how many these are of all.
func TestNoNodeComesForHalfOfAGroupThatGaveWay(t *testing.T) {
	t.Parallel()
	for _, group := range []bool{true, false} {
		w := fresh(t, "{expanders: [Price]}")
		w.set(t, "x", 0, 1, map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi", machine.AnnotationPrice: "3"}, nil)
		w.set(t, "y", 0, 3, map[string]string{machine.CapacityCPU: "2", machine.CapacityMemory: "8Gi", machine.AnnotationPrice: "1"}, nil)
		w.must(t, w.Put(ranked("low", "", 0)))
		gang(t, w, "g", 0, "3", "1")
		w.scans(t, 1)
		if w.must(t, w.Put(ranked("high", "", 5, "1500m"))); group {
			gang(t, w, "hg", 5, "3", "3")
		} else {
			w.must(t, w.Put(ranked("h1", "", 5), ranked("h2", "", 5)))
		}
		w.scans(t, 30)
		if got := w.replicas("x", "y"); !slices.Equal(got, []int32{1, 0}) {
			t.Errorf("beside a group %v: Nodes of x and y: %v", group, got)
		}
		if told := w.told("NotTriggerScaleUp"); !strings.Contains(told["g-0"], "1 of 2 pods have no place") || told["g-0"] != told["g-1"] {
			t.Errorf("beside a group %v: %v", group, told)
		}
	}
}

// Nor does one come for those of a group that is no longer complete.
func TestIncompleteGroupThatGaveWayBringsNothing(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{expanders: [Price]}")
	w.set(t, "x", 0, 3, midsize(machine.AnnotationPrice, "1"), map[string]string{"pool": "x"})
	w.set(t, "y", 0, 5, midsize(machine.AnnotationPrice, "2"), nil)
	gang(t, w, "g", 0, "3", "3", "3")
	w.scans(t, 1)
	w.must(t, w.Remove("Pod", "default", "g-0", memory.Force))
	w.must(t, w.Put(ranked("high-0", "x", 1000, "3500m"), ranked("high-1", "x", 1000, "3500m")))
	w.scans(t, 3)
	if got := w.replicas("x", "y"); !slices.Equal(got, []int32{3, 0}) {
		t.Errorf("two of a group of three lost a Node: %v", got)
	}
	if why := w.told("NotTriggerScaleUp")["g-2"]; !strings.Contains(why, "pod group default/g has 2 of 3 pods") {
		t.Errorf("told: %q", why)
	}
}

// Those that gave way bring Nodes once: when no more Pods come, no more Nodes do, of whatever sizes and priorities they are.
func TestWhoGaveWayBringsNodesOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r, w, once := rand.New(rand.NewPCG(seed, 0)), fresh(t, "{expanders: [Price]}"), fresh(t, "{expanders: [Price]}")
		for _, w := range []*world{w, once} {
			w.set(t, "x", 0, 12, midsize(machine.AnnotationPrice, "1"), map[string]string{"pool": "x"})
			w.set(t, "y", 0, 500, midsize(machine.AnnotationPrice, "2"), nil)
		}
		for wave := range 5 {
			for i := range 12 {
				priority := int32(r.IntN(3))
				p := ranked(fmt.Sprintf("p-%d-%02d", wave, i), "", priority, fmt.Sprintf("%dm", 500+100*r.IntN(30)))
				if wave > 1 && i < 4 {
					p = ranked(p.Name, "x", 1000, fmt.Sprintf("%dm", 2000+100*r.IntN(15)))
				}
				w.must(t, w.Put(p))
				w.must(t, once.Put(p.DeepCopy()))
			}
			w.scans(t, 1)
		}
		once.scans(t, 1)
		after := w.replicas("x", "y")
		w.scans(t, 10)
		if got, least := w.replicas("x", "y"), once.replicas("x", "y"); !slices.Equal(got, after) || got[1] > least[1]+least[1]/5+1 {
			t.Errorf("seed %d: %v Nodes, a hundred seconds later %v, all at once takes %v", seed, after, got, least)
		}
	}
}

// Pods of all sizes, wave by wave while nothing arrives: once no more come, no more Nodes are asked for, and together
// they are not many more than a plan for all at once has.
func TestWavesCostLittleMore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		r, waves, once := rand.New(rand.NewPCG(seed, 0)), fresh(t, "{}"), fresh(t, "{}")
		waves.set(t, "s", 0, 500, midsize(), nil)
		once.set(t, "s", 0, 500, midsize(), nil)
		for wave := range 6 {
			for i := range 20 {
				p := pending(fmt.Sprintf("p-%d-%02d", wave, i), epoch.Add(-time.Minute), resources("cpu", fmt.Sprintf("%dm", 500+100*r.IntN(30))))
				waves.must(t, waves.Put(p))
				once.must(t, once.Put(p.DeepCopy()))
			}
			waves.scans(t, 1)
		}
		once.scans(t, 1)
		after := waves.replicas("s")[0]
		waves.scans(t, 10)
		if got, least := waves.replicas("s")[0], once.replicas("s")[0]; got != after || got > least+least/10 || got < least {
			t.Errorf("seed %d: %d Nodes, a hundred seconds later %d, all at once takes %d", seed, after, got, least)
		}
	}
}

// What is remembered about Pods that wait for Nodes is bounded: of many waves the oldest become one, with all of their Pods (RELIABILITY 2d).
func TestManyWavesBecomeFewer(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "s", 0, 5000, midsize(), nil)
	const waves = maxWaves + 10
	for i := range waves {
		w.must(t, w.Put(pending(fmt.Sprint("p-", i), w.now.Add(-5*time.Second), resources("cpu", "3"))))
		w.scans(t, 1)
	}
	w.scans(t, 3)
	s, err := stateOf(snapshotOf(memory.Get[*corev1.ConfigMap](w.Server, machine.Namespace, machine.ConfigMapStatus)))
	w.must(t, err)
	kept, marks := s.Groups["MachineSet/openshift-machine-api/s"].Waves, autoscaling.Marks{}
	for _, x := range kept {
		marks.AddText(x.Pods)
	}
	if len(kept) > maxWaves || len(marks) != waves || w.replicas("s")[0] != waves {
		t.Errorf("%d waves of %d Pods, %d Nodes; of %d Pods one by one", len(kept), len(marks), w.replicas("s")[0], waves)
	}
}

// Nor are more Pods remembered than there is room for, whichever waves they are of.
func TestMarksAreBounded(t *testing.T) {
	t.Parallel()
	sc := &scan{counted: autoscaling.Marks{}}
	for i := range uint32(maxMarked - 2) {
		sc.counted[i] = true
	}
	var pods []*corev1.Pod
	for i := range 5 {
		pods = append(pods, pending(fmt.Sprint("p-", i), epoch, nil))
	}
	marks := autoscaling.Marks{}
	marks.AddText(sc.wave(1, pods).Pods)
	if len(marks) != 2 {
		t.Errorf("%d Pods of a wave are remembered beside %d", len(marks), len(sc.counted))
	}
}

// A growth whose set has the replicas stands, though who replaced the set by a manifest took the plan's id off: its Nodes are on their way for the
// Pods that they were asked for.
func TestWaveOutlastsAManifest(t *testing.T) {
	t.Parallel()
	for name, keeps := range map[string]bool{"replaced": true, "replaced and smaller": false, "made anew": false} {
		w := fresh(t, "{}")
		w.set(t, "s", 0, 9, midsize(), nil)
		w.must(t, w.Put(pending("a", epoch.Add(-time.Minute), resources("cpu", "3"))))
		w.scans(t, 1)
		set := memory.Get[*machine.MachineSet](w.Server, machine.Namespace, "s").DeepCopy()
		asked := w.state(t).Groups[idOf(set)].Waves
		if len(asked) != 1 {
			t.Fatalf("%s: asked for %+v", name, asked)
		}
		w.must(t, w.Remove("Pod", "default", "a", memory.Background)) // who asks for no other
		delete(set.Annotations, machine.AnnotationLastPlan)
		switch name {
		case "replaced and smaller":
			set.Spec.Replicas = new(int32(0))
		case "made anew":
			w.must(t, w.Remove("MachineSet", set.Namespace, set.Name, memory.Background))
			set.UID, set.ResourceVersion = "anew", ""
		}
		w.must(t, w.Put(set))
		w.once(t)
		if got := w.state(t).Groups[idOf(set)].Waves; slices.Equal(got, asked) != keeps || !keeps && len(got) > 0 {
			t.Errorf("%s: the waves are %+v, were %+v", name, got, asked)
		}
	}
}
