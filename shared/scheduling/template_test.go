// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func aSet(annotations map[string]string) *machine.MachineSet {
	s := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "set", Annotations: annotations}}
	s.Spec.Template.Spec.Labels = map[string]string{"role": "general"}
	s.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule}, {Key: "kept", Effect: corev1.TaintEffectNoSchedule}}
	return s
}

func readySince(at time.Time) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)}}
	}
}

func TestTemplateComesFromTheBestSource(t *testing.T) {
	t.Parallel()
	annotations := map[string]string{machine.CapacityCPU: "4", machine.CapacityMemory: "12Gi"}
	good := aNode("good", "3500m", "11Gi", readySince(noon.Add(-2*time.Minute)))
	fresh := aNode("fresh", "3", "10Gi", readySince(noon.Add(-30*time.Second)))
	cordoned := aNode("cordoned", "2", "10Gi", readySince(noon.Add(-2*time.Minute)), func(n *corev1.Node) { n.Spec.Unschedulable = true })
	going := aNode("going", "1", "10Gi", readySince(noon.Add(-2*time.Minute)), func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: machine.TaintToBeDeleted, Effect: corev1.TaintEffectNoSchedule}}
	})
	tests := []struct {
		name        string
		annotations map[string]string
		members     []Node
		want        string
	}{
		{"a good node", annotations, []Node{cordoned, going, fresh, good}, "3500m"},
		{"else the annotations", annotations, []Node{cordoned, going, fresh}, "4"},
		{"else any node", nil, []Node{fresh, cordoned}, "3"},
		{"memory alone is not enough", map[string]string{machine.CapacityMemory: "12Gi"}, nil, ""},
		{"nothing to go by", nil, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n, ok := Templates{Now: noon}.Of(aSet(tt.annotations), tt.members)
			got := ""
			if ok {
				got = n.Status.Allocatable.Cpu().String()
			}
			if got != tt.want {
				t.Errorf("cpu %q, want %q", got, tt.want)
			}
		})
	}
}

func TestTemplateKeepsWhatIsOfTheGroup(t *testing.T) {
	t.Parallel()
	n := aNode("good", "4", "12Gi", readySince(noon.Add(-time.Hour)), func(n *corev1.Node) {
		n.Labels["role"] = "general"
		n.Spec.Taints = []corev1.Taint{
			{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule},
			{Key: "node.kubernetes.io/memory-pressure", Effect: corev1.TaintEffectNoSchedule},
			{Key: "status-taint.cluster-autoscaler.kubernetes.io/x", Effect: corev1.TaintEffectNoSchedule},
		}
	})
	n.Pods = []*corev1.Pod{
		aPod("work", "1", "1Gi"),
		aPod("static", "100m", "1Gi", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} }),
	}
	daemon := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "agent"}}
	picky := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "system", Name: "picky"}}
	for _, ds := range []*appsv1.DaemonSet{daemon, picky} {
		ds.Spec.Template.Spec = aPod("x", "200m", "1Gi").Spec
		ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "dedicated", Operator: corev1.TolerationOpExists}}
	}
	picky.Spec.Template.Spec.NodeSelector = map[string]string{"role": "infra"}
	got, ok := Templates{Now: noon, Daemons: []*appsv1.DaemonSet{daemon, picky}}.Of(aSet(nil), []Node{n})
	if !ok {
		t.Fatal("no template")
	}
	if diff := cmp.Diff([]corev1.Taint{{Key: "dedicated", Value: "a", Effect: corev1.TaintEffectNoSchedule}}, got.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{zoneKey: "a", "role": "general", corev1.LabelHostname: "template-of-ns-set"}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	var pods []string
	for _, p := range got.Pods {
		pods = append(pods, p.Name)
	}
	if !slices.Equal(pods, []string{"agent", "static"}) {
		t.Errorf("pods %v", pods)
	}
}

