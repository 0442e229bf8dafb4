// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"
)

const zoneKey = corev1.LabelTopologyZone

func resources(cpu, memory string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
}

func aPod(name, cpu, memory string, more ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, Labels: map[string]string{"app": name}}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: resources(cpu, memory)}}}
	for _, m := range more {
		m(p)
	}
	return p
}

func ofApp(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} }
}

func several(n int, p *corev1.Pod) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		c := p.DeepCopy()
		c.Name = fmt.Sprintf("%s-%03d", p.Name, i)
		all = append(all, c)
	}
	return all
}

func aNode(name, cpu, memory string, more ...func(*corev1.Node)) Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelHostname: name, zoneKey: "a"}}}
	n.Status.Allocatable = resources(cpu, memory)
	n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("110")
	n.Status.Capacity = n.Status.Allocatable
	for _, m := range more {
		m(n)
	}
	return Node{Node: n}
}

func inZone(zone string) func(*corev1.Node) {
	return func(n *corev1.Node) { n.Labels[zoneKey] = zone }
}

func holding(n Node, pods ...*corev1.Pod) Node {
	n.Pods = pods
	return n
}

func self(p *corev1.Pod) *metav1.LabelSelector { return &metav1.LabelSelector{MatchLabels: p.Labels} }

func apartBy(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: self(p)}},
		}}
	}
}

func togetherBy(key string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{TopologyKey: key, LabelSelector: self(p)}},
		}}
	}
}

func spreadBy(key string, skew int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, corev1.TopologySpreadConstraint{
			TopologyKey: key, MaxSkew: skew, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: self(p),
		})
	}
}

// spreadOver spreads a Pod over zones by where others are.
func spreadOver(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		spreadBy(zoneKey, 1)(p)
		p.Spec.TopologySpreadConstraints[len(p.Spec.TopologySpreadConstraints)-1].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
}

// beside puts a Pod on a host with others.
func beside(app string) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		togetherBy(corev1.LabelHostname)(p)
		p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	}
}

func offersOf(limit int, nodes ...Node) []Offer {
	var all []Offer
	for _, n := range nodes {
		all = append(all, Offer{Name: n.Name, Node: n, Price: 10, Limit: limit})
	}
	return all
}

// outcome says what became of the Pods: fit, helped, left, and the new Nodes by offer.
func outcome(p Placement) string {
	var fit, helped, left int
	for s := range p.Shapes {
		fit, helped, left = fit+p.Fit[s], helped+p.Helped[s], left+p.Left[s]
	}
	opened := map[string]int{}
	for _, o := range p.Openings {
		opened[p.offers[o.Offer].Name] += o.Count
	}
	return fmt.Sprint(fit, " fit, ", helped, " helped by ", opened, ", ", left, " left")
}

