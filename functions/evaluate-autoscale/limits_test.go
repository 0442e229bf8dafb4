// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

func sized(cpu, memory string) size {
	n := &corev1.Node{}
	n.Status.Capacity = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	return (&scan{}).sizeOf(n)
}

// A kubelet that tells of absurd capacity, or several, make no room (RELIABILITY §4).
func TestAbsurdNodesMakeNoRoom(t *testing.T) {
	t.Parallel()
	sc := &scan{settings: autoscaling.Effective(autoscaling.ClusterAutoscalerSpec{ResourceLimits: &autoscaling.ResourceLimits{
		Cores: &autoscaling.Range{Max: 48}, Memory: &autoscaling.Range{Max: 156},
	}})}
	one := sized("4", "12Gi")
	for _, absurd := range []string{"9223372036854775", "9223372036854775807", "9e15", "92233720368547758.07k", "7Ei"} {
		for _, odd := range []size{sized(absurd, "0"), sized("0", absurd)} {
			for times := range int64(20_000) {
				if count, _, limits := sc.room(size{}.plus(one, 3).plus(odd, 1+times), one); count != 0 || len(limits) == 0 {
					t.Fatalf("%s, %d times: room for %d, in the way %q", absurd, 1+times, count, limits)
				}
			}
		}
	}
}

// A Pod that asks for more than can be counted asks for more than a Node has (RELIABILITY §4).
func TestAbsurdRequestsBringNoNode(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.pool(t, "pool", 0, 9, nil, nil)
	for i, absurd := range []string{"10e15", "9223372036854776", "9223372036854775807", "92233720368547758.07k"} {
		w.must(t, w.Put(pending(fmt.Sprint("cpu-", i), epoch.Add(-time.Minute), resources("cpu", absurd))))
		w.must(t, w.Put(pending(fmt.Sprint("memory-", i), epoch.Add(-time.Minute), resources("memory", absurd))))
	}
	w.pass(t, time.Minute)
	if n := w.replicas("pool")[0]; n != 0 {
		t.Errorf("%d replicas", n)
	}
}

// The arithmetic of the walk-through (SPEC C87, S35, S43, S83): six Nodes with 24 cores and 84 GiB, three of them
// masters. Four more bring 40 cores of 48, 132 GiB of 156, ten Nodes of twelve; one less would leave the 20 cores that
// have to stay, but 72 GiB of 80.
func TestArithmeticOfTheStory(t *testing.T) {
	t.Parallel()
	one := sized("4", "12Gi")
	six := size{}.plus(sized("4", "16Gi"), 3).plus(one, 3)
	if six.nodes != 6 || six.cores != 24 || six.memory != 84<<30 {
		t.Fatalf("six Nodes are %+v", six)
	}
	sc := &scan{settings: autoscaling.Effective(autoscaling.ClusterAutoscalerSpec{ResourceLimits: &autoscaling.ResourceLimits{
		MaxNodesTotal: new(int32(12)), Cores: &autoscaling.Range{Min: 20, Max: 48}, Memory: &autoscaling.Range{Min: 80, Max: 156},
	}})}
	ten := six.plus(one, 4)
	if ten.nodes != 10 || ten.cores != 40 || ten.memory != 132<<30 {
		t.Errorf("ten Nodes are %+v", ten)
	}
	for _, tt := range []struct {
		have size
		want int64
	}{{six, 6}, {ten, 2}, {ten.plus(one, 2), 0}} {
		if got, _, _ := sc.room(tt.have, one); got != tt.want {
			t.Errorf("room for %d more beside %d Nodes, want %d: reaching the limit is allowed", got, tt.have.nodes, tt.want)
		}
		if tt.want == 0 {
			_, nodes, resources := sc.room(tt.have, one)
			if !nodes || len(resources) != 2 {
				t.Errorf("full: nodes %v, resources %v", nodes, resources)
			}
		}
	}
	if sc.spare(six, one) {
		t.Error("the cluster can spare a Node of 12 GiB, although 72 of 80 GiB would be left")
	}
	if got, want := sc.underMinimum(six, one), "memory 72Gi without it, minimum 80Gi"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if !sc.spare(six.plus(one, 1), one) {
		t.Error("seven Nodes cannot spare one")
	}
	if odd := sized("3500m", "1Gi"); odd.cores != 4 {
		t.Errorf("3.5 cores count as %d", odd.cores)
	}
}

