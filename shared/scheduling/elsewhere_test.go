// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

func honoring(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		spreadBy(key, 1)(p)
		p.Spec.TopologySpreadConstraints[0].NodeTaintsPolicy = new(corev1.NodeInclusionPolicyHonor)
	}
}

func ofAtLeast(domains int32, key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		spreadBy(key, 1)(p)
		p.Spec.TopologySpreadConstraints[0].MinDomains = &domains
	}
}

// An idle Node goes if its Pods have places once it is gone, as in the simulation of Cluster Autoscaler, in whichever domain that is: else
// the last Node of a zone, and every host of a spread, would stay for ever (SPEC C56).
func TestPodsLeaveTheirDomain(t *testing.T) {
	t.Parallel()
	host := corev1.LabelHostname
	for _, tt := range []struct {
		name  string
		rule  func(*corev1.Pod)
		each  []int // Pods by node, the first of which is to go
		zones string
		want  bool
	}{
		{"spread over hosts", spreadBy(host, 1), []int{1, 1, 1}, "aaa", true},
		{"spread over hosts that a taint takes out", honoring(host), []int{1, 1, 1}, "aaa", true},
		{"one host is empty", spreadBy(host, 1), []int{2, 1, 0}, "aaa", true},
		{"as many hosts as there must be", ofAtLeast(3, host), []int{1, 1, 1}, "aaa", false},
		{"its own company on its host", togetherBy(host), []int{2, 0}, "aa", true},
		{"devices, which are not planned for", func(p *corev1.Pod) {
			togetherBy(host)(p)
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		}, []int{1, 0}, "aa", false},
		{"its company is elsewhere too", togetherBy(host), []int{1, 1, 0}, "aaa", true},
		{"its own company in its zone", togetherBy(zoneKey), []int{2, 0}, "ab", true},
		{"spread over zones, another one is empty", spreadBy(zoneKey, 1), []int{1, 1, 0}, "abc", true},
		{"spread over zones, of which one goes", spreadBy(zoneKey, 1), []int{1, 1}, "ab", true},
		{"as many zones as there must be", ofAtLeast(2, zoneKey), []int{2, 1}, "ab", false},
		{"more of them in its zone than elsewhere", spreadBy(zoneKey, 1), []int{2, 1, 1, 0}, "abcc", true},
		{"alone in its zone, another one is empty", apartBy(zoneKey), []int{1, 0}, "ab", true},
		{"alone in its zone, no other one is empty", apartBy(zoneKey), []int{1, 1}, "ab", false},
		{"two of them, one zone is empty", apartBy(host), []int{1, 1}, "ab", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			nodes, order := []Node{}, []int{}
			for i, k := range tt.each {
				nodes = append(nodes, holding(aNode(string(rune('k'+i)), "4", "8Gi", inZone(tt.zones[i:i+1])), several(k, aPod("web", "100m", "1Mi", tt.rule))...))
				order = append(order, i)
			}
			m := NewWorld(nodes, nil, nil).NewMover(map[int][]*corev1.Pod{0: nodes[0].Pods}, append(order[1:], 0))
			if why := m.Clear(0, nodes[0].Pods); (why == "") != tt.want {
				t.Errorf("got %q, want that it may go: %v", why, tt.want)
			}
		})
	}
}