func TestPlace(t *testing.T) {
	t.Parallel()
	three := offersOf(9, aNode("a", "4", "8Gi"), aNode("b", "4", "8Gi", inZone("b")), aNode("c", "4", "8Gi", inZone("c")))
	web := func(more ...func(*corev1.Pod)) *corev1.Pod { return aPod("web", "1", "1Gi", more...) }
	lone := func(cpu string, more ...func(*corev1.Pod)) *corev1.Pod { // more important than the others, whom it keeps out of its zone
		return aPod("lone", cpu, "1Gi", append([]func(*corev1.Pod){ofApp("web"), apartBy(zoneKey), func(p *corev1.Pod) { p.Spec.Priority = new(int32(1)) }}, more...)...)
	}
	full := func(zone string, count int) []Node { // and another zone as full, with none of those
		return []Node{holding(aNode("n", "0", "0", inZone(zone)), several(count, aPod("back", "0", "0", ofApp("back")))...), aNode("m", "0", "0", inZone("b"))}
	}
	tests := []struct {
		name    string
		nodes   []Node
		waiting []*corev1.Pod
		offers  []Offer
		want    string
	}{
		{"nodes that exist come first", []Node{aNode("n", "2", "8Gi")}, several(3, web()), three, "2 fit, 1 helped by map[a:1], 0 left"},
		{"what runs takes room", []Node{holding(aNode("n", "2", "8Gi"), aPod("x", "1500m", "1Gi"))}, several(2, web()), nil, "0 fit, 0 helped by map[], 2 left"},
		{"a closed node takes nothing", []Node{{Node: aNode("n", "2", "8Gi").Node, Closed: true}}, several(1, web()), nil, "0 fit, 0 helped by map[], 1 left"},
		{"limits hold", nil, several(20, web()), offersOf(2, aNode("a", "4", "8Gi")), "0 fit, 8 helped by map[a:2], 12 left"},
		{"the number of pods is a resource", nil, several(5, aPod("tiny", "1m", "1Mi")), offersOf(9, aNode("a", "4", "8Gi", func(n *corev1.Node) {
			n.Status.Allocatable[corev1.ResourcePods] = resource.MustParse("2")
		})), "0 fit, 5 helped by map[a:3], 0 left"},
		{"a node selector", nil, several(2, web(func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{zoneKey: "b"} })), three, "0 fit, 2 helped by map[b:1], 0 left"},
		{"a taint that is not tolerated", []Node{aNode("n", "4", "8Gi", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
		})}, several(1, web()), nil, "0 fit, 0 helped by map[], 1 left"},
		{"a taint that is", []Node{aNode("n", "4", "8Gi", func(n *corev1.Node) {
			n.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
		})}, several(1, web(func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Value: "v"}} })), nil, "1 fit, 0 helped by map[], 0 left"},
		{"one of a host port per node", nil, several(3, web(func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
		})), offersOf(9, aNode("a", "4", "8Gi")), "0 fit, 3 helped by map[a:3], 0 left"},
		{"the host port of a DaemonSet is taken", nil, several(1, web(func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
		})), offersOf(9, holding(aNode("a", "4", "8Gi"), aPod("ds", "1m", "1Mi", func(p *corev1.Pod) {
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}}
		}))), "0 fit, 0 helped by map[], 1 left"},
		{"one per host", []Node{holding(aNode("n", "4", "8Gi"), web(apartBy(corev1.LabelHostname)))}, several(3, web(apartBy(corev1.LabelHostname))), three, "0 fit, 3 helped by map[a:3], 0 left"},
		{"one per zone", []Node{holding(aNode("n", "4", "8Gi"), web(apartBy(zoneKey)))}, several(3, web(apartBy(zoneKey))), three, "0 fit, 2 helped by map[b:1 c:1], 1 left"},
		{"those that run keep others away", []Node{holding(aNode("n", "4", "8Gi"), aPod("lonely", "1m", "1Mi", func(p *corev1.Pod) {
			apartBy(zoneKey)(p)
			p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector = self(web())
		}))}, several(1, web()), three, "0 fit, 1 helped by map[b:1], 0 left"},
		{"spread over zones", nil, several(9, web(spreadBy(zoneKey, 1))), three, "0 fit, 9 helped by map[a:1 b:1 c:1], 0 left"},
		{"spread over zones counts what runs", []Node{holding(aNode("n", "2", "8Gi"), several(2, web(spreadBy(zoneKey, 1)))...)}, several(4, web(spreadBy(zoneKey, 1))), three, "0 fit, 4 helped by map[b:1 c:1], 0 left"},
		{"a zone without room holds the others down", nil, several(9, web(spreadBy(zoneKey, 1))), append(offersOf(9, three[0].Node, three[1].Node), Offer{Name: "c", Node: aNode("c", "1", "8Gi", inZone("c")).withZone("c"), Price: 10, Limit: 1}), "0 fit, 5 helped by map[a:1 b:1 c:1], 4 left"},
		{"spread over hosts", nil, several(6, web(spreadBy(corev1.LabelHostname, 2))), offersOf(9, aNode("a", "4", "8Gi")), "0 fit, 6 helped by map[a:2], 0 left"},
		{"spread over hosts, of which others are full", nil, append(several(6, web(spreadBy(corev1.LabelHostname, 2))), aPod("db", "4", "1Gi")), offersOf(9, aNode("a", "4", "8Gi")), "0 fit, 7 helped by map[a:4], 0 left"},
		{"spread over hosts, of which others do not count", nil, append(several(6, web(spreadBy(corev1.LabelHostname, 2), selecting(zoneKey, "a"))), aPod("db", "4", "1Gi", selecting(zoneKey, "b"))), three, "0 fit, 7 helped by map[a:2 b:1], 0 left"},
		{"spread over more hosts than there are", nil, several(4, web(spreadBy(corev1.LabelHostname, 1), constraint(func(c *corev1.TopologySpreadConstraint) { c.MinDomains = new(int32(3)) }))), offersOf(9, aNode("a", "4", "8Gi")), "0 fit, 4 helped by map[a:4], 0 left"},
		{"spread over hosts rises with the emptiest", []Node{aNode("n", "4", "8Gi"), aNode("m", "4", "8Gi")}, several(7, web(spreadBy(corev1.LabelHostname, 1))), nil, "7 fit, 0 helped by map[], 0 left"},
		{"together in one zone", nil, several(9, web(togetherBy(zoneKey))), three, "0 fit, 9 helped by map[a:3], 0 left"},
		{"together on one host, as many as it takes", nil, several(6, web(togetherBy(corev1.LabelHostname))), three, "0 fit, 4 helped by map[a:1], 2 left"},
		{"with company that runs", []Node{holding(aNode("n", "1", "8Gi", inZone("b")), web())}, several(2, aPod("front", "1", "1Gi", func(p *corev1.Pod) {
			togetherBy(zoneKey)(p)
			p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector = self(web())
		})), three, "0 fit, 2 helped by map[b:1], 0 left"},
		{"without company", nil, several(2, aPod("front", "1", "1Gi", func(p *corev1.Pod) {
			togetherBy(zoneKey)(p)
			p.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector = self(web())
		})), three, "0 fit, 0 helped by map[], 2 left"},
		{"a node that exists comes before a new one in an emptier zone", []Node{aNode("n", "4", "8Gi", inZone("b"))}, several(1, web(spreadBy(zoneKey, 1))), three, "1 fit, 0 helped by map[], 0 left"},
		{"without the topology key nobody meets", []Node{holding(aNode("n", "4", "8Gi", func(n *corev1.Node) { delete(n.Labels, zoneKey) }), web(apartBy(zoneKey)))},
			several(2, web(apartBy(zoneKey))), nil, "2 fit, 0 helped by map[], 0 left"},
		{"together in one zone, as far as nobody holds it down", nil, several(3, web(togetherBy(zoneKey), spreadBy(zoneKey, 1))), three, "0 fit, 3 helped by map[a:1], 0 left"},
		{"together in one zone that another one holds down", []Node{aNode("n", "0", "0", inZone("b"))}, several(3, web(togetherBy(zoneKey), spreadBy(zoneKey, 2))), three[:1], "0 fit, 2 helped by map[a:1], 1 left"},
		{"together in one zone of those that are not ahead", full("a", 2), several(9, web(togetherBy(zoneKey), spreadOver("back"))),
			append(offersOf(2, aNode("b", "4", "8Gi", inZone("b"))), three[0], three[2]), "0 fit, 9 helped by map[c:3], 0 left"},
		{"no zone with room is level enough", full("a", 2), several(1, web(spreadOver("back"))), three[:1], "0 fit, 0 helped by map[], 1 left"},
		{"with company that every new node has", nil, several(5, web(beside("cache"))), offersOf(9, holding(aNode("a", "4", "8Gi"), aPod("cache", "0", "0"))), "0 fit, 5 helped by map[a:2], 0 left"},
		{"what every new node has is other company", nil, several(5, web(beside("back"))), offersOf(9, holding(aNode("a", "4", "8Gi"), aPod("cache", "0", "0"))), "0 fit, 0 helped by map[], 5 left"},
		{"together on one host of those that there may be", nil, several(6, web(togetherBy(corev1.LabelHostname))),
			append(offersOf(0, aNode("large", "8", "16Gi")), three...), "0 fit, 4 helped by map[a:1], 2 left"},
		{"nobody waits for those that are not planned for", nil, append(several(2, web()), lone("1", spreadBy("rack", 1))),
			offersOf(9, aNode("a", "4", "8Gi", func(n *corev1.Node) { n.Labels["rack"] = "1" })), "0 fit, 2 helped by map[a:1], 1 left"},
		{"nobody waits for those that no zone with room may have", full("a", 2), append(several(2, web()), lone("1", spreadOver("back"))), three[:1], "0 fit, 2 helped by map[a:1], 1 left"},
		{"nobody waits for those that would be too far ahead", full("a", 2), append(several(2, web()), lone("1", spreadOver("back"), ofApp("back"))), three[:1], "0 fit, 2 helped by map[a:1], 1 left"},
		{"nobody waits for those whose nodes there may not be", nil, append(several(2, web()), lone("8")), append(offersOf(0, aNode("large", "8", "16Gi")), three...), "0 fit, 2 helped by map[a:1], 1 left"},
		{"they wait for those that get a place by others that come", append(full("a", 1), aNode("o", "2", "8Gi", inZone("b"))),
			append(several(2, web()), lone("3", spreadOver("back"), ofApp("back")), aPod("more", "2", "1Gi", ofApp("back"), spreadOver("back"), important, selecting(corev1.LabelHostname, "o"))), three[:1], "1 fit, 1 helped by map[a:1], 2 left"},
		{"apart, and spread by where others are", nil, several(3, web(apartBy(zoneKey), spreadOver("back"))), three, "0 fit, 3 helped by map[a:1 b:1 c:1], 0 left"},
		{"they wait for those that have a place", nil, append(several(2, web()), lone("1")), three[:1], "0 fit, 1 helped by map[a:1], 2 left"},
		{"two topology keys at once are not planned for", nil, several(2, web(spreadBy(zoneKey, 1), spreadBy("rack", 1))), three, "0 fit, 0 helped by map[], 2 left"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got := NewWorld(tt.nodes, tt.waiting, nil).Place(tt.waiting, tt.offers)
			if diff := cmp.Diff(tt.want, outcome(got)); diff != "" {
				t.Errorf("outcome (-want +got):\n%s", diff)
			}
		})
	}
}

