// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// labeledByHand is a set whose only Node has a label that the next ones will not have, and a Pod that asks for it.
func labeledByHand(t *testing.T) *world {
	t.Helper()
	w := fresh(t, "{scaleDown: {enabled: true}}")
	w.set(t, "s", 1, 6, midsize(), nil)
	w.member(t, "s", "a", epoch.Add(-time.Hour), resources("cpu", "4", "memory", "16Gi", "pods", "110"), map[string]string{"disk": "ssd"})
	w.must(t, w.Put(running("full", "a", resources("cpu", "3500m"))))
	p := pending("wants", epoch.Add(-time.Minute), resources("cpu", "2"))
	p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	w.must(t, w.Put(p))
	return w
}

// A Node that came for a Pod and cannot hold it is the last one for a while: it goes because nobody needs it, the Pod is
// told, and the set tries again after an hour, then after two (SPEC C9, C34, W3).
func TestNodeThatDidNotHelpIsNotRepeated(t *testing.T) {
	t.Parallel()
	w := labeledByHand(t)
	for range 6 * 180 {
		w.once(t)
		w.comes(t, "s", resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		w.victimsGo(t)
		w.now = w.now.Add(10 * time.Second)
	}
	if w.born != 2 {
		t.Errorf("%d Nodes came in three hours, want 2", w.born)
	}
	if got := w.replicas("s"); got[0] != 1 {
		t.Errorf("%d Nodes are there", got)
	}
	told := func(object, words string) bool {
		return slices.ContainsFunc(w.Events(), func(e corev1.Event) bool {
			return e.InvolvedObject.Name == object && strings.Contains(e.Message, words)
		})
	}
	if !told("wants", "a node that came for such pods could not hold them (s: until 2026-01-01T13:01:00Z, node s-001: node(s) didn't match Pod's node affinity/selector)") {
		t.Error("the Pod was not told")
	}
	if !told(machine.ConfigMapStatus, "Node s-001 of group MachineSet/openshift-machine-api/s came for pods like default/wants and cannot hold them") {
		t.Error("nobody was told")
	}
}

// What is new about the set ends that: a label that comes late to the Node, other Machines, a person's wish (SPEC W15).
func TestSetIsTriedAgainOnceSomethingChanged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(w *world) error{
		"the label comes late, and another Pod takes the Node": func(w *world) error {
			if err := w.Put(running("other", "s-001", resources("cpu", "3"))); err != nil {
				return err
			}
			return memory.Patch(w.Server, "", "s-001", func(n *corev1.Node) { n.Labels["disk"] = "ssd" })
		},
		"other machines": func(w *world) error {
			return memory.Patch(w.Server, machine.Namespace, "s", func(s *machine.MachineSet) {
				s.Spec.Template.Spec.Labels = map[string]string{"disk": "ssd"}
			})
		},
		"a wish": func(w *world) error {
			return memory.Patch(w.Server, machine.Namespace, "s", func(s *machine.MachineSet) { s.Annotations[machine.AnnotationRetryScaleUp] = "" })
		},
	} {
		w := labeledByHand(t)
		w.once(t)
		w.comes(t, "s", resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
		w.scans(t, 12)
		if got := w.replicas("s"); got[0] != 2 {
			t.Errorf("%s: %d Nodes after two minutes", name, got)
		}
		w.must(t, change(w))
		w.scans(t, 2)
		if got := w.replicas("s"); got[0] != 3 {
			t.Errorf("%s: %d Nodes", name, got)
		}
	}
}

// Nor is it where that Node was the last that a limit allows (SPEC C9, W3).
func TestNodeThatDidNotHelpAtALimitIsNotRepeated(t *testing.T) {
	t.Parallel()
	for name, at := range map[string]struct {
		limits string
		most   int32
	}{
		"the maximum of the set": {"{}", 2},
		"maxNodesTotal":          {"{maxNodesTotal: 2}", 6},
		"cores":                  {"{cores: {min: 0, max: 8}}", 6},
	} {
		w := fresh(t, "{scaleDown: {enabled: true}, resourceLimits: "+at.limits+"}")
		w.set(t, "s", 1, at.most, midsize(), nil)
		size := resources("cpu", "4", "memory", "16Gi", "pods", "110")
		w.member(t, "s", "a", epoch.Add(-time.Hour), size, map[string]string{"disk": "ssd"})
		w.must(t, w.Put(running("full", "a", resources("cpu", "3500m"))))
		p := pending("wants", epoch.Add(-time.Minute), resources("cpu", "2"))
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		w.must(t, w.Put(p))
		for range 6 * 60 {
			w.once(t)
			w.comes(t, "s", size, nil)
			w.victimsGo(t)
			w.now = w.now.Add(10 * time.Second)
		}
		told := slices.ContainsFunc(w.Events(), func(e corev1.Event) bool { return e.Reason == "NodeDidNotHelp" })
		if w.born > 2 || !told {
			t.Errorf("%s: %d Nodes came within an hour, told %v", name, w.born, told)
		}
	}
}

// A DaemonSet's Pod that does not come to a Node is no company there: Pods that want to be beside it bring one Node, and not one after
// the other (SPEC C9). Once it comes, the set is for them again.
func TestCompanyThatDoesNotComeIsNotPromisedAgain(t *testing.T) {
	t.Parallel()
	cache := running("cache", "s-001", resources("cpu", "100m"))
	cache.Labels = map[string]string{"app": "cache", "controller-revision-hash": "1"}
	for late, want := range map[bool]int{false: 1, true: 2} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.set(t, "s", 0, 6, midsize(), nil)
		w.yaml(t, "{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: cache, namespace: default, uid: cache}, spec: {selector: {matchLabels: {app: cache}}, "+
			"template: {metadata: {labels: {app: cache}}, spec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}}}}")
		p := pending("wants", epoch.Add(-time.Minute), resources("cpu", "2"))
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
			TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "cache"}},
		}}}}
		w.must(t, w.Put(p))
		for k := range 6 * 30 {
			if late && k == 6*5 {
				w.must(t, w.Put(cache, running("other", "s-001", resources("cpu", "3"))))
			}
			w.once(t)
			w.comes(t, "s", resources("cpu", "4", "memory", "16Gi", "pods", "110"), nil)
			w.victimsGo(t)
			w.now = w.now.Add(10 * time.Second)
		}
		if w.born != want {
			t.Errorf("it comes late: %v; %d Nodes came in half an hour, want %d", late, w.born, want)
		}
	}
}

