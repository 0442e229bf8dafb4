// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// crowd is Pods that wait where limits leave room for a part of them only.
type crowd struct {
	pods, shapes, groups int // groups of Pods; none: every Pod stands for itself
	sets, priorities     int
	most                 int    // Machines of each set
	limits               string // of the cluster
	preferred            bool   // people prefer some sets
	small                bool   // the Nodes of those that they prefer most are small
	going                int    // empty Nodes of one more set that are about to go
}

// seen is what the function reads of a crowd that chance makes.
func (c crowd) seen(t testing.TB, seed uint64) snapshot.Snapshot {
	t.Helper()
	expanders := "Price"
	if c.preferred {
		expanders = "Priority, Price"
	}
	w, r := fresh(t, "{expanders: ["+expanders+"], balanceSimilarNodeGroups: true"+c.limits+"}"), rand.New(rand.NewPCG(seed, 1))
	if c.preferred {
		prioritize(t, w, "{100: ['s-0[0-3]'], 50: ['s-0[4-7]'], 10: ['.*']}")
	}
	for i := range c.sets {
		cores := []int{4, 8, 16, 32}[r.IntN(4)]
		if c.small && i < 4 {
			cores = 2
		}
		memory := cores * []int{2, 4, 8}[r.IntN(3)]
		price := float64(cores)*0.04 + float64(memory)*0.005*(0.8+0.4*r.Float64())
		w.set(t, fmt.Sprintf("s-%02d", i), 0, int32(c.most), map[string]string{machine.CapacityCPU: fmt.Sprint(cores), machine.CapacityMemory: fmt.Sprintf("%dGi", memory),
			machine.AnnotationPrice: fmt.Sprintf("%.4f", price)}, map[string]string{corev1.LabelTopologyZone: string(rune('a' + i%3))})
	}
	w.scans(t, 1) // which writes the bounds
	if c.going > 0 {
		w.pool(t, "idle", int32(c.going), int32(c.going), nil, nil)
		state := autoscaling.State{}
		for i := range c.going {
			state.Removals = append(state.Removals, w.going(t, "idle", fmt.Sprintf("idle-%02d", i)))
		}
		w.remember(t, state)
	}
	type shape struct {
		requests corev1.ResourceList
		zone     string
	}
	var shapes []shape
	for range c.shapes {
		x := shape{requests: resources("cpu", fmt.Sprintf("%dm", 100+50*r.IntN(70)), "memory", fmt.Sprintf("%dMi", 128*(1+r.IntN(60))))}
		if r.IntN(5) == 0 {
			x.zone = string(rune('a' + r.IntN(3)))
		}
		shapes = append(shapes, x)
	}
	ranks := make([]int32, max(1, c.groups))
	for g := range ranks {
		ranks[g] = int32(r.IntN(c.priorities)) * 100
	}
	for i := range c.pods {
		k := i % c.shapes
		rank := int32(k%c.priorities) * 100
		p := pending(fmt.Sprintf("p-%05d", i), epoch.Add(-time.Minute), nil)
		if c.groups > 0 {
			g := i % c.groups
			k, rank = (g*7+i/c.groups%3)%c.shapes, ranks[g]
			p.Annotations = map[string]string{groupAnnotation: fmt.Sprintf("g-%04d", g), sizeAnnotation: fmt.Sprint(c.pods / c.groups)}
		}
		p.Spec.Containers[0].Resources.Requests, p.Spec.Priority = shapes[k].requests, &rank
		if z := shapes[k].zone; z != "" {
			p.Spec.NodeSelector = map[string]string{corev1.LabelTopologyZone: z}
		}
		w.must(t, w.Put(p))
	}
	return w.reads(t)
}

// reads is what a scan reads.
func (w *world) reads(t testing.TB) (s snapshot.Snapshot) {
	t.Helper()
	for rest := s.Missing(Function.Reads(s)); !rest.Empty(); rest = s.Missing(Function.Reads(s)) {
		var err error
		s, err = w.As(Function.Name).Observe(t.Context(), s, rest.Objects)
		w.must(t, err)
	}
	return s
}

