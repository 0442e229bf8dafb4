// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// However many Pods nothing is done for, each is told why within minutes, and one of every kind at once (SPEC C34, W3).
func TestEveryPodIsToldInTurn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, epoch)
	w.load(t, "small.yaml")
	for i := range 450 {
		w.must(t, w.Put(pod("a", fmt.Sprintf("huge-%03d", i), "", resources("cpu", "900"))))
	}
	w.must(t, w.Put(pod("z", "mine", "", resources("cpu", "64"))))
	told := func() map[string]bool {
		all := map[string]bool{}
		for _, e := range w.Events() {
			if e.Reason == "NotTriggerScaleUp" {
				all[e.InvolvedObject.Namespace+"/"+e.InvolvedObject.Name] = true
			}
		}
		return all
	}
	w.pass(t, 10*time.Second)
	if got := told(); len(got) != maxTold || !got["z/mine"] {
		t.Errorf("the first scan told %d Pods, the one of another kind: %v", len(got), got["z/mine"])
	}
	w.pass(t, 8*time.Minute)
	if got := told(); len(got) != 451 {
		t.Errorf("within eight minutes %d of 451 Pods were told", len(got))
	}
}

// Groups of Pods have their turn as well, one Pod of every group at once, and no scan tells more Pods for their sake (SPEC C34, W12).
func TestEveryGroupIsToldInTurn(t *testing.T) {
	t.Parallel()
	w := fresh(t, "{}")
	w.set(t, "s", 0, 3, midsize(), nil)
	for i := range 250 {
		p := pending(fmt.Sprintf("p-%03d", i), epoch.Add(-time.Minute), resources("cpu", "3"))
		switch {
		case i < 120:
			p.Annotations = map[string]string{groupAnnotation: "a", sizeAnnotation: "400"}
		case i < 122:
			p.Annotations = map[string]string{groupAnnotation: "b", sizeAnnotation: "3"}
		default:
			p.Spec.Containers[0].Resources.Requests = resources("cpu", "9")
		}
		w.must(t, w.Put(p))
	}
	told := func() map[string]string {
		all := map[string]string{}
		for _, e := range w.Events() {
			if e.Reason == "NotTriggerScaleUp" {
				all[e.InvolvedObject.Name] = e.Message
			}
		}
		return all
	}
	w.scans(t, 1)
	if got := told(); len(got) != maxTold || got["p-000"] == "" || got["p-122"] == "" ||
		got["p-120"] != "pod didn't trigger scale-up: 1 not all pods would fit and scale-up is using all-or-nothing strategy (pod group default/b has 2 of 3 pods)" {
		t.Errorf("the first scan told %d Pods, of the groups %q and %q, of the others %q", len(got), got["p-000"], got["p-120"], got["p-122"])
	}
	w.scans(t, 30)
	if got := told(); len(got) != 250 {
		t.Errorf("within five minutes %d of 250 Pods were told", len(got))
	}
}

// Where an empty Node would take a Pod and its place among the others forbids it, the Pod is told which of its rules that is,
// in the scheduler's words (SPEC C34, W3).
func TestWhatForbidsAPlaceAmongOthersIsNamed(t *testing.T) {
	t.Parallel()
	like := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "db"}}
	apart := func(p *corev1.Pod) {
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
			{TopologyKey: corev1.LabelTopologyZone, LabelSelector: like},
		}}}
	}
	spread := func(p *corev1.Pod) {
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: like, MinDomains: new(int32(2)),
		}}
	}
	for _, tt := range []struct {
		rule func(*corev1.Pod)
		want string
	}{{apart, scheduling.ReasonFar}, {spread, scheduling.ReasonSpread}} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.pool(t, "s", 1, 9, nil, map[string]string{corev1.LabelTopologyZone: "a"}) // a person asked for one already
		for i := range 2 {
			p := pod("default", fmt.Sprint("db-", i), "", resources("cpu", "1"))
			p.Labels = like.MatchLabels
			tt.rule(p)
			w.must(t, w.Put(p))
		}
		w.pass(t, 4*time.Minute)
		told := 0
		for _, e := range w.Events() {
			if e.Reason == "NotTriggerScaleUp" {
				told++
				if !strings.HasSuffix(e.Message, "1 "+tt.want) {
					t.Errorf("want %q: %s", tt.want, e.Message)
				}
			}
		}
		if told == 0 {
			t.Errorf("nobody was told %q", tt.want)
		}
	}
}

