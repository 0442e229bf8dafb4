// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// longestMemory bounds what is written on a set about its Nodes, in bytes.
const longestMemory = 16 << 10

// memory is what a set's Nodes were like: when there is none any more, the next one is thought to be like them (SPEC C13).
type memory struct {
	Of          string              `json:"of"` // what the set made its Machines of
	Allocatable autoscaling.Amounts `json:"allocatable"`
	Capacity    autoscaling.Amounts `json:"capacity"`
	Labels      map[string]string   `json:"labels,omitempty"`
	Taints      []corev1.Taint      `json:"taints,omitempty"`
	Attach      map[string]int64    `json:"attach,omitempty"` // volumes, by driver
	End         string              `json:"end,omitempty"`    // of the Node, if it was about to go: labels and taints are those of when this was first seen
}

// Remember returns what is to be remembered of a set's Node, to be kept in the set's annotation; the empty text if it
// says nothing about the next one, because it is not ready, not for long enough, or its Machine was made of something
// else than the next one will be. Equal Nodes that stay give equal texts. Static Pods are taken off what it offers. What is put on a Node
// once it is going says something about that: its labels and taints stay those that the set remembers of the same end, which is empty for a
// Node that stays. A taint that people put on it before, to see it empty, is as little of the next one: of what the set does not say a Node
// that goes has the taints alone that were remembered already.
func (t Templates) Remember(set *machine.MachineSet, n Node, end string) string {
	if !Ready(n.Node, t.StartupTaints) || !Settled(n.Node, t.Now) || !Equipped(set, n.Node) || !machine.SameSpec(set, n.Machine) || t.outdated(set, n) {
		return ""
	}
	like := t.Like(set, renewed(set, n))
	offers := like.Status.Allocatable.DeepCopy()
	for _, p := range like.Pods {
		if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
			takeOff(offers, p)
		}
	}
	is := memory{Of: MadeOf(set), Allocatable: autoscaling.Amounts(offers), Capacity: autoscaling.Amounts(like.Status.Capacity), Labels: maps.Clone(like.Labels), Taints: like.Spec.Taints, Attach: like.Attach, End: end}
	maps.DeleteFunc(is.Labels, func(_, value string) bool { return value == like.Name }) // as the hostname, they are no Node's to come
	if was, ok := memoryOn(set); ok && end != "" && was.End == end {
		is.Labels, is.Taints = was.Labels, was.Taints
	} else if ok && end != "" {
		says, had := kindsOf(taintsOf(set)), kindsOf(was.Taints)
		is.Taints = slices.DeleteFunc(is.Taints, func(x corev1.Taint) bool { return !says[kindOf(x)] && !had[kindOf(x)] })
	}
	text, err := json.Marshal(is)
	if err != nil || len(text) > longestMemory { // API types marshal
		return ""
	}
	return string(text)
}

func takeOff(offers corev1.ResourceList, p *corev1.Pod) {
	requests := Requests(p)
	requests[corev1.ResourcePods] = *resource.NewQuantity(1, resource.DecimalSI)
	for name, q := range requests {
		if has, ok := offers[name]; ok {
			has.Sub(q)
			offers[name] = has
		}
	}
}

// memoryOn returns what a set remembers, unless its Machines are made of something else now. What cannot be read is no memory.
func memoryOn(set *machine.MachineSet) (was memory, ok bool) {
	text := set.Annotations[machine.AnnotationLastNode]
	ok = text != "" && json.Unmarshal([]byte(text), &was) == nil && was.Of == MadeOf(set) && !(*corev1.ResourceList)(&was.Allocatable).Cpu().IsZero()
	return was, ok
}

// remembered returns a template made from what is remembered on the set.
func (t Templates) remembered(set *machine.MachineSet) (Node, bool) {
	was, ok := memoryOn(set)
	if !ok {
		return Node{}, false
	}
	n := blank(set)
	maps.Copy(n.Labels, was.Labels)
	n.Labels[corev1.LabelHostname] = n.Name
	n.Spec.Taints, n.Status.Allocatable, n.Status.Capacity = was.Taints, corev1.ResourceList(was.Allocatable), corev1.ResourceList(was.Capacity)
	if len(was.Attach) == 0 {
		was.Attach = t.attachLimits("")
	}
	return Node{Node: n, Pods: t.DaemonPods(n), Attach: was.Attach}, true
}

// MadeOf is a digest of everything on a set that its next Node follows from, the set's memory aside. The old and the new
// capacity keys are the same to it.
func MadeOf(set *machine.MachineSet) string {
	capacity, _ := Capacity(set.Annotations)
	a := set.Annotations
	text, err := json.Marshal([]any{set.Spec.Template.Spec, capacity, a[machine.AnnotationArch], a[machine.CapacityLabels], a[machine.CapacityTaints]})
	if err != nil { // API types marshal
		return ""
	}
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:5])
}

func raw(v *runtime.RawExtension) []byte {
	if v == nil {
		return nil
	}
	return v.Raw
}