func (n Node) withZone(zone string) Node {
	n.Labels[zoneKey] = zone
	return n
}

func TestWhy(t *testing.T) {
	t.Parallel()
	offer := offersOf(1, aNode("a", "4", "8Gi", func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}}
	}))
	tolerant := func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}} }
	for want, p := range map[string]*corev1.Pod{
		"node(s) had untolerated taint {k: v}": aPod("p", "1", "1Gi"),
		"Insufficient cpu":                     aPod("p", "5", "1Gi", tolerant),
		"Insufficient memory":                  aPod("p", "1", "9Gi", tolerant),
		ReasonAffinity:                         aPod("p", "1", "1Gi", tolerant, func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"x": "y"} }),
		"Insufficient nvidia.com/gpu": aPod("p", "1", "1Gi", tolerant, func(p *corev1.Pod) {
			p.Spec.Containers[0].Resources.Requests[GPU] = resource.MustParse("1")
		}),
		"": aPod("p", "1", "1Gi", tolerant),
	} {
		waiting := []*corev1.Pod{p}
		if got := NewWorld(nil, waiting, nil).Place(waiting, offer).Why(0, 0); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// situations generates worlds with Pods that have rules about each other.
func situations(t *rapid.T) (nodes []Node, waiting []*corev1.Pod, offers []Offer) {
	zones := []string{"a", "b", "c"}
	size := rapid.SampledFrom([]string{"500m", "1", "2", "3"})
	rules := rapid.SampledFrom([]func(*corev1.Pod){
		func(*corev1.Pod) {}, func(*corev1.Pod) {}, spreadBy(zoneKey, 1), spreadBy(zoneKey, 2), spreadBy(corev1.LabelHostname, 1),
		apartBy(corev1.LabelHostname), apartBy(zoneKey), togetherBy(zoneKey), togetherBy(corev1.LabelHostname),
		func(p *corev1.Pod) { togetherBy(zoneKey)(p); spreadBy(zoneKey, 2)(p) },
		func(p *corev1.Pod) { apartBy(zoneKey)(p); spreadOver("app-0")(p) },
		func(p *corev1.Pod) { away(zoneKey, "app-0")(p); spreadBy(zoneKey, 1)(p) },
		func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{zoneKey: "b"} },
		func(p *corev1.Pod) { p.Spec.Containers[0].Ports = []corev1.ContainerPort{{HostPort: 80}} },
	})
	var apps []*corev1.Pod
	for i := range rapid.IntRange(1, 4).Draw(t, "apps") {
		a := aPod(fmt.Sprintf("app-%d", i), size.Draw(t, "cpu"), "1Gi", rules.Draw(t, "rule"))
		if i > 0 && overZones(apps[i-1]) && rapid.Bool().Draw(t, "revision") { // of the one before: only its size is another
			before := apps[i-1].DeepCopy()
			before.Name, before.Spec.Containers = a.Name, a.Spec.Containers[:1:1]
			before.Spec.Containers[0].Ports = nil
			a = before
		}
		apps = append(apps, a)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "nodes") {
		n := aNode(fmt.Sprintf("node-%d", i), "4", "16Gi", inZone(rapid.SampledFrom(zones).Draw(t, "zone")))
		nodes = append(nodes, n)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "offers") {
		o := aNode(fmt.Sprintf("offer-%d", i), rapid.SampledFrom([]string{"2", "4", "8"}).Draw(t, "size"), "16Gi", inZone(rapid.SampledFrom(zones).Draw(t, "zone")))
		offers = append(offers, Offer{Name: o.Name, Node: o, Price: int64(rapid.IntRange(1, 9).Draw(t, "price")), Limit: rapid.IntRange(0, 5).Draw(t, "limit")})
	}
	for _, a := range apps {
		waiting = append(waiting, several(rapid.IntRange(1, 8).Draw(t, "pods"), a)...)
	}
	return nodes, waiting, offers
}