// Whom others keep out for now is not let down by the Node that came: of two Pods that are to be in zones apart the scheduler gave it to
// either, and once that is gone the set is for the other one (SPEC C9).
func TestNodeThatAnotherPodTookDidHelp(t *testing.T) {
	t.Parallel()
	zone := map[string]string{corev1.LabelTopologyZone: "a"}
	for _, first := range []string{"one", "two"} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.set(t, "s", 0, 6, midsize(), zone)
		for _, name := range []string{"one", "two"} {
			p := pending(name, epoch.Add(-time.Minute), resources("cpu", "2"))
			p.Labels = map[string]string{"app": "x"}
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{
				TopologyKey: corev1.LabelTopologyZone, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			}}}}
			w.must(t, w.Put(p))
		}
		for k := range 6 * 5 {
			w.once(t)
			w.comes(t, "s", resources("cpu", "4", "memory", "16Gi", "pods", "110"), zone)
			if k == 1 {
				w.must(t, memory.Patch(w.Server, "default", first, func(p *corev1.Pod) {
					p.Spec.NodeName, p.Status = "s-001", corev1.PodStatus{Phase: corev1.PodRunning}
				}))
			}
			w.now = w.now.Add(10 * time.Second)
		}
		if w.born != 1 {
			t.Errorf("%d Nodes came", w.born)
		}
		if i := slices.IndexFunc(w.Events(), func(e corev1.Event) bool {
			return strings.Contains(e.Message, "could not hold") || e.Reason == "NodeDidNotHelp"
		}); i >= 0 {
			t.Errorf("%s was first: %s", first, w.Events()[i].Message)
		}
	}
}