// Of Pods that matter to each other those of one Node at a time leave their domains; who stays in its own is not held up by others.
func TestPodsLeaveTheirDomainOneNodeAtATime(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first, second *corev1.Pod
		want          bool // the second one goes too
	}{
		"of one kind":                {aPod("web", "1", "1Gi", apartBy(zoneKey)), aPod("web", "1", "1Gi", apartBy(zoneKey)), false},
		"strangers":                  {aPod("web", "1", "1Gi", apartBy(zoneKey)), aPod("db", "1", "1Gi", apartBy(zoneKey)), true},
		"who keeps away from it":     {aPod("web", "1", "1Gi", apartBy(zoneKey)), aPod("db", "1", "1Gi", away(zoneKey, "web")), false},
		"whom it keeps away":         {aPod("web", "1", "1Gi", away(zoneKey, "db")), aPod("db", "1", "1Gi"), false},
		"whom it does not know":      {aPod("web", "1", "1Gi", apartBy(zoneKey)), aPod("db", "1", "1Gi"), true},
		"who keeps away from others": {aPod("web", "1", "1Gi", apartBy(zoneKey)), aPod("db", "1", "1Gi", away(zoneKey, "x")), true},
	} {
		nodes := []Node{holding(aNode("k", "1", "8Gi"), tt.first), holding(aNode("l", "1", "8Gi", inZone("b")), tt.second), aNode("m", "4", "8Gi", inZone("c")), aNode("n", "4", "8Gi", inZone("d"))}
		m := NewWorld(nodes, nil, nil).NewMover(map[int][]*corev1.Pod{0: nodes[0].Pods, 1: nodes[1].Pods}, []int{2, 3})
		if why := m.Clear(0, nodes[0].Pods); why != "" {
			t.Errorf("%s: the first one stays: %s", name, why)
		}
		if why := m.Clear(1, nodes[1].Pods); (why == "") != tt.want {
			t.Errorf("%s: got %q, want that the second one may go: %v", name, why, tt.want)
		}
	}
}

// Whatever Nodes go together, once they are gone the scheduler would put each of their Pods where it was planned for (SPEC C56, RELIABILITY 2d).
func TestSchedulerPutsWhoIsMovedWhereItWasPlanned(t *testing.T) {
	t.Parallel()
	more := rapid.SampledFrom([]func(*corev1.Pod){
		func(*corev1.Pod) {}, honoring(zoneKey), honoring(corev1.LabelHostname), ofAtLeast(2, zoneKey), ofAtLeast(2, corev1.LabelHostname),
		apartBy(zoneKey), togetherBy(zoneKey), togetherBy(corev1.LabelHostname), spreadBy(zoneKey, 1), spreadBy(corev1.LabelHostname, 1),
	})
	rapid.Check(t, func(t *rapid.T) {
		nodes, waiting, _ := situations(t)
		for i := range rapid.IntRange(0, 2).Draw(t, "more") {
			waiting = append(waiting, several(rapid.IntRange(1, 4).Draw(t, "pods"), aPod(fmt.Sprintf("more-%d", i), "500m", "1Gi", more.Draw(t, "rule")))...)
		}
		nodes, _ = NewWorld(nodes, waiting, nil).Place(waiting, nil).carriedOut()
		pods, order := map[int][]*corev1.Pod{}, make([]int, len(nodes))
		for n := range nodes {
			pods[n], order[n] = nodes[n].Pods, len(nodes)-1-n
		}
		m := NewWorld(nodes, nil, nil).NewMover(pods, order)
		gone := make([]bool, len(nodes))
		for n := range nodes {
			gone[n] = !m.Taken(n) && m.Clear(n, pods[n]) == ""
		}
		stay, moved := m.carriedOut(gone)
		bare := slices.Clone(stay)
		for i := range bare {
			bare[i].Pods = slices.DeleteFunc(slices.Clone(bare[i].Pods), func(p *corev1.Pod) bool { return slices.Contains(moved, p) })
		}
		w, left := NewWorld(bare, nil, nil), len(moved)
		for left > 0 {
			before := left
			for i := range stay {
				for _, p := range stay[i].Pods {
					if slices.Contains(moved, p) && w.Ask(p).Refused(i) == "" {
						w, moved = w.With(map[int][]*corev1.Pod{i: {p}}), slices.DeleteFunc(moved, func(x *corev1.Pod) bool { return x == p })
						left--
					}
				}
			}
			if left == before {
				t.Fatalf("%d pods have no place, among them %s", left, moved[0].Name)
			}
		}
	})
}
