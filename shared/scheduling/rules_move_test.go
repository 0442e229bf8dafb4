// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestMoverKeepsRules has two Pods on Nodes of their own that are to go one after the other, and one Node that stays: a wrong yes
// would remove a Node whose Pod hangs then (SPEC C56, RELIABILITY 2d).
func TestMoverKeepsRules(t *testing.T) {
	t.Parallel()
	pod := func(name string, more ...func(*corev1.Pod)) *corev1.Pod { return aPod(name, "1", "1Gi", more...) }
	large := func(name string, more ...func(*corev1.Pod)) *corev1.Pod { return aPod(name, "2", "1Gi", more...) }
	like := func(of *corev1.Pod, more ...func(*corev1.Pod)) *corev1.Pod { // shares its parts, as trimmed Pods do
		p := *of
		p.Name = "like"
		for _, m := range more {
			m(&p)
		}
		return &p
	}
	web, inA := pod("web"), pod("web", selecting(zoneKey, "a"))
	stays := aNode("stays", "4", "8Gi")
	closed := stays
	closed.Closed = true
	both, first, none := []bool{true, true}, []bool{true, false}, []bool{false, false}
	for _, tt := range []struct {
		name  string
		a, b  *corev1.Pod
		stays Node
		facts *Facts
		want  []bool
	}{
		{"room for both", pod("a"), pod("b"), stays, nil, both},
		{"room for one", pod("a"), aPod("b", "4", "1Gi"), stays, nil, first},
		{"what takes nothing", pod("a"), pod("b"), closed, nil, none},
		{"one port", pod("a", onPort(80)), large("b", onPort(80)), stays, nil, first},
		{"one disk", pod("a", onDisk("v")), large("b", onDisk("v")), stays, nil, first},
		{"the first keeps the second away", pod("a", away(corev1.LabelHostname, "b")), pod("b"), stays, nil, first},
		{"the second keeps the first away", pod("a"), pod("b", away(corev1.LabelHostname, "a")), stays, nil, first},
		{"one on each host", pod("a", ofApp("web"), spreadBy(corev1.LabelHostname, 1)), large("b", ofApp("web"), spreadBy(corev1.LabelHostname, 1)), stays, nil, first},
		{"one on each host, by the second alone", pod("a", ofApp("web")), pod("b", ofApp("web"), spreadBy(corev1.LabelHostname, 1)), stays, nil, first},
		{"who is not wanted there by its labels", pod("a"), pod("b"), holding(stays, pod("lonely", away(corev1.LabelHostname, "b"))), nil, first},
		{"who is not wanted there, of a kind otherwise", web, like(web, ofApp("b")), holding(stays, pod("lonely", away(corev1.LabelHostname, "b"))), nil, first},
		{"a kind", web, like(web), stays, nil, both},
		{"who needs more to begin with", web, like(web, func(p *corev1.Pod) { p.Spec.InitContainers = aPod("init", "9", "1Gi").Spec.Containers }), stays, nil, first},
		{"who has an affinity", web, like(web, required(corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: zoneKey, Operator: corev1.NodeSelectorOpIn, Values: []string{"b"}}}})), stays, nil, first},
		{"who has a disk", web, like(web, onDisk("v")), holding(stays, pod("other", onDisk("v"))), nil, first},
		{"who selects another zone", inA, like(inA, selecting(zoneKey, "b")), stays, nil, first},
		{"a claim for one Pod alone, which is that one", pod("a", claiming("data")), pod("b"), stays, factsOf(knowing("data"), func(f *Facts) {
			f.Claims[0].Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		}), both},
		{"one volume that can be attached", pod("a", claiming("x")), pod("b", claiming("y")), stays, factsOf(knowing("x"), knowing("y"), limiting("stays", 1)), first},
		{"devices", pod("a"), pod("b", func(p *corev1.Pod) { p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}} }), stays, nil, first},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			nodes := []Node{holding(aNode("from", "4", "8Gi"), tt.a), holding(aNode("too", "4", "8Gi"), tt.b), tt.stays}
			m := NewWorld(nodes, nil, tt.facts).NewMover(map[int][]*corev1.Pod{0: nodes[0].Pods, 1: nodes[1].Pods}, []int{2})
			got := []bool{m.Clear(0, nodes[0].Pods) == "", m.Clear(1, nodes[1].Pods) == ""}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("may go (-want +got):\n%s", diff)
			}
		})
	}
}