// What the node controllers say of one Node at one time is not of its group; a taint that people chose is, whatever it is called
// (SPEC C14).
func TestTaintsThatPeopleChooseStay(t *testing.T) {
	t.Parallel()
	set := aSet(map[string]string{machine.CapacityCPU: "4", machine.CapacityMemory: "12Gi"})
	set.Spec.Template.Spec.Taints = nil
	for _, key := range []string{"node.kubernetes.io/os", "node.kubernetes.io/not-ready", corev1.TaintNodePIDPressure, "node.cloudprovider.kubernetes.io/shutdown"} {
		set.Spec.Template.Spec.Taints = append(set.Spec.Template.Spec.Taints, corev1.Taint{Key: key, Value: "windows", Effect: corev1.TaintEffectNoSchedule})
	}
	good := aNode("good", "4", "12Gi", readySince(noon.Add(-time.Hour)), func(n *corev1.Node) { n.Spec.Taints = set.Spec.Template.Spec.Taints[:1] })
	for name, members := range map[string][]Node{"from a Node": {good}, "from the set": nil} {
		got, ok := Templates{Now: noon}.Of(set, members)
		if !ok || len(got.Spec.Taints) != 1 || got.Spec.Taints[0].Key != "node.kubernetes.io/os" {
			t.Errorf("%s: taints %v, want node.kubernetes.io/os alone", name, got.Spec.Taints)
		}
	}
}

func TestTemplateFromAnnotations(t *testing.T) {
	t.Parallel()
	got, ok := Templates{Now: noon}.Of(aSet(map[string]string{
		machine.AnnotationVCPU: "4", machine.AnnotationMemoryMb: "12288", machine.AnnotationGPU: "2", machine.CapacityGPUType: "amd.com/gpu",
		machine.AnnotationArch: "arm64", machine.CapacityLabels: "role=special, zone=z", machine.CapacityTaints: "dedicated=b:NoSchedule,more:NoExecute",
	}), []Node{aNode("starting", "1", "1Gi")})
	if !ok {
		t.Fatal("no template")
	}
	want := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("4"), corev1.ResourceMemory: resource.MustParse("12Gi"),
		corev1.ResourcePods: resource.MustParse("110"), "amd.com/gpu": resource.MustParse("2"),
	}
	if !same(want, got.Status.Allocatable) || !same(want, got.Status.Capacity) {
		t.Errorf("capacity %v", got.Status.Capacity)
	}
	if diff := cmp.Diff(map[string]string{
		corev1.LabelArchStable: "arm64", "beta.kubernetes.io/arch": "arm64", corev1.LabelOSStable: "linux", "beta.kubernetes.io/os": "linux",
		"role": "special", "zone": "z", zoneKey: "a", corev1.LabelHostname: "template-of-ns-set",
	}, got.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.Taint{
		{Key: "dedicated", Value: "b", Effect: corev1.TaintEffectNoSchedule}, {Key: "kept", Effect: corev1.TaintEffectNoSchedule},
		{Key: "more", Effect: corev1.TaintEffectNoExecute},
	}, got.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
}