// What a scan costs in which 300 sets answer a hundred kinds of Pods that are left over, beside 1,200 Nodes.
func BenchmarkAnswersOfManySets(b *testing.B) {
	w := fresh(b, "{resourceLimits: {maxNodesTotal: 9000}}")
	for i := range 300 {
		set, zone := fmt.Sprintf("s-%03d", i), map[string]string{corev1.LabelTopologyZone: string(rune('a' + i%3))}
		w.set(b, set, 4, 9, midsize(), zone)
		for k := range 4 {
			w.member(b, set, fmt.Sprint(set, "-", k), epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), zone)
		}
	}
	w.scans(b, 1) // which writes the bounds
	for i := range 500 {
		p := pending(fmt.Sprintf("p-%03d", i), epoch.Add(-time.Minute), resources("cpu", fmt.Sprintf("%dm", 100+i%100)))
		p.Labels = map[string]string{"app": fmt.Sprint(i % 100)}
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelTopologyZone, WhenUnsatisfiable: corev1.DoNotSchedule, MinDomains: new(int32(9)),
			LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels},
		}}
		w.must(b, w.Put(p))
	}
	s := w.reads(b)
	b.ReportAllocs()
	for b.Loop() {
		Function.Decide(s)
	}
}

// That no other new Nodes come cheaper is told where it is proven: room that only some of the Pods may have may leave no proof at all
// (SPEC C24).
func TestWhatIsNotProvenIsNotTold(t *testing.T) {
	t.Parallel()
	node := func(name, cpu string, taints ...corev1.Taint) scheduling.Node {
		list := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourcePods: resource.MustParse("110")}
		return scheduling.Node{Node: &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{Taints: taints}, Status: corev1.NodeStatus{Capacity: list, Allocatable: list},
		}}
	}
	pod := func(name, cpu string, tolerations ...corev1.Toleration) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: corev1.PodSpec{Tolerations: tolerations, Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
		}}}}
	}
	offers := []scheduling.Offer{{Name: "four", Node: node("four", "4"), Price: 10, Limit: 9}, {Name: "three", Node: node("three", "3"), Price: 6, Limit: 9}}
	pods := []*corev1.Pod{pod("x", "3"), pod("y-0", "2"), pod("y-1", "2"), pod("z", "1", corev1.Toleration{Key: "kept", Operator: corev1.TolerationOpExists})}
	kept := node("kept", "64", corev1.Taint{Key: "kept", Effect: corev1.TaintEffectNoSchedule})
	for _, tt := range []struct {
		name  string
		nodes []scheduling.Node
		pods  []*corev1.Pod
		want  string
	}{
		{"another packing is cheaper", []scheduling.Node{node("a", "4"), kept}, pods, "Scale-up: how much cheaper other new nodes for these pods could be is not known"},
		{"as cheap as can be", []scheduling.Node{kept}, pods[:1], "Scale-up: in what the expanders count, no other new nodes for these pods come cheaper"},
		{"none is new", []scheduling.Node{node("a", "4"), kept}, pods[:1], "Scale-up: in what the expanders count, no other new nodes for these pods come cheaper"},
		{"some way above", []scheduling.Node{node("a", "4")}, pods[:3], "Scale-up: in what the expanders count, the new nodes are at most 66.7% above the proven least"},
	} {
		if got := distance(scheduling.NewWorld(tt.nodes, tt.pods, nil).Place(tt.pods, offers)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
