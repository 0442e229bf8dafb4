// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// A Pod that asks for what nobody has leaves no other one without a Node, whoever comes first.
func TestNamesThatNobodyHasTakeNoPlace(t *testing.T) {
	t.Parallel()
	asking := func(names ...corev1.ResourceName) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for _, name := range names {
				p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse("1")
			}
		}
	}
	with := func(name corev1.ResourceName) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.Allocatable[name] = resource.MustParse("1") }
	}
	bogus := aPod("bogus", "1", "1Gi", asking("x.com/a", "x.com/b", "x.com/c", "x.com/d"), func(p *corev1.Pod) { p.Namespace = "another" })
	limited := aNode("a", "4", "8Gi")
	limited.Attach = map[string]int64{driver: 1}
	for name, tt := range map[string]struct {
		nodes []Node
		pods  []*corev1.Pod
		new   Node
		facts *Facts
		want  string
	}{
		"of a node":    {[]Node{aNode("n", "4", "8Gi", with("y.com/a"))}, several(1, aPod("web", "1", "1Gi", asking("y.com/a"))), aNode("a", "0", "0"), nil, "1 fit, 0 helped by map[], 1 left"},
		"of a new one": {nil, several(2, aPod("web", "1", "1Gi", asking("y.com/a"))), aNode("a", "4", "8Gi", with("y.com/a")), nil, "0 fit, 2 helped by map[a:2], 1 left"},
		"volumes": {nil, []*corev1.Pod{aPod("p", "1", "1Gi", claiming("x")), aPod("q", "2", "1Gi", claiming("y"))}, limited,
			factsOf(knowing("x"), knowing("y"), limiting("elsewhere", 9)), "0 fit, 2 helped by map[a:2], 1 left"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			waiting := append([]*corev1.Pod{bogus}, tt.pods...)
			facts := tt.facts
			if facts == nil {
				facts = factsOf()
			}
			facts.Coming = []corev1.ResourceList{tt.new.Status.Allocatable}
			if got := outcome(NewWorld(tt.nodes, waiting, facts).Place(waiting, offersOf(9, tt.new))); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
	t.Run("GPUs of a node", func(t *testing.T) {
		t.Parallel()
		const gpu = "nvidia.com/gpu"
		w := NewWorld([]Node{holding(aNode("n", "4", "8Gi", with(gpu)), aPod("runs", "1", "1Gi"))}, []*corev1.Pod{bogus}, nil)
		w.Place([]*corev1.Pod{bogus}, nil)
		if u := w.Utilization(0, nil, nil); u.Resource != gpu || u.Max != 0 {
			t.Errorf("got %+v", u)
		}
	})
}