// The next Node has none of the taints that somebody put on one of those that are there, whichever of them comes first. What each of them has
// it will have too, and what its set says; what keeps nobody off counts as little as what says something about one time (SPEC C14).
func TestTemplateIsOfTheNodeWithTheFewestTaintsOfItsOwn(t *testing.T) {
	t.Parallel()
	taint := func(key string, effect corev1.TaintEffect) corev1.Taint {
		return corev1.Taint{Key: key, Effect: effect}
	}
	has := func(name string, since time.Duration, taints ...corev1.Taint) Node {
		return aNode(name, "4", "12Gi", readySince(noon.Add(-since)), func(n *corev1.Node) { n.Labels["of"], n.Spec.Taints = "like-"+name, taints })
	}
	kept, mine, each := taint("kept", corev1.TaintEffectNoSchedule), taint("mine", corev1.TaintEffectNoExecute), taint("each", corev1.TaintEffectNoSchedule)
	soft, passing := taint("soft", corev1.TaintEffectPreferNoSchedule), taint(corev1.TaintNodeMemoryPressure, corev1.TaintEffectNoSchedule)
	for _, tt := range []struct {
		name    string
		members []Node
		want    string
	}{
		{"the second", []Node{has("a", time.Hour, mine), has("b", time.Hour), has("c", time.Hour)}, "b"},
		{"the first, where each has one", []Node{has("a", time.Hour, each), has("b", time.Hour, each)}, "a"},
		{"the second, where each has one", []Node{has("a", time.Hour, each, mine), has("b", time.Hour, each)}, "b"},
		{"not one that has not settled", []Node{has("a", time.Hour, mine), has("b", time.Second)}, "a"},
		{"the first, as its set says so", []Node{has("a", time.Hour, kept), has("b", time.Hour)}, "a"},
		{"the first, as it keeps nobody off", []Node{has("a", time.Hour, soft), has("b", time.Hour)}, "a"},
		{"the first, as that passes", []Node{has("a", time.Hour, passing), has("b", time.Hour)}, "a"},
		{"the first, as its annotation says so", []Node{has("a", time.Hour, taint("listed", corev1.TaintEffectNoSchedule)), has("b", time.Hour)}, "a"},
	} {
		got, ok := Templates{Now: noon}.Of(aSet(map[string]string{machine.CapacityTaints: "listed=x:NoSchedule"}), tt.members)
		if !ok || got.Labels["of"] != "like-"+tt.want {
			t.Errorf("%s: made from %q, want %q", tt.name, got.Labels["of"], "like-"+tt.want)
		}
	}
}

// A set whose Nodes go without a taint that none can have is planned with as they will be (SPEC B2, B3, C15).
func TestTemplateLeavesOutWhatNoNodeCanCarry(t *testing.T) {
	t.Parallel()
	set := aSet(map[string]string{machine.AnnotationVCPU: "4", machine.AnnotationMemoryMb: "12288"})
	set.Spec.Template.Spec.Labels = map[string]string{"example.com/rack": "row 7", "example.com/row": "7"}
	good := corev1.Taint{Key: "dedicated", Value: "db", Effect: corev1.TaintEffectNoSchedule}
	set.Spec.Template.Spec.Taints = []corev1.Taint{{Key: "no key", Effect: good.Effect}, good}
	got, ok := Templates{Now: noon}.Of(set, nil)
	if _, bad := got.Labels["example.com/rack"]; !ok || bad || got.Labels["example.com/row"] != "7" {
		t.Errorf("labels %v", got.Labels)
	}
	if diff := cmp.Diff([]corev1.Taint{good}, got.Spec.Taints); diff != "" {
		t.Errorf("taints (-want +got):\n%s", diff)
	}
}

