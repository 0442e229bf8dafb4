// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// Whom the scheduler does not bind although there is room, because it is slow or knows better, keeps the Node that came for it:
// it does not go as idle, to come again as soon as it is gone (SPEC C2, C9).
func TestNodeThatAPodWaitsForDoesNotComeAndGo(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 1m, delayAfterAdd: 0s}}")
	w.set(t, "s", 0, 4, midsize(), nil)
	w.must(t, w.Put(pending("unbound", epoch.Add(-time.Minute), resources("cpu", "1"))))
	for range 6 * 30 {
		w.once(t)
		w.comes(t, "s", resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		w.victimsGo(t)
		w.now = w.now.Add(10 * time.Second)
	}
	if got := w.replicas("s"); w.born != 1 || got[0] != 1 {
		t.Errorf("in half an hour %d Nodes came for one Pod, %d are there", w.born, got)
	}
}

// Room that a Pod waits to be bound to is promised to nobody else: the only Node that the Pods of another one could move to is
// the only one that a Pod waits for, whether it is new or loses its Node because somebody deletes the Machine (SPEC C9, C56, RELIABILITY 2d).
func TestRoomIsPromisedOnce(t *testing.T) {
	t.Parallel()
	size := resources("cpu", "4", "memory", "16Gi", "pods", "110")
	for _, who := range []string{"nobody", "a new pod", "a pod of a machine that goes"} {
		w := fresh(t, "{scaleDown: {enabled: true, unneededTime: 0s}}")
		w.set(t, "s", 3, 3, midsize(), nil)
		for _, n := range []string{"a", "b", "x"} {
			w.member(t, "s", n, epoch.Add(-time.Hour), size, nil)
		}
		w.must(t, w.Put(running("on-a", "a", resources("cpu", "1500m")), running("on-b", "b", resources("cpu", "2200m")), running("on-x", "x", resources("cpu", "3900m"))))
		p := pending("new", epoch.Add(-time.Minute), resources("cpu", "1700m"))
		switch who {
		case "a new pod":
			w.must(t, w.Put(p))
		case "a pod of a machine that goes":
			w.set(t, "other", 0, 1, midsize(), nil)
			w.member(t, "other", "y", epoch.Add(-time.Hour), size, nil)
			p.Spec.NodeName = "y"
			w.must(t, w.Put(p))
			w.must(t, memory.Patch(w.Server, machine.Namespace, "y", func(m *machine.Machine) { m.Finalizers = []string{"machine.machine.openshift.io"} }))
			w.must(t, w.Remove("Machine", machine.Namespace, "y", memory.Background))
		}
		if removes := strings.Contains(fmt.Sprint(w.once(t)), "removing node a"); removes != (who == "nobody") {
			t.Errorf("%s waits for the room on b, where the pod of a would go: a is removed: %t", who, removes)
		}
	}
}

// A Node that its cloud's controller has not seen to takes no Pods, whatever it says of itself: the Pod that it came for waits
// for it, and brings no other one that would be as useless (SPEC C14, C44).
func TestNodeIsAwaitedUntilItsCloudHasSeenToIt(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.pool(t, "s", 0, 9, nil, nil)
	w.must(t, w.Put(pod("default", "p", "", resources("cpu", "500m"))))
	w.scans(t, 6)
	for born := range 9 {
		if w.replicas("s")[0] > int32(born) {
			name := fmt.Sprint("s-", born)
			w.member(t, "s", name, w.now, resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
			w.must(t, memory.Patch(w.Server, "", name, func(n *corev1.Node) {
				n.Spec.Taints = []corev1.Taint{{Key: "node.cloudprovider.kubernetes.io/uninitialized", Value: "true", Effect: corev1.TaintEffectNoSchedule}}
			}))
		}
		w.scans(t, 8)
	}
	if got := w.replicas("s"); got[0] != 1 {
		t.Errorf("twelve minutes without the controller: %d Nodes for one Pod", got[0])
	}
}

// What is promised to a Pod that has no choice of pools is not given away because one that has a choice could be there as well, and
// a group counts on it no more than anybody (SPEC C9, W12).
func TestWhoHasNoChoiceKeepsWhatItWasPromised(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name       string
		most       int32 // Nodes of y
		before, by []string
		want       []int32
	}{
		{"by one", 9, []string{"a"}, []string{"3500m"}, []int32{1, 2}},
		{"by a group that y has no room for", 3, []string{"a", "b"}, []string{"3500m", "3500m"}, []int32{1, 2}},
	} {
		w := fresh(t, "{}")
		w.set(t, "x", 0, 1, midsize(), map[string]string{"pool": "x"})
		w.set(t, "y", 0, tt.most, midsize(), map[string]string{"pool": "y"})
		for _, name := range tt.before {
			w.must(t, w.Put(ranked(name, "", 0)))
		}
		w.must(t, w.Put(ranked("z", "x", 0)))
		w.scans(t, 1)
		gang(t, w, "late", 0, tt.by...)
		w.scans(t, 30)
		if got := w.replicas("x", "y"); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, %+v", tt.name, got, asked(t, w, "{}").Pods)
		}
	}
}