// One Pod that may not come back does not make room for the next one of its kind, wherever that runs.
func TestLevelsStayAsTheyAre(t *testing.T) {
	t.Parallel()
	pods := several(3, aPod("web", "1", "1Gi", ofApp("web"), spreadBy(zoneKey, 1)))
	preferred := func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: n.Name, Effect: corev1.TaintEffectPreferNoSchedule}}
	}
	nodes := []Node{aNode("to", "9", "9Gi"), aNode("b", "0", "0", inZone("b"))}
	running := map[int][]*corev1.Pod{}
	for _, p := range pods {
		running[len(nodes)] = []*corev1.Pod{p}
		nodes = append(nodes, holding(aNode(p.Name, "4", "8Gi", preferred), p))
	}
	m := NewWorld(nodes, nil, nil).NewMover(running, []int{0})
	for n, on := range running {
		if why := m.Clear(n, on); why == "" {
			t.Errorf("%s may go", nodes[n].Name)
		}
	}
}

// TestRunningPodsCount has a case for each thing of running Pods and their Nodes that a plan could see wrongly.
func TestRunningPodsCount(t *testing.T) {
	t.Parallel()
	leaves := func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }
	byHost := func(more ...func(*corev1.Pod)) *corev1.Pod {
		p := aPod("web", "1", "1Gi", spreadBy(corev1.LabelHostname, 1))
		for _, m := range more {
			m(p)
		}
		return p
	}
	four := offersOf(9, aNode("a", "4", "8Gi"))
	full := aNode("m", "0", "0", inZone("b"))
	for _, tt := range []struct {
		name    string
		nodes   []Node
		waiting []*corev1.Pod
		offers  []Offer
		want    string
	}{
		{"who leaves is not spread with", []Node{full, holding(aNode("n", "4", "8Gi"), aPod("web", "1", "1Gi", leaves))}, several(1, aPod("web", "1", "1Gi", spreadBy(zoneKey, 1))), nil, "1 fit, 0 helped by map[], 0 left"},
		{"who leaves still is somebody to keep away from", []Node{holding(aNode("n", "4", "8Gi"), aPod("web", "1", "1Gi", leaves))}, several(1, aPod("b", "1", "1Gi", away(zoneKey, "web"))), nil, "0 fit, 0 helped by map[], 1 left"},
		{"who is spread over everything meets nobody", []Node{full, holding(aNode("n", "4", "8Gi"), several(2, aPod("b", "1", "1Gi"))...)}, several(1, aPod("web", "1", "1Gi", spreadBy(zoneKey, 1), constraint(func(c *corev1.TopologySpreadConstraint) {
			c.LabelSelector = &metav1.LabelSelector{}
		}))), nil, "1 fit, 0 helped by map[], 0 left"},
		{"a label that a constraint is by, and that is missing", []Node{full, holding(aNode("n", "4", "8Gi"), aPod("web", "1", "1Gi"))}, several(1, aPod("web", "1", "1Gi", spreadBy(zoneKey, 1), constraint(func(c *corev1.TopologySpreadConstraint) {
			c.MatchLabelKeys = []string{"missing"}
		}))), nil, "0 fit, 0 helped by map[], 1 left"},
		{"a cordoned node is no node like others", []Node{full, aNode("n", "4", "8Gi", inZone("b"), func(n *corev1.Node) { n.Spec.Unschedulable = true })}, several(1, aPod("web", "1", "1Gi")), nil, "0 fit, 0 helped by map[], 1 left"},
		{"a constraint that may be broken", []Node{full}, several(3, aPod("web", "1", "1Gi", spreadBy(zoneKey, 1), constraint(func(c *corev1.TopologySpreadConstraint) {
			c.WhenUnsatisfiable = corev1.ScheduleAnyway
		}))), four, "0 fit, 3 helped by map[a:1], 0 left"},
		{"nodes that are not selected, where they count", []Node{full}, several(3, aPod("web", "1", "1Gi", selecting(zoneKey, "a"), spreadBy(zoneKey, 1), constraint(func(c *corev1.TopologySpreadConstraint) {
			c.NodeAffinityPolicy = new(corev1.NodeInclusionPolicyIgnore)
		}))), four, "0 fit, 1 helped by map[a:1], 2 left"},
		{"a host that takes nothing holds others down", []Node{{Node: aNode("m", "4", "8Gi").Node, Closed: true}, aNode("n", "4", "8Gi")}, several(3, byHost()), nil, "1 fit, 0 helped by map[], 2 left"},
		{"so does one that is not tolerated", []Node{aNode("m", "4", "8Gi", tainted), aNode("n", "4", "8Gi")}, several(3, byHost()), nil, "1 fit, 0 helped by map[], 2 left"},
		{"not one that is not selected", []Node{full, aNode("n", "4", "8Gi")}, several(3, byHost(selecting(zoneKey, "a"))), nil, "3 fit, 0 helped by map[], 0 left"},
		{"fewer hosts than wanted", []Node{aNode("n", "4", "8Gi")}, several(3, byHost(constraint(func(c *corev1.TopologySpreadConstraint) { c.MinDomains = new(int32(2)) }))), nil, "1 fit, 0 helped by map[], 2 left"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := outcome(NewWorld(tt.nodes, tt.waiting, nil).Place(tt.waiting, tt.offers)); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

// TestRefusedByTaintPortAndSize has the small print of what a Node tolerates, has free, and has room for.
func TestRefusedByTaintPortAndSize(t *testing.T) {
	t.Parallel()
	port := func(change func(*corev1.ContainerPort)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			onPort(80)(p)
			change(&p.Spec.Containers[0].Ports[0])
		}
	}
	udp := port(func(c *corev1.ContainerPort) { c.Protocol = corev1.ProtocolUDP })
	at := func(ip string) func(*corev1.Pod) { return port(func(c *corev1.ContainerPort) { c.HostIP = ip }) }
	early := func(p *corev1.Pod) { p.Spec.InitContainers = aPod("init", "0", "0", onPort(80)).Spec.Containers }
	taint := func(x corev1.Taint) Node {
		return aNode("n", "4", "8Gi", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{x} })
	}
	tolerates := func(x corev1.Toleration) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Spec.Tolerations = []corev1.Toleration{x} }
	}
	beside := func(more ...func(*corev1.Pod)) Node {
		return holding(aNode("n", "4", "8Gi"), aPod("x", "1", "1Gi", more...))
	}
	kept := "node(s) had untolerated taint {k: v}"
	for name, tt := range map[string]struct {
		node Node
		pod  func(*corev1.Pod)
		want string
	}{
		"another effect":          {taint(corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}), tolerates(corev1.Toleration{Key: "k", Value: "v", Effect: corev1.TaintEffectNoSchedule}), kept},
		"another key":             {taint(corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}), tolerates(corev1.Toleration{Key: "l", Value: "v"}), kept},
		"another value":           {taint(corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectNoExecute}), tolerates(corev1.Toleration{Key: "k", Value: "w"}), kept},
		"what is only preferred":  {taint(corev1.Taint{Key: "k", Value: "v", Effect: corev1.TaintEffectPreferNoSchedule}), func(*corev1.Pod) {}, ""},
		"another protocol":        {beside(udp), onPort(80), ""},
		"another address":         {beside(at("10.0.0.1")), at("10.0.0.2"), ""},
		"one of all addresses":    {beside(at("10.0.0.1")), onPort(80), ReasonPorts},
		"all of them, one taken":  {beside(onPort(80)), at("10.0.0.1"), ReasonPorts},
		"who is done by then":     {beside(early), onPort(80), ""},
		"what its class adds":     {beside(), func(p *corev1.Pod) { p.Spec.Overhead = resources("3", "0") }, "Insufficient cpu"},
		"what it asks as a whole": {beside(), func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: resources("4", "1Gi")} }, "Insufficient cpu"},
		"bound elsewhere":         {beside(), boundTo("m"), ReasonName},
	} {
		p := aPod("p", "1", "1Gi", tt.pod)
		if got := NewWorld([]Node{tt.node}, []*corev1.Pod{p}, nil).Ask(p).Refused(0); got != tt.want {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