// decided is the scan that decides about a crowd.
func (c crowd) decided(t testing.TB, seed uint64) *scan {
	t.Helper()
	s := c.seen(t, seed)
	sc, err := newScan(s, clusterAutoscaler(s))
	if err != nil {
		t.Fatal(err)
	}
	sc.decide()
	return sc
}

// Where many groups are torn apart, nearly all that the limits have room for are put back: many with one try.
func TestManyGroupsArePutBack(t *testing.T) {
	t.Parallel()
	sc := crowd{pods: 1500, shapes: 5, groups: 300, sets: 4, priorities: 1, most: 25}.decided(t, 1)
	groups := map[string]bool{}
	for i, shape := range sc.placement.Shapes {
		for _, p := range shape.Pods[:sc.placement.Fit[i]+sc.helped[i]] {
			groups[podGroupOf(p)] = true
		}
	}
	if len(groups) < 100 {
		t.Errorf("Nodes for %d groups of 300", len(groups))
	}
}

// However many groups wait, of however many priorities and kinds, and however often they are planned for, the work of a scan is
// bounded: that of the tries by mostWork, that of the plans before and after them by parts of it, besides what was begun. The second crowd
// is the worst of 24 that chance made.
func TestWorkForManyGroupsIsBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		crowd
		seed uint64
		most int
	}{
		{crowd{pods: 1500, shapes: 300, groups: 250, sets: 20, priorities: 100, most: 2}, 1, 2 * mostWork},
		{crowd{pods: 2714, shapes: 159, groups: 166, sets: 9, priorities: 9, most: 37, limits: ", resourceLimits: {maxNodesTotal: 46}", preferred: true}, 23, 3 * mostWork},
		{crowd{pods: 5000, shapes: 400, groups: 250, sets: 20, priorities: 400, most: 7, going: 10}, 1, 2 * mostWork},
	} {
		if sc := tt.decided(t, tt.seed); sc.work > tt.most {
			t.Errorf("%d groups: %d steps", tt.groups, sc.work)
		}
	}
}

// Nodes are not exchanged at the cost of trying to put groups back: where those that people prefer most are too small, important groups
// were left over.
func TestPreferredSetsCostNoGroupItsPlace(t *testing.T) {
	t.Parallel()
	c := crowd{pods: 1110, shapes: 111, groups: 34, sets: 17, priorities: 19, most: 3, limits: ", resourceLimits: {maxNodesTotal: 17}", preferred: true, small: true}
	sc := c.decided(t, 25)
	over := sc.leftOver()
	for _, x := range sc.broken {
		for _, p := range x.pods {
			over[*p.Spec.Priority]++
		}
	}
	if over[1200] > 33 {
		t.Errorf("of priority 1200 %d Pods are left over, want at most 33", over[1200])
	}
}

// What a scan costs where the limits leave room for a part of the Pods that wait.
func BenchmarkCrowd(b *testing.B) {
	for _, x := range []struct {
		name string
		crowd
	}{
		{"shapes", crowd{pods: 5000, shapes: 400, sets: 12, priorities: 5, most: 500, limits: ", resourceLimits: {maxNodesTotal: 80}"}},
		{"groups", crowd{pods: 5000, shapes: 400, groups: 250, sets: 20, priorities: 400, most: 7}},
		{"few-shapes-of-groups", crowd{pods: 2000, shapes: 30, groups: 100, sets: 8, priorities: 1, most: 10}},
		{"many-small-groups", crowd{pods: 5000, shapes: 40, groups: 500, sets: 12, priorities: 3, most: 20}},
	} {
		b.Run(x.name, func(b *testing.B) {
			s := x.seen(b, 1)
			b.ReportAllocs()
			for b.Loop() {
				Function.Decide(s)
			}
		})
	}
}