// Nor does a less important Pod keep a Node that a more important one would have if another one like it made use of its choice,
// however important that one is.
func TestImportantPodsMakeUseOfTheirChoice(t *testing.T) {
	t.Parallel()
	for _, rank := range []int32{999, 1000, 1001} {
		w := fresh(t, "{}")
		w.set(t, "x", 0, 1, midsize(), map[string]string{"pool": "x"})
		w.set(t, "y", 0, 1, midsize(), map[string]string{"pool": "y"})
		w.must(t, w.Put(ranked("low-0", "", 0), ranked("low-1", "", 0)))
		w.scans(t, 1)
		w.must(t, w.Put(ranked("high-any", "", rank), ranked("high-x", "x", 1000)))
		for _, u := range asked(t, w, "{}").Unplaced {
			if !strings.HasPrefix(u.Pod, "default/low-") {
				t.Errorf("%d: %+v, a less important one has a place", rank, u)
			}
		}
	}
}

// Who gave way and got nothing is told so and brings a Node where there may be one again, although for those that it gave way to
// a Node is on its way (SPEC C9, W3).
func TestWhoGaveWayIsNoLongerCountedOn(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "x", 0, 2, midsize(), nil)
	w.must(t, w.Put(ranked("low", "", 0)))
	w.scans(t, 1)
	w.must(t, w.Put(ranked("high-0", "", 1000), ranked("high-1", "", 1000)))
	w.scans(t, 4)
	if r := asked(t, w, "{}"); r.Pods.Fit != 2 || w.told("NotTriggerScaleUp")["low"] == "" {
		t.Errorf("two Nodes, three Pods: %+v, told %v", r.Pods, w.told("NotTriggerScaleUp"))
	}
	w.set(t, "y", 0, 5, midsize(), nil)
	w.scans(t, 30)
	if got := w.replicas("x", "y"); !slices.Equal(got, []int32{2, 1}) {
		t.Errorf("x and y: %v", got)
	}
}

// A group of Pods that more important ones tear is not said to fit on Nodes that are theirs: it is told, and brings Nodes of a set that
// comes later (SPEC C9, W12).
func TestGroupThatGaveWayIsNoLongerCountedOn(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "x", 0, 2, midsize(), nil)
	gang(t, w, "g", 0, "1500m", "1500m")
	w.scans(t, 1)
	w.must(t, w.Put(ranked("high-0", "", 1000), ranked("high-1", "", 1000)))
	w.scans(t, 4)
	if r := asked(t, w, "{}"); r.Pods.Fit != 2 || w.told("NotTriggerScaleUp")["g-0"] == "" {
		t.Errorf("%+v, told %v", r.Pods, w.told("NotTriggerScaleUp"))
	}
	w.set(t, "y", 0, 5, midsize(), nil)
	w.scans(t, 30)
	if got := w.replicas("x", "y"); !slices.Equal(got, []int32{2, 1}) {
		t.Errorf("x and y: %v", got)
	}
}
