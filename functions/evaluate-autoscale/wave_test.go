// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
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
		if r.Pods != (Counts{Waiting: 3, Fit: 3}) {
			t.Errorf("%s: %+v", settings, r.Pods)
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
