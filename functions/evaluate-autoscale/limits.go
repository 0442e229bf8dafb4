// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// size is what a Node counts for in the limits of the cluster: by capacity, cores rounded up (SPEC C7, C30).
type size struct {
	nodes, cores, memory int64
	gpus                 map[string]int64 // by type
}

func (sc *scan) sizeOf(n *corev1.Node) size {
	cpu, memory := n.Status.Capacity[corev1.ResourceCPU], n.Status.Capacity[corev1.ResourceMemory]
	s := size{nodes: 1, cores: scheduling.Cores(cpu), memory: scheduling.Amount(corev1.ResourceMemory, memory)}
	g := sc.of[n.UID]
	t := n.Labels[scheduling.AcceleratorLabel]
	if t == "" && g != nil { // the Node is there before it carries what its set says
		t = g.gpus
	}
	if t == "" {
		return s
	}
	_, count := sc.gpus.In(n.Status.Capacity)
	if g != nil && count == 0 { // they are there before the driver that tells of them
		list, _ := scheduling.Capacity(g.set.Annotations)
		_, count = sc.gpus.In(list)
	}
	if count > 0 {
		s.gpus = map[string]int64{t: count}
	}
	return s
}

// plus returns the sum with times o; times may be negative. A sum beyond all numbers is as large as there is one.
func (s size) plus(o size, times int64) size {
	s.nodes = added(s.nodes, times, o.nodes)
	s.cores = added(s.cores, times, o.cores)
	s.memory = added(s.memory, times, o.memory)
	if len(o.gpus) > 0 {
		gpus := map[string]int64{}
		maps.Copy(gpus, s.gpus)
		for t, n := range o.gpus {
			gpus[t] = added(gpus[t], times, n)
		}
		s.gpus = gpus
	}
	return s
}

func added(n, times, each int64) int64 {
	const most = math.MaxInt64 / 2 // to which a Node more may be added
	if exact := float64(n) + float64(times)*float64(each); math.Abs(exact) >= most {
		return int64(math.Copysign(most, exact))
	}
	return n + times*each
}

// total is the size of the cluster: of all its Nodes, whoever made them, with those that are wanted and not there, by whomever: late
// or failed ones too, which may still come or be replaced (SPEC C7, S43, R-S4).
func (sc *scan) total() (sum size) {
	sum = sc.coming()
	for _, n := range sc.Nodes {
		sum = sum.plus(sc.sizeOf(n), 1)
	}
	for _, g := range sc.groups {
		one := size{nodes: 1}
		if g.known {
			one = sc.sizeOf(g.template.Node)
		}
		sum = sum.plus(one, int64(max(0, g.target-g.ready-g.unready-g.starting)))
	}
	return sum
}

// staying is the size of the Nodes that are not about to go: what scale-down may take from.
func (sc *scan) staying() (sum size) {
	for _, n := range sc.Nodes {
		if !sc.leaves(n) {
			sum = sum.plus(sc.sizeOf(n), 1)
		}
	}
	return sum
}

// against calls f for every limit that a Node of a size counts in: what a cluster has, what the Node adds, and the most there may be.
func (sc *scan) against(total, one size, f func(name string, have, each, most int64)) {
	limit := func(name string, have, each, most int64) {
		if each > 0 {
			f(name, have, each, most)
		}
	}
	limit("cpu", total.cores, one.cores, sc.settings.Cores.Max)
	limit("memory", total.memory, one.memory, sc.settings.Memory.Max)
	for _, g := range sc.settings.GPUs {
		limit(g.Type, total.gpus[g.Type], one.gpus[g.Type], int64(g.Max))
	}
	if most := sc.settings.MaxNodesTotal; most > 0 {
		limit(limitNodes, total.nodes, one.nodes, most)
	}
}

// limitNodes is the name of the limit of Nodes: of no resource.
const limitNodes = ""

// room returns how many Nodes of a size may be added to a cluster of a size. Where none may, it says whether the number
// of Nodes is what stands against it, and which resources do (SPEC C25, C30, C41).
func (sc *scan) room(total, one size) (count int64, nodes bool, resources []string) {
	count = math.MaxInt32
	sc.against(total, one, func(name string, have, each, most int64) {
		n := max(0, most-have) / each
		switch {
		case n < 1 && name == limitNodes:
			nodes = true
		case n < 1:
			resources = append(resources, name)
		}
		count = min(count, n)
	})
	slices.Sort(resources)
	return count, nodes, resources
}

// weight returns how much a Node of a size takes of what the tightest limit leaves, in billionths.
func (sc *scan) weight(total, one size) int64 {
	share := 0.0
	sc.against(total, one, func(_ string, have, each, most int64) {
		share = max(share, float64(each)/float64(max(1, most-have)))
	})
	return max(1, int64(1e9*share))
}

// spare reports whether the cluster stays within its minimums without a Node of a size (SPEC C41, C87).
func (sc *scan) spare(total, one size) bool {
	rest := total.plus(one, -1)
	short := slices.ContainsFunc(sc.settings.GPUs, func(g autoscaling.GPULimit) bool {
		return one.gpus[g.Type] > 0 && rest.gpus[g.Type] < int64(g.Min)
	})
	return rest.cores >= sc.settings.Cores.Min && rest.memory >= sc.settings.Memory.Min && !short
}

// underMinimum says which minimums a cluster would fall below without a Node of a size.
func (sc *scan) underMinimum(total, one size) string {
	rest := total.plus(one, -1)
	var parts []string
	under := func(name string, rest, least, unit int64, suffix string) {
		if rest < least {
			parts = append(parts, fmt.Sprintf("%s %d%s without it, minimum %d%s", name, rest/unit, suffix, least/unit, suffix))
		}
	}
	under("cpu", rest.cores, sc.settings.Cores.Min, 1, "")
	under("memory", rest.memory, sc.settings.Memory.Min, 1<<30, "Gi")
	for _, g := range sc.settings.GPUs {
		if one.gpus[g.Type] > 0 {
			under(g.Type, rest.gpus[g.Type], int64(g.Min), 1, "")
		}
	}
	return strings.Join(parts, ", ")
}

// full reports that there are as many ready Nodes as there may be: then nothing is tried (SPEC C35).
func (sc *scan) full() bool {
	return sc.settings.MaxNodesTotal > 0 && sc.readyNodes >= sc.settings.MaxNodesTotal
}

// overQuota says which limits one more Node would break, and by how much.
func (sc *scan) overQuota(total, one size) string {
	var parts []string
	over := func(name string, have, each, most int64, unit int64, suffix string) {
		if each > 0 && have+each > most {
			parts = append(parts, fmt.Sprintf("%s %d%s + %d%s of %d%s", name, have/unit, suffix, each/unit, suffix, most/unit, suffix))
		}
	}
	over("cpu", total.cores, one.cores, sc.settings.Cores.Max, 1, "")
	over("memory", total.memory, one.memory, sc.settings.Memory.Max, 1<<30, "Gi")
	for _, g := range sc.settings.GPUs {
		over(g.Type, total.gpus[g.Type], one.gpus[g.Type], int64(g.Max), 1, "")
	}
	return strings.Join(parts, ", ")
}

func quota(resources []string) string {
	return "exceeded quota: " + strconv.Quote("cluster-wide") + ", resources: " + strings.Join(resources, ", ")
}
