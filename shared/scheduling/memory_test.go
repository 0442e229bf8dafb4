// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// What is remembered of a Node makes the template that the Node itself made, static Pods aside, while the set makes the
// same Machines, and nothing else does.
func TestMemoryMakesTheTemplate(t *testing.T) {
	t.Parallel()
	madeOf := func(text string) (v machine.Machine) {
		v.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(text)}
		return v
	}
	set := aSet(map[string]string{machine.CapacityCPU: "4", machine.CapacityMemory: "12Gi"})
	set.Spec.Template.Spec.ProviderSpec = madeOf(`{"type":"m5", "zone":"a"}`).Spec.ProviderSpec
	like, other := madeOf(`{"zone": "a","type": "m5"}`), madeOf(`{"type":"m5.large","zone":"a"}`)
	n := aNode("n", "3500m", "11Gi", readySince(noon.Add(-time.Hour)), func(n *corev1.Node) {
		n.Spec.Taints = []corev1.Taint{{Key: "dedicated", Effect: corev1.TaintEffectNoSchedule}, {Key: machine.TaintToBeDeleted, Effect: corev1.TaintEffectNoSchedule}}
	})
	n.Pods = []*corev1.Pod{aPod("work", "1", "1Gi"), aPod("static", "100m", "1Gi", func(p *corev1.Pod) { p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"} })}
	templates := Templates{Now: noon}
	of := func(m *machine.Machine, n Node) Node {
		n.Machine = m
		m.Spec.Labels, m.Spec.Taints = set.Spec.Template.Spec.Labels, set.Spec.Template.Spec.Taints
		return n
	}
	if got := templates.Remember(set, of(&other, n), ""); got != "" {
		t.Errorf("of a Machine of another kind: %s", got)
	}
	if got := templates.Remember(set, of(&like, aNode("young", "4", "8Gi", readySince(noon))), ""); got != "" {
		t.Errorf("of a Node that has not settled: %s", got)
	}
	set.Annotations[machine.AnnotationLastNode] = templates.Remember(set, of(&like, n), "")
	got, ok := templates.Of(set, nil)
	if !ok || got.Status.Allocatable.Cpu().String() != "3400m" || got.Labels[zoneKey] != "a" || len(got.Spec.Taints) != 1 || got.Spec.Taints[0].Key != "dedicated" {
		t.Errorf("remembered %s\ngot %v", set.Annotations[machine.AnnotationLastNode], got.Node)
	}
	for name, change := range map[string]func(*machine.MachineSet){
		"another kind of Machine": func(s *machine.MachineSet) { s.Spec.Template.Spec.ProviderSpec = other.Spec.ProviderSpec },
		"another capacity":        func(s *machine.MachineSet) { s.Annotations[machine.CapacityCPU] = "8" },
		"no memory":               func(s *machine.MachineSet) { s.Annotations[machine.AnnotationLastNode] = "{" },
		"an amount without end": func(s *machine.MachineSet) {
			s.Annotations[machine.AnnotationLastNode] = strings.Replace(s.Annotations[machine.AnnotationLastNode], `"3400m"`, `"1e-99999999"`, 1)
		},
	} {
		s := set.DeepCopy()
		change(s)
		if got, ok := templates.Of(s, nil); !ok || got.Labels[zoneKey] != "" {
			t.Errorf("%s: got %v", name, got.Node)
		}
	}
}