// A limit of GPUs goes by the label of their type, whoever made them and whatever their resource is called, and holds before
// their driver tells of them (SPEC C42, B88). A Pod that asks for none is given none.
func TestGPUsOfEveryVendorAreLimited(t *testing.T) {
	t.Parallel()
	for _, gpu := range []string{"nvidia.com/gpu", "amd.com/gpu", "habana.ai/gaudi", "example.com/npu"} {
		w := fresh(t, "{scaleDown: {enabled: true}, resourceLimits: {gpus: [{type: x1, min: 0, max: 3}]}}")
		own := map[string]string{machine.CapacityGPUCount: "1", machine.CapacityGPUType: gpu}
		w.pool(t, "a-gpu", 1, 9, own, map[string]string{scheduling.AcceleratorLabel: "x1"})
		w.pool(t, "b-plain", 0, 9, nil, nil)
		w.idler(t, "a-gpu", "starting")
		w.must(t, memory.Patch(w.Server, "", "starting", func(n *corev1.Node) {
			n.Labels[scheduling.AcceleratorLabel], n.Status.Conditions[0].Status = "x1", corev1.ConditionFalse
		}))
		w.must(t, w.Put(pod("default", "web", "", resources("cpu", "2"))))
		for i := range 5 {
			w.must(t, w.Put(pod("default", fmt.Sprint("train-", i), "", resources("cpu", "3", gpu, "1"))))
		}
		w.pass(t, 20*time.Second)
		if got := w.replicas("a-gpu", "b-plain"); got[0] != 3 || got[1] != 1 {
			t.Errorf("%s: of GPUs, of which there may be three, and of others: %v", gpu, got)
		}
	}
}

// A Node that registered a moment ago counts before its set's labels are carried over to it (SPEC C42).
func TestGPULimitHoldsBeforeTheNodeHasItsLabel(t *testing.T) {
	t.Parallel()
	for i, status := range []corev1.ConditionStatus{corev1.ConditionFalse, corev1.ConditionTrue, corev1.ConditionFalse, corev1.ConditionTrue} {
		w := fresh(t, "{resourceLimits: {gpus: [{type: x1, min: 0, max: 1}]}}")
		capacity, labels := map[string]string{machine.CapacityGPUCount: "1"}, map[string]string{scheduling.AcceleratorLabel: "x1"}
		if i >= 2 { // somebody else labels the Nodes: the set only says so
			capacity[machine.CapacityLabels], labels = "other=y,"+scheduling.AcceleratorLabel+"=x1", nil
		}
		w.pool(t, "gpu", 0, 9, capacity, labels)
		for i := range 2 {
			w.must(t, w.Put(pending(fmt.Sprint("train-", i), epoch.Add(-time.Minute), resources("cpu", "3", "nvidia.com/gpu", "1"))))
		}
		w.scans(t, 2)
		w.now = w.now.Add(time.Minute)
		w.member(t, "gpu", "g", w.now.Add(-2*time.Second), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		w.must(t, memory.Patch(w.Server, "", "g", func(n *corev1.Node) { n.Status.Conditions[0].Status = status }))
		w.scans(t, 2)
		if got := w.replicas("gpu")[0]; got != 1 {
			t.Errorf("%d, ready %s: of GPUs, of which there may be one: %d", i, status, got)
		}
	}
}

// Where cores or memory are limited, the Nodes that come are those that serve the most Pods for what they take of it, not those that
// serve the most each (SPEC C30).
func TestLimitedResourcesServeTheMostPods(t *testing.T) {
	t.Parallel()
	for _, limits := range []string{"maxNodesTotal: 9, cores: {min: 0, max: 8}", "memory: {min: 0, max: 32}"} {
		w := fresh(t, "{resourceLimits: {"+limits+"}}")
		w.set(t, "large", 0, 9, map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi"}, map[string]string{"pool": "large"})
		w.set(t, "small", 0, 9, midsize(), map[string]string{"pool": "small"})
		for i := range 3 {
			w.must(t, w.Put(ranked(fmt.Sprint("l-", i), "large", 0, "2500m")))
		}
		for i := range 4 {
			w.must(t, w.Put(ranked(fmt.Sprint("s-", i), "small", 0, "1800m")))
		}
		w.scans(t, 1)
		if got := w.replicas("large", "small"); got[0] != 0 || got[1] != 2 {
			t.Errorf("%s: Nodes of three and of twice two Pods: %v", limits, got)
		}
	}
}

// Nodes of which there are more than wanted count as long as they are there (SPEC C30).
func TestSurplusCountsInTheLimits(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{resourceLimits: {cores: {min: 0, max: 12}}}")
	w.set(t, "s", 1, 4, midsize(), nil)
	for _, name := range []string{"a", "b", "c"} {
		w.member(t, "s", name, epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		w.must(t, w.Put(running("on-"+name, name, resources("cpu", "3"))))
	}
	w.set(t, "more", 0, 4, midsize(), nil)
	w.must(t, w.Put(pending("p", epoch.Add(-time.Minute), resources("cpu", "3"))))
	w.scans(t, 2)
	if got := w.replicas("more")[0]; got != 0 {
		t.Errorf("%d Nodes of four cores beside twelve of twelve", got)
	}
}