func overZones(p *corev1.Pod) bool {
	return p.Spec.Affinity == nil && slices.ContainsFunc(p.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool { return c.TopologyKey == zoneKey })
}

func TestPlacedPodsKeepEveryRule(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes, waiting, offers := situations(t)
		// What the first placement put on the nodes runs there in the second, so that running Pods have rules too.
		first := NewWorld(nodes, waiting, nil).Place(waiting, nil)
		world, _ := first.carriedOut()
		var rest []*corev1.Pod
		for _, p := range waiting {
			if !slices.ContainsFunc(world, func(n Node) bool { return slices.Contains(n.Pods, p) }) {
				rest = append(rest, p)
			}
		}
		final, fresh := NewWorld(world, rest, nil).Place(rest, offers).carriedOut()
		if err := keeps(final, fresh, rest); err != nil {
			t.Fatal(err)
		}
	})
}

// carriedOut returns the nodes with all placed Pods on them, the new ones last, and how many of them are new.
func (p Placement) carriedOut() (all []Node, fresh int) {
	taken := make([]int, len(p.Shapes))
	take := func(shape, n int) []*corev1.Pod {
		pods := p.Shapes[shape].Pods[taken[shape] : taken[shape]+n]
		taken[shape] += n
		return pods
	}
	for _, n := range p.world.nodes {
		n.Pods = slices.Clone(n.Pods)
		all = append(all, n)
	}
	l := p.layout
	for _, put := range l.result.Puts {
		r := l.rows[put.Item]
		n := &all[l.bins[put.Bin]]
		n.Pods = append(n.Pods, take(r.shape, put.Count*r.times)...)
	}
	for k, o := range p.Openings {
		for i := range o.Count {
			n := Node{Node: p.offers[o.Offer].Node.DeepCopy(), Pods: slices.Clone(p.offers[o.Offer].Node.Pods)}
			n.Name = fmt.Sprintf("%s-%d-%d", n.Name, k, i)
			n.Labels[corev1.LabelHostname] = n.Name
			for _, h := range o.Holds {
				n.Pods = append(n.Pods, take(h.Item, h.Count)...)
			}
			all = append(all, n)
			fresh++
		}
	}
	return all, fresh
}