// Each Node has labels of its own, as of volumes that live there: the next one has another value, and nothing of them is remembered. What the
// set says of its Nodes, and what tells of a place, is not one, though a Node is called the same.
func TestLabelsOfOneNodeAreNotItsSets(t *testing.T) {
	t.Parallel()
	set := aSet(map[string]string{machine.CapacityCPU: "4", machine.CapacityMemory: "12Gi", machine.CapacityLabels: "pool=a"})
	set.Spec.Template.Spec.Labels = map[string]string{"role": "a"}
	n := aNode("a.example.com", "4", "12Gi", readySince(noon.Add(-time.Hour)), func(n *corev1.Node) {
		n.Labels = map[string]string{
			corev1.LabelHostname: "a", "topology.topolvm.io/node": "a.example.com", "topology.hostpath.csi/node": "a", "node-role.kubernetes.io/worker": "",
			zoneKey: "a", "role": "a", "pool": "a", "kept": "b",
		}
	})
	of := "template-of-ns-set"
	want := map[string]string{
		corev1.LabelHostname: of, "topology.topolvm.io/node": of, "topology.hostpath.csi/node": of, "node-role.kubernetes.io/worker": "",
		zoneKey: "a", "role": "a", "pool": "a", "kept": "b",
	}
	templates := Templates{Now: noon}
	got, ok := templates.Of(set, []Node{n})
	if diff := cmp.Diff(want, got.Labels); !ok || diff != "" {
		t.Errorf("from a Node (-want +got):\n%s", diff)
	}
	n.Machine = &machine.Machine{}
	n.Machine.Spec.Labels, n.Machine.Spec.Taints = set.Spec.Template.Spec.Labels, set.Spec.Template.Spec.Taints
	set.Annotations[machine.AnnotationLastNode] = templates.Remember(set, n, "")
	delete(want, "topology.topolvm.io/node")
	delete(want, "topology.hostpath.csi/node")
	got, ok = templates.Of(set, nil)
	if diff := cmp.Diff(want, got.Labels); !ok || diff != "" {
		t.Errorf("remembered (-want +got):\n%s", diff)
	}
	maps.DeleteFunc(n.Labels, func(k, _ string) bool { return k == corev1.LabelHostname }) // which a kubelet puts on last of all
	if got, _ = templates.Of(set, []Node{n}); got.Labels["node-role.kubernetes.io/worker"] != "" {
		t.Errorf("without a hostname: %v", got.Labels)
	}
}

func TestSimilar(t *testing.T) {
	t.Parallel()
	base := aNode("a", "4", "12000Mi")
	tests := []struct {
		name  string
		other Node
		want  bool
	}{
		{"another zone", aNode("b", "4", "12000Mi", inZone("b")), true},
		{"a little less memory", aNode("b", "4", "11830Mi"), true},
		{"much less memory", aNode("b", "4", "11800Mi"), false},
		{"other cpu", aNode("b", "3990m", "12000Mi"), false},
		{"another label", aNode("b", "4", "12000Mi", func(n *corev1.Node) { n.Labels["x"] = "y" }), false},
		{"a label of its own", aNode("b", "4", "12000Mi", func(n *corev1.Node) { n.Labels["topology.topolvm.io/node"] = n.Name }), true},
		{"an ignored label", aNode("b", "4", "12000Mi", func(n *corev1.Node) { n.Labels["rack"] = "y" }), true},
		{"another resource", aNode("b", "4", "12000Mi", func(n *corev1.Node) { n.Status.Capacity[GPU] = resource.MustParse("1") }), false},
		{"more DaemonSets", holding(aNode("b", "4", "12000Mi"), aPod("ds", "300m", "1Mi")), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			ignored := append(slices.Clone(IgnoredLabels), "rack")
			if got := NewWorld(nil, nil, nil).Similar(base, tt.other, ignored); got != tt.want {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}

func TestMoverKeepsNodesThatOthersNeed(t *testing.T) {
	t.Parallel()
	web := func(name string, more ...func(*corev1.Pod)) *corev1.Pod { return aPod(name, "1", "1Gi", more...) }
	nodes := []Node{
		holding(aNode("a", "2", "8Gi"), web("a1")), holding(aNode("b", "2", "8Gi"), web("b1")),
		holding(aNode("c", "2", "8Gi"), web("c1")), holding(aNode("d", "2", "8Gi", inZone("z")), web("d1", spreadBy(zoneKey, 1))),
	}
	pods := map[int][]*corev1.Pod{}
	for n := range nodes {
		pods[n] = nodes[n].Pods
	}
	m := NewWorld(nodes, nil, nil).NewMover(pods, []int{3, 2, 1, 0})
	ask := func(n int) string {
		if m.Taken(n) {
			return "taken"
		}
		return m.Clear(n, pods[n])
	}
	var got []string
	for n := range nodes {
		got = append(got, ask(n))
	}
	want := []string{"", "", "taken", "taken"} // a went to d, b to c
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}
