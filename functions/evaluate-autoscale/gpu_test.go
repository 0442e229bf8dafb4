// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// A GPU Node is ready minutes before its driver is: the Pod that it came for waits for it, and brings no other one, nor
// does the next Pod find that a new Node of the set has no GPU (SPEC B67, C14, C17, W3).
func TestGPUNodeIsAwaitedUntilItsDriverIsUp(t *testing.T) {
	t.Parallel()
	label := map[string]string{scheduling.AcceleratorLabel: "t4"}
	for name, labels := range map[string]map[string]string{"by its label": label, "by its set": nil} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.set(t, "gpu", 0, 8, map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi", machine.CapacityGPUCount: "1"}, labels)
		ask := resources("cpu", "1", "nvidia.com/gpu", "1")
		w.must(t, w.Put(pending("train-0", epoch.Add(-time.Minute), ask)))
		w.scans(t, 18)
		w.member(t, "gpu", "gpu-0", w.now, resources("cpu", "8", "memory", "32Gi", "pods", "110"), labels)
		w.scans(t, 30) // five minutes without the device plugin
		if got := w.replicas("gpu"); got[0] != 1 {
			t.Errorf("%s: one Pod with one GPU: %d Nodes", name, got)
		}
		w.must(t, w.Put(pending("train-1", w.now.Add(-time.Minute), ask)))
		w.scans(t, 2)
		if got := w.replicas("gpu"); got[0] != 2 {
			t.Errorf("%s: two Pods with one GPU each: %d Nodes", name, got)
		}
		w.must(t, memory.Patch(w.Server, "", "gpu-0", func(n *corev1.Node) {
			n.Status.Allocatable = resources("cpu", "8", "memory", "32Gi", "pods", "110", "nvidia.com/gpu", "1")
			n.Status.Capacity = n.Status.Allocatable
		}))
		w.scans(t, 6)
		if got := w.replicas("gpu"); got[0] != 2 {
			t.Errorf("%s: once the driver is up: %d Nodes", name, got)
		}
	}
}

// Nodes that come one by one while drivers take long are as many as there are Pods (SPEC B67).
func TestGPUNodesComeOnceForEachPod(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "gpu", 0, 40, map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi", machine.CapacityGPUCount: "1"}, nil)
	for i := range 4 {
		w.must(t, w.Put(pending(fmt.Sprint("train-", i), epoch.Add(-time.Minute), resources("cpu", "1", "nvidia.com/gpu", "1"))))
	}
	for born := range 4 {
		w.scans(t, 9)
		w.member(t, "gpu", fmt.Sprint("gpu-", born), w.now, resources("cpu", "8", "memory", "32Gi", "pods", "110"), nil)
	}
	w.scans(t, 12)
	if got := w.replicas("gpu"); got[0] != 4 {
		t.Errorf("four Pods with a GPU each: %d Nodes", got)
	}
}

// Who asks for the GPUs of one maker gets a Node of the set at zero whose cloud says that it has them, and of no other (SPEC B88, C15, E4).
func TestGPUsOfTheMakerThatIsAskedFor(t *testing.T) {
	t.Parallel()
	for ask, want := range map[string]string{"amd.com/gpu": "g4ad", "habana.ai/gaudi": "dl1", "nvidia.com/gpu": "p3", "google.com/tpu": ""} {
		w := fresh(t, "{}")
		for set, a := range map[string]map[string]string{"dl1": {machine.AnnotationGPUType: "habana.ai/gaudi"}, "g4ad": {machine.AnnotationGPUType: "amd.com/gpu"}, "p3": {}} {
			a[machine.AnnotationVCPU], a[machine.AnnotationMemoryMb], a[machine.AnnotationGPU] = "8", "32768", "1"
			w.set(t, set, 0, 4, a, nil)
		}
		w.must(t, w.Put(pending("train", epoch.Add(-time.Minute), resources("cpu", "1", ask, "1"))))
		w.scans(t, 2)
		for i, set := range []string{"dl1", "g4ad", "p3"} {
			if got := w.replicas("dl1", "g4ad", "p3")[i]; got != map[bool]int32{true: 1}[set == want] {
				t.Errorf("a Pod asks for %s: %d Nodes of %s", ask, got, set)
			}
		}
	}
}
