// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Less important Pods that wait as well never cost a more important one its place, whatever the limits of the cluster and of its sets
// (SPEC C9, C30). WORLDS=n tries n worlds.
func TestLesserPodsCostNobodyAPlace(t *testing.T) {
	t.Parallel()
	worlds := uint64(300)
	if n, err := strconv.ParseUint(os.Getenv("WORLDS"), 10, 64); err == nil {
		worlds = n
	}
	for seed := range worlds {
		w, pods := tight(t, rand.New(rand.NewPCG(seed, 0)))
		all := w.leftOf(t, pods, 0)
		for rank := int32(1); rank < 4; rank++ {
			if alone, beside := w.leftOf(t, pods, rank), from(all, rank); fewer(alone, beside) {
				t.Errorf("seed %d: of priority %d and above %v are left over beside lesser Pods, %v without them", seed, rank, beside, alone)
			}
		}
	}
}

// leftOf counts, by priority, the Pods of at least a priority that are left over where no others wait.
func (w *world) leftOf(t *testing.T, pods []*corev1.Pod, least int32) map[int32]int {
	t.Helper()
	pods, _ = divided(pods, func(p *corev1.Pod) bool { return *p.Spec.Priority >= least })
	return w.decided(t, pods).leftOver()
}

// decided is a scan that has decided, with these Pods and nothing written.
func (w *world) decided(t *testing.T, pods []*corev1.Pod) *scan {
	t.Helper()
	s := snapshot.Snapshot{Now: w.now}
	for _, all := range [][]plan.Object{
		objects[*autoscaling.ClusterAutoscaler](w), objects[*autoscaling.MachineAutoscaler](w), objects[*machine.MachineSet](w), objects[*machine.Machine](w), objects[*corev1.Node](w), objects[*corev1.ConfigMap](w),
	} {
		s.Add(all...)
	}
	for _, p := range pods {
		s.Add(p)
	}
	sc, err := newScan(s, clusterAutoscaler(s))
	w.must(t, err)
	sc.decide()
	return sc
}

func objects[T plan.Object](w *world) (all []plan.Object) {
	for _, o := range memory.List[T](w.Server) {
		all = append(all, o)
	}
	return all
}

// tight is a cluster of a few sets and limits that leave few Nodes, with Pods of up to four priorities that wait.
func tight(t *testing.T, r *rand.Rand) (*world, []*corev1.Pod) {
	t.Helper()
	limits := []string{
		fmt.Sprintf("maxNodesTotal: %d", 1+r.IntN(6)),
		fmt.Sprintf("cores: {min: 0, max: %d}", 2+r.IntN(24)),
		fmt.Sprintf("memory: {min: 0, max: %d}", 8+r.IntN(90)),
		fmt.Sprintf("maxNodesTotal: %d, cores: {min: 0, max: %d}", 2+r.IntN(5), 4+r.IntN(24)),
		fmt.Sprintf("cores: {min: 0, max: %d}, memory: {min: 0, max: %d}", 4+r.IntN(24), 8+r.IntN(90)),
		"",
	}[r.IntN(6)]
	w := fresh(t, fmt.Sprintf("{expanders: [%s], balanceSimilarNodeGroups: %t, resourceLimits: {%s}}", []autoscaling.Expander{autoscaling.Price, autoscaling.LeastWaste}[r.IntN(2)], r.IntN(2) == 0, limits))
	pools := []string{"a", "b"}
	for i := range 1 + r.IntN(4) {
		cpu := []int{2, 4, 8, 16}[r.IntN(4)]
		own := map[string]string{
			machine.CapacityCPU: fmt.Sprint(cpu), machine.CapacityMemory: fmt.Sprintf("%dGi", cpu*[]int{2, 4, 8}[r.IntN(3)]), machine.AnnotationPrice: fmt.Sprintf("0.%d", 1+r.IntN(9)),
		}
		w.set(t, fmt.Sprint("s", i), 0, int32(1+r.IntN(6)), own, map[string]string{"pool": pools[r.IntN(2)]})
	}
	if r.IntN(3) == 0 {
		w.member(t, "s0", "here", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), map[string]string{"pool": pools[r.IntN(2)]})
	}
	w.once(t) // writes the bounds of the sets
	var pods []*corev1.Pod
	for shape := range 2 + r.IntN(5) {
		priority, size := int32(r.IntN(2+r.IntN(3))), resources("cpu", fmt.Sprintf("%dm", 300+100*r.IntN(60)), "memory", fmt.Sprintf("%dMi", 256*(1+r.IntN(40))))
		pool := append(slices.Clone(pools), "", "", "")[r.IntN(5)]
		for i := range 1 + r.IntN(6) {
			p := pending(fmt.Sprintf("p-%d-%d", shape, i), epoch.Add(-time.Minute), size)
			if p.Spec.Priority = &priority; pool != "" {
				p.Spec.NodeSelector = map[string]string{"pool": pool}
			}
			pods = append(pods, p)
		}
	}
	return w, pods
}
