// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

// A Pod that keeps others of its kind out of its zone may move, within it or to another one: its own rule goes with it. What another Pod holds
// against it does not (SPEC C56).
func TestOwnRuleDoesNotHoldAPod(t *testing.T) {
	t.Parallel()
	alone := aPod("etcd", "1", "1Gi", apartBy(zoneKey))
	against := aPod("other", "1", "1Gi", apartBy(zoneKey))
	against.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels = alone.Labels
	for name, tt := range map[string]struct {
		beside []*corev1.Pod
		zone   string
		want   string
	}{
		"to another Node of its zone":       {nil, "a", ""},
		"to another zone":                   {nil, "b", ""},
		"where somebody is apart from it":   {[]*corev1.Pod{against}, "b", ReasonNoPlace + "default/etcd"},
		"where somebody does not want it":   {[]*corev1.Pod{against}, "a", ReasonNoPlace + "default/etcd"},
		"beside somebody who does not care": {[]*corev1.Pod{aPod("web", "1", "1Gi")}, "a", ""},
	} {
		nodes := []Node{holding(aNode("from", "4", "8Gi"), alone), holding(aNode("to", "4", "8Gi", inZone(tt.zone)), tt.beside...)}
		m := NewWorld(nodes, nil, nil).NewMover(map[int][]*corev1.Pod{0: nodes[0].Pods}, []int{1, 0})
		if got := m.Clear(0, nodes[0].Pods); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}

// Where every Node has a label of its own, as drivers of local volumes give it one, Pods with rules that name other labels are still the
// same to a Mover: it compares each kind with each, and of fifty thousand kinds it would not come to an end.
func TestLabelOfEachNodeMakesNoKindsOfPods(t *testing.T) {
	t.Parallel()
	kinds := func(key string, more ...func(*corev1.Pod)) int {
		pods, nodes := map[int][]*corev1.Pod{}, make([]Node, 30)
		for i := range nodes {
			pods[i] = []*corev1.Pod{aPod(fmt.Sprintf("web-%02d", i), "1", "1Gi", slices.Concat([]func(*corev1.Pod){ofApp("web")}, more)...)}
			nodes[i] = holding(aNode(fmt.Sprintf("n%02d", i), "4", "8Gi", inZone([]string{"a", "b", "c"}[i%3])), pods[i]...)
			nodes[i].Labels[key] = nodes[i].Name
		}
		return len(NewWorld(nodes, nil, nil).NewMover(pods, nil).items)
	}
	const own = "topology.topolvm.io/node"
	byOwn := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
			NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: own, Operator: corev1.NodeSelectorOpExists}}}},
		}}}
	}
	for name, tt := range map[string]struct {
		rules []func(*corev1.Pod)
		want  int
	}{
		"spread over zones":        {[]func(*corev1.Pod){spreadBy(zoneKey, 1)}, 3},
		"apart in zones":           {[]func(*corev1.Pod){apartBy(zoneKey)}, 3},
		"together in zones":        {[]func(*corev1.Pod){togetherBy(zoneKey)}, 3},
		"the rule names the label": {[]func(*corev1.Pod){spreadBy(own, 1)}, 30},
		"so does the affinity":     {[]func(*corev1.Pod){byOwn, spreadBy(zoneKey, 1)}, 30},
		"so does the selector":     {[]func(*corev1.Pod){func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{own: "n00"} }, spreadBy(zoneKey, 1)}, 30},
	} {
		if got := kinds(own, tt.rules...); got != tt.want {
			t.Errorf("%s: %d kinds of pods, want %d", name, got, tt.want)
		}
	}
}

// A Pod may be where the scheduler would not put it now, because others have gone since it came: it would not be let back into its
// zone if it were evicted, and is not moved where no other one has room (SPEC C56, RELIABILITY 2d).
func TestPodThatWouldNotComeBackIsNotMoved(t *testing.T) {
	t.Parallel()
	near := aPod("front", "1", "1Gi", togetherBy(zoneKey))
	near.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector = self(aPod("back", "1", "1Gi"))
	back, even, alone, together := aPod("back", "1", "1Gi"), aPod("web", "1", "1Gi", spreadBy(zoneKey, 1)), aPod("db", "1", "1Gi", apartBy(zoneKey)), aPod("pair", "1", "1Gi", togetherBy(zoneKey))
	for name, tt := range map[string]struct {
		pod        *corev1.Pod
		here, away []*corev1.Pod // in its zone, and in another one
		want       string
	}{
		"spread as it should be":         {even, several(1, even), several(1, even), ""},
		"too many of them in its zone":   {even, several(2, even), nil, ReasonSpread},
		"the last one where none is":     {even, nil, nil, ""},
		"another one in its zone":        {alone, several(1, alone), nil, ReasonFar},
		"another one in another zone":    {alone, nil, several(1, alone), ""},
		"company in its zone":            {near, several(1, back), several(1, back), ""},
		"company left its zone":          {near, nil, several(1, back), ReasonNear},
		"company is gone":                {near, nil, nil, ReasonNear},
		"its own company":                {together, nil, nil, ""},
		"its own company went elsewhere": {together, nil, several(1, together), ReasonNear},
	} {
		nodes := []Node{holding(aNode("from", "4", "8Gi"), tt.pod), holding(aNode("to", "9", "8Gi"), tt.here...), holding(aNode("away", "0", "8Gi", inZone("b")), tt.away...)}
		m := NewWorld(nodes, nil, nil).NewMover(map[int][]*corev1.Pod{0: nodes[0].Pods}, []int{1, 2, 0})
		want := tt.want
		if want != "" {
			want = ReasonNoPlace + "default/" + tt.pod.Name + ": " + want
		}
		if got := m.Clear(0, nodes[0].Pods); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

// Whatever Nodes go together, their Pods have places among those that stay where every rule is kept, as far as it was kept
// before (SPEC C56, RELIABILITY 2d).
func TestMovedPodsKeepEveryRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes, waiting, _ := situations(t)
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
		for i, n := range stay {
			if err := keeps(stay[i:i+1], 0, nil); err != nil && slices.ContainsFunc(n.Pods, func(p *corev1.Pod) bool { return slices.Contains(moved, p) }) {
				t.Fatal(err)
			}
			for _, p := range n.Pods {
				if !slices.Contains(moved, p) {
					continue
				}
				if err := keepsRules(stay, i, p); err != nil {
					t.Fatal(err)
				}
				for _, s := range spreadsOf(p) {
					if err := keepsSkew(stay, 0, i, p, s); err != nil && s.overHosts() {
						t.Fatal(err)
					}
				}
			}
		}
	})
}

// carriedOut returns the Nodes that stay, with the Pods of the others where they found a place, and these Pods.
func (m *Mover) carriedOut(gone []bool) (stay []Node, moved []*corev1.Pod) {
	waiting := map[int][]*corev1.Pod{} // by item
	for n, g := range gone {
		if g {
			for _, p := range m.world.nodes[n].Pods {
				i := m.known[p]
				waiting[i], moved = append(waiting[i], p), append(moved, p)
			}
		}
	}
	for n, g := range gone {
		if g {
			continue
		}
		node := m.world.nodes[n]
		node.Pods = slices.Clone(node.Pods)
		for _, h := range m.space.Holds(m.at[n]) {
			node.Pods = append(node.Pods, waiting[h.Item][:h.Count]...)
			waiting[h.Item] = waiting[h.Item][h.Count:]
		}
		stay = append(stay, node)
	}
	for _, left := range waiting {
		if len(left) > 0 {
			panic(fmt.Sprint("pods without a place: ", left))
		}
	}
	return stay, moved
}
