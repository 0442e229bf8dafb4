// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// A set of lower priority is used for what none of higher priority takes, also where a limit leaves too few Nodes: only Nodes of one
// priority are exchanged for those that take less of it. An important Pod that those of higher priority cannot hold has its Node all
// the same (SPEC B113, C9, C30).
func TestLimitsKeepThePriorityOfSets(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		expanders, limit string
		important        bool // a Pod that only the dear set's Nodes hold
		want             []int32
	}{
		{"Priority", "maxNodesTotal: 4", false, []int32{4, 0, 0}},
		{"Priority", "cores: {min: 0, max: 16}", false, []int32{4, 0, 0}},
		{"Priority, Price", "maxNodesTotal: 4", false, []int32{4, 0, 0}},
		{"Priority, Random", "maxNodesTotal: 4", false, []int32{4, 0, 0}},
		{"Priority", "maxNodesTotal: 4", true, []int32{3, 1, 0}},
		{"Priority", "maxNodesTotal: 7", false, []int32{6, 1, 0}}, // no more of the first set
		{"Price, Priority", "maxNodesTotal: 4", false, []int32{0, 3, 0}},
	} {
		w := fresh(t, fmt.Sprintf("{expanders: [%s], resourceLimits: {%s}}", tt.expanders, tt.limit))
		w.set(t, "reserved", 0, 6, midsize(machine.AnnotationPrice, "1"), nil)
		large := map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi", machine.AnnotationPrice: "5"}
		w.set(t, "dear", 0, 99, large, nil)
		w.set(t, "last", 0, 99, large, nil)
		prioritize(t, w, "{100: [reserved], 10: [dear], 1: [last]}")
		for i := range 9 {
			w.must(t, w.Put(ranked(fmt.Sprint("p-", i), "", 0, "2500m")))
		}
		if tt.important {
			w.must(t, w.Put(ranked("important", "", 5, "7")))
		}
		w.scans(t, 1)
		if got := w.replicas("reserved", "dear", "last"); !slices.Equal(got, tt.want) {
			t.Errorf("%s, %s, an important Pod: %v: reserved, dear, last: %v, want %v", tt.expanders, tt.limit, tt.important, got, tt.want)
		}
	}
}

// Whatever the limits, the sets and the priorities of Pods that all Nodes take: without the Nodes of the lowest priority of sets that is
// used there is no room for any of a higher one (SPEC B113). WORLDS=n tries n worlds.
func TestNoSetIsUsedBeforeOneOfHigherPriority(t *testing.T) {
	t.Parallel()
	worlds := uint64(150)
	if n, err := strconv.ParseUint(os.Getenv("WORLDS"), 10, 64); err == nil {
		worlds = n
	}
	used := 0
	for seed := range worlds {
		r := rand.New(rand.NewPCG(seed, 1))
		limits := []string{
			fmt.Sprintf("maxNodesTotal: %d", 1+r.IntN(8)),
			fmt.Sprintf("cores: {min: 0, max: %d}", 4+r.IntN(40)),
			fmt.Sprintf("maxNodesTotal: %d, cores: {min: 0, max: %d}", 2+r.IntN(7), 4+r.IntN(40)),
		}[r.IntN(3)]
		w := fresh(t, fmt.Sprintf("{expanders: [%s], balanceSimilarNodeGroups: %t, resourceLimits: {%s}}",
			[]string{"Priority, Price", "Priority", "Priority, Random"}[r.IntN(3)], r.IntN(2) == 0, limits))
		var names []string
		for i := range 2 + r.IntN(4) {
			cpu := []int{4, 8, 16}[r.IntN(3)]
			own := map[string]string{machine.CapacityCPU: fmt.Sprint(cpu), machine.CapacityMemory: fmt.Sprintf("%dGi", cpu*4), machine.AnnotationPrice: fmt.Sprintf("0.%d", 1+r.IntN(9))}
			w.set(t, fmt.Sprint("s", i), 0, int32(1+r.IntN(6)), own, nil)
			names = append(names, fmt.Sprint("s", i))
		}
		r.Shuffle(len(names), func(i, k int) { names[i], names[k] = names[k], names[i] })
		second := 1 + r.IntN(len(names))
		prioritize(t, w, fmt.Sprintf("{2: [%s], 1: [%s]}", names[0], strings.Join(names[1:second], ", ")))
		rank := map[string]int{}
		for i, name := range names {
			rank[name] = truth(i >= 1) + truth(i >= second)
		}
		w.once(t) // writes the bounds of the sets
		kinds := 1 + r.IntN(3)
		var pods []*corev1.Pod
		for i := range 3 + r.IntN(20) {
			pods = append(pods, ranked(fmt.Sprint("p-", i), "", int32(r.IntN(kinds)), "2500m"))
		}
		sc := w.decided(t, pods)
		lowest := 0
		for _, o := range sc.options {
			if o.more > 0 {
				lowest = max(lowest, rank[o.set.Name])
			}
		}
		rest := sc.planned
		for _, o := range sc.options {
			if rank[o.set.Name] == lowest {
				rest = rest.plus(sc.sizeOf(o.template.Node), -int64(o.more))
			}
		}
		used += truth(lowest > 0)
		for _, o := range sc.options {
			if count, _, _ := sc.room(rest, sc.sizeOf(o.template.Node)); rank[o.set.Name] < lowest && o.target < o.max && count > 0 {
				t.Errorf("seed %d, %s: %s could have more, before %d Nodes of the lowest", seed, limits, o.id, sc.planned.nodes-rest.nodes)
			}
		}
	}
	if used == 0 {
		t.Error("no world uses a lower priority")
	}
}