// keeps checks a final state by itself, rule by rule, in the plainest way; spread only of Pods that were placed last,
// since domains that came later may leave the others behind.
func keeps(nodes []Node, fresh int, last []*corev1.Pod) error {
	for i, n := range nodes {
		used := resource.Quantity{}
		for _, p := range n.Pods {
			used.Add(p.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU])
			if z := p.Spec.NodeSelector[zoneKey]; z != "" && z != n.Labels[zoneKey] {
				return fmt.Errorf("%s is on %s, in another zone than it selects", p.Name, n.Name)
			}
			if err := keepsRules(nodes, i, p); err != nil {
				return err
			}
			for _, s := range spreadsOf(p) {
				if err := keepsSkew(nodes, fresh, i, p, s); err != nil && s.selfCounts && slices.Contains(last, p) { // whom others count for may have come later
					return err
				}
			}
		}
		if used.Cmp(n.Status.Allocatable[corev1.ResourceCPU]) > 0 {
			return fmt.Errorf("%s holds %s cpu", n.Name, used.String())
		}
	}
	return nil
}

func keepsRules(nodes []Node, at int, p *corev1.Pod) error {
	n := nodes[at]
	for _, other := range n.Pods {
		if other != p && clash(portsOf(p), portsOf(other)) {
			return fmt.Errorf("%s and %s share a port on %s", p.Name, other.Name, n.Name)
		}
	}
	for _, t := range (&World{}).farTerms(p) {
		if matching(nodes, t, n.Labels[t.key], p) > 0 {
			return fmt.Errorf("%s is not apart on %s by %s", p.Name, n.Name, t.key)
		}
	}
	for _, t := range (&World{}).nearTerms(p) {
		everywhere := 0
		for _, m := range nodes {
			everywhere = max(everywhere, matching(nodes, t, m.Labels[t.key], p))
		}
		if everywhere > 0 && matching(nodes, t, n.Labels[t.key], p) < everywhere {
			return fmt.Errorf("%s on %s is not where the others are by %s", p.Name, n.Name, t.key)
		}
	}
	return nil
}

func matching(nodes []Node, t term, value string, not *corev1.Pod) (count int) {
	for _, n := range nodes {
		for _, p := range n.Pods {
			if p != not && n.Labels[t.key] == value && t.pod(p) {
				count++
			}
		}
	}
	return count
}

// keepsSkew wants no domain too far ahead. Where the domain is the host, Nodes that were there before take Pods before new ones come, and
// all are compared with them.
func keepsSkew(nodes []Node, fresh, at int, p *corev1.Pod, s spread) error {
	counts := map[string]int{}
	for i, n := range nodes {
		old := i < len(nodes)-fresh
		if s.key == corev1.LabelHostname && !old && i != at {
			continue
		}
		here := 0
		for _, q := range n.Pods {
			if s.pod(q) {
				here++
			}
		}
		if old || here > 0 {
			counts[n.Labels[s.key]] += here
		}
	}
	least, own := math.MaxInt, counts[nodes[at].Labels[s.key]]
	for value, c := range counts {
		if s.key != corev1.LabelHostname || value != nodes[at].Labels[s.key] || at < len(nodes)-fresh {
			least = min(least, c)
		}
	}
	if own-least > s.maxSkew {
		return fmt.Errorf("%s on %s: skew %d by %s: %v", p.Name, nodes[at].Name, own-least, s.key, counts)
	}
	return nil
}

func TestPlaceDoesNotDependOnOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		nodes, waiting, offers := situations(t)
		want := outcome(NewWorld(nodes, waiting, nil).Place(waiting, offers))
		nodes = rapid.Permutation(nodes).Draw(t, "nodes in order")
		waiting = rapid.Permutation(waiting).Draw(t, "pods in order")
		offers = rapid.Permutation(offers).Draw(t, "offers in order")
		if got := outcome(NewWorld(nodes, waiting, nil).Place(waiting, offers)); got != want {
			t.Fatalf("in order %s, shuffled %s", want, got)
		}
	})
}

// Whether a Pod has a place takes a look at every Node: of hundreds of shapes that keep each other out of their zones each is asked once.
func TestEachShapeIsAskedOnceForAPlace(t *testing.T) {
	t.Parallel()
	var waiting []*corev1.Pod
	for i := range 20 {
		waiting = append(waiting, aPod(fmt.Sprintf("lone-%02d", i), fmt.Sprint(i+1), "1Gi", ofApp("lone"), apartBy(zoneKey)))
	}
	w := NewWorld([]Node{aNode("n", "1", "1Gi", inZone("a"))}, waiting, nil)
	p := w.Place(waiting, nil)
	for _, has := range []bool{false, true} {
		asked := 0
		waits := p.layout.deferred(func(int) bool { asked++; return has })
		late := 0
		for _, is := range waits {
			if is {
				late++
			}
		}
		if want := map[bool]int{false: 0, true: len(waiting) - 1}[has]; late != want || asked > len(waiting) {
			t.Errorf("places %v: %d of %d shapes wait, want %d; %d were asked for", has, late, len(waits), want, asked)
		}
	}
}