func prioritize(t testing.TB, w *world, priorities string) {
	t.Helper()
	w.yaml(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: cluster-autoscaler-priority-expander, namespace: openshift-machine-api}, data: {priorities: "`+priorities+`"}}`)
}

// Two sets whose Nodes are alike but for the price; people prefer the one that is paid for. There may be two more Nodes, and these are of
// that one, though the Pods that wait are not all as important (SPEC B113).
func TestLimitKeepsThePriorityOfSetsForPodsOfManyPriorities(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ important, lesser int }{{1, 4}, {1, 5}, {2, 4}, {1, 9}} {
		for _, limit := range []string{"maxNodesTotal: 2", "cores: {min: 0, max: 16}"} {
			w := fresh(t, "{expanders: [Priority], resourceLimits: {"+limit+"}}")
			node := func(price string) map[string]string {
				return map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi", machine.AnnotationPrice: price}
			}
			w.set(t, "reserved", 0, 2, node("1"), nil)
			w.set(t, "dear", 0, 99, node("5"), nil)
			prioritize(t, w, "{100: [reserved], 10: [dear]}")
			for i := range tt.lesser {
				w.must(t, w.Put(ranked(fmt.Sprint("p-", i), "", 0, "3500m")))
			}
			for i := range tt.important {
				w.must(t, w.Put(ranked(fmt.Sprint("important-", i), "", 5, "2500m")))
			}
			w.scans(t, 1)
			if got := w.replicas("reserved", "dear"); !slices.Equal(got, []int32{2, 0}) {
				t.Errorf("%s, %d important, %d lesser Pods: reserved, dear: %v, want [2 0]", limit, tt.important, tt.lesser, got)
			}
		}
	}
}

// So it is with many Pods.
func TestLimitKeepsThePriorityOfSetsForManyPods(t *testing.T) {
	t.Parallel()
	for _, rank := range []int32{0, 5} {
		for _, important := range []int{5, 20} {
			w := fresh(t, "{expanders: [Priority], resourceLimits: {maxNodesTotal: 20}}")
			node := map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi"}
			w.set(t, "reserved", 0, 20, node, nil)
			w.set(t, "dear", 0, 99, node, nil)
			prioritize(t, w, "{100: [reserved], 10: [dear]}")
			for i := range 60 {
				w.must(t, w.Put(ranked(fmt.Sprint("p-", i), "", 0, "3500m")))
			}
			for i := range important {
				w.must(t, w.Put(ranked(fmt.Sprint("important-", i), "", rank, "2500m")))
			}
			w.scans(t, 1)
			if got := w.replicas("reserved", "dear"); !slices.Equal(got, []int32{20, 0}) {
				t.Errorf("%d Pods of priority %d: reserved, dear: %v, want [20 0]", important, rank, got)
			}
		}
	}
}

// A Pod that only a set of low priority takes has its Node, and the others are of the sets of higher priority all the same: one Node that
// cannot be exchanged keeps no other from it.
func TestLimitKeepsThePriorityOfSetsBesideANodeThatMustBe(t *testing.T) {
	t.Parallel()
	for _, must := range []string{"gpu", "dear"} {
		for _, important := range []int{1, 2, 3, 5, 8, 12, 20} {
			w := fresh(t, "{expanders: [Priority], resourceLimits: {maxNodesTotal: 20}}")
			node := map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi"}
			equipped := map[string]string{machine.CapacityCPU: "8", machine.CapacityMemory: "32Gi", machine.CapacityGPUCount: "1", machine.CapacityGPUType: "nvidia.com/gpu"}
			w.set(t, "reserved", 0, 20, node, nil)
			for _, name := range []string{"dear", "gpu"} {
				w.set(t, name, 0, 9, map[bool]map[string]string{false: node, true: equipped}[name == must], nil)
			}
			prioritize(t, w, "{100: [reserved], 10: [dear], 1: [gpu]}")
			for i := range 60 {
				w.must(t, w.Put(ranked(fmt.Sprint("p-", i), "", 0, "3500m")))
			}
			for i := range important {
				w.must(t, w.Put(ranked(fmt.Sprint("important-", i), "", 5, "2500m")))
			}
			p := ranked("train", "", 5, "7")
			p.Spec.Containers[0].Resources.Requests["nvidia.com/gpu"] = resources("nvidia.com/gpu", "1")["nvidia.com/gpu"]
			w.must(t, w.Put(p))
			w.scans(t, 1)
			want := []int32{19, int32(truth(must == "dear")), int32(truth(must == "gpu"))}
			if got := w.replicas("reserved", "dear", "gpu"); !slices.Equal(got, want) {
				t.Errorf("GPUs of %s, %d important Pods: reserved, dear, gpu: %v, want %v", must, important, got, want)
			}
		}
	}
}

// Where the set of the highest priority has Nodes too small for the Pods, the one below it comes before the lowest.
func TestLimitKeepsThePriorityOfSetsBelowOneThatIsTooSmall(t *testing.T) {
	t.Parallel()
	for _, priorities := range []string{"{100: [small], 50: [reserved], 10: [dear]}", "{50: [reserved], 10: [dear], 1: [small]}"} {
		for _, important := range []int{1, 2, 3, 5, 8, 12, 20} {
			w := fresh(t, "{expanders: [Priority], resourceLimits: {maxNodesTotal: 20}}")
			for name, cpu := range map[string]string{"small": "2", "reserved": "8", "dear": "8"} {
				w.set(t, name, 0, 20, map[string]string{machine.CapacityCPU: cpu, machine.CapacityMemory: "32Gi"}, nil)
			}
			prioritize(t, w, priorities)
			for i := range 60 {
				w.must(t, w.Put(ranked(fmt.Sprint("p-", i), "", 0, "3500m")))
			}
			for i := range important {
				w.must(t, w.Put(ranked(fmt.Sprint("important-", i), "", 5, "2500m")))
			}
			w.scans(t, 1)
			if got := w.replicas("small", "reserved", "dear"); !slices.Equal(got, []int32{0, 20, 0}) {
				t.Errorf("%s, %d important Pods: small, reserved, dear: %v, want [0 20 0]", priorities, important, got)
			}
		}
	}
}
