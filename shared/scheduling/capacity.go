// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
)

const (
	defaultPods = 110 // of a Node, where the set does not say (SPEC C15)
	defaultArch = "amd64"
	mebi        = 1 << 20
)

// Labels that a Node of the set, whatever its state, tells about the next one (SPEC C15).
var inherited = []string{
	corev1.LabelArchStable, corev1.LabelOSStable, corev1.LabelInstanceTypeStable, corev1.LabelTopologyRegion, corev1.LabelTopologyZone,
	"beta.kubernetes.io/arch", "beta.kubernetes.io/os", corev1.LabelInstanceType, corev1.LabelFailureDomainBetaRegion, corev1.LabelFailureDomainBetaZone,
}

// FromZero reports whether the annotations of a set say how large its Nodes are: enough to scale it from zero.
func FromZero(set *machine.MachineSet) bool {
	_, ok := Capacity(set.Annotations)
	return ok
}

// Capacity reads the capacity annotations of a set: the new keys, else the old (SPEC C15, B88). It is not ok unless
// cpu and memory are there, and readable.
func Capacity(a map[string]string) (corev1.ResourceList, bool) {
	cpu, okCPU := quantity(cmp.Or(a[machine.CapacityCPU], a[machine.AnnotationVCPU]))
	memory, okMemory := quantity(a[machine.CapacityMemory])
	if !okMemory {
		if mb, ok := quantity(a[machine.AnnotationMemoryMb]); ok && mb.Value() < 1<<40 {
			memory, okMemory = *resource.NewQuantity(mb.Value()*mebi, resource.BinarySI), true
		}
	}
	if !okCPU || !okMemory {
		return nil, false
	}
	list := corev1.ResourceList{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory}
	pods, ok := quantity(cmp.Or(a[machine.CapacityMaxPods], a[machine.AnnotationMaxPods]))
	if !ok {
		pods = *resource.NewQuantity(defaultPods, resource.DecimalSI)
	}
	list[corev1.ResourcePods] = pods
	if disk, ok := quantity(a[machine.CapacityDisk]); ok {
		list[corev1.ResourceEphemeralStorage] = disk
	}
	if n, ok := quantity(cmp.Or(a[machine.CapacityGPUCount], a[machine.AnnotationGPU])); ok {
		list[corev1.ResourceName(machine.GPUType(a))] = n
	}
	return list, true
}

// quantity parses an amount greater than zero.
func quantity(s string) (resource.Quantity, bool) {
	q, err := autoscaling.ParseQuantity(s)
	return q, err == nil && q.Sign() > 0 && q.CmpInt64(mostOfAll) <= 0
}

// fromAnnotations returns a template made from the set alone. Allocatable is all of the capacity.
func (t Templates) fromAnnotations(set *machine.MachineSet, members []Node) (Node, bool) {
	list, ok := Capacity(set.Annotations)
	if !ok {
		return Node{}, false
	}
	n := blank(set)
	n.Status.Capacity, n.Status.Allocatable = list, list
	arch := cmp.Or(set.Annotations[machine.AnnotationArch], defaultArch)
	n.Labels[corev1.LabelArchStable], n.Labels["beta.kubernetes.io/arch"] = arch, arch
	n.Labels[corev1.LabelOSStable], n.Labels["beta.kubernetes.io/os"] = "linux", "linux"
	if len(members) > 0 {
		for _, k := range inherited {
			if v, ok := members[0].Labels[k]; ok && !(isType(k) && t.outdated(set, members[0])) {
				n.Labels[k] = v
			}
		}
	}
	carried, _ := machine.CarriedByTemplate(set).Fit() // what no Node can carry its Nodes go without
	maps.Copy(n.Labels, carried.Labels)
	maps.Copy(n.Labels, pairs(set.Annotations[machine.CapacityLabels]))
	n.Labels[corev1.LabelHostname] = n.Name
	for _, x := range withTaints(carried.Taints, set.Annotations[machine.CapacityTaints]) {
		if !t.passing(x) {
			n.Spec.Taints = append(n.Spec.Taints, x)
		}
	}
	return Node{Node: n, Pods: t.DaemonPods(n), Attach: t.attachLimits("")}, true
}

// Accelerator returns the type of the GPUs that a set says its Nodes have, or "": they are there before they carry the label.
func Accelerator(set *machine.MachineSet) string {
	if t, told := pairs(set.Annotations[machine.CapacityLabels])[AcceleratorLabel]; told {
		return t
	}
	return set.Spec.Template.Spec.Labels[AcceleratorLabel]
}

func isType(label string) bool {
	return label == corev1.LabelInstanceTypeStable || label == corev1.LabelInstanceType
}

// pairs reads "k=v,k=v".
func pairs(text string) map[string]string {
	out := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if k, v, ok := strings.Cut(strings.TrimSpace(part), "="); ok && k != "" {
			out[k] = v
		}
	}
	return out
}

// withTaints adds taints written as "k=v:Effect,k:Effect"; one of the same key and effect takes the place of the other. It takes no
// longer than the text is long.
func withTaints(taints []corev1.Taint, text string) []corev1.Taint {
	out, at := slices.Clone(taints), map[taintKind]int{}
	for i, t := range slices.Backward(out) { // of two alike the first
		at[kindOf(t)] = i
	}
	for part := range strings.SplitSeq(text, ",") {
		kv, effect, ok := strings.Cut(strings.TrimSpace(part), ":")
		k, v, _ := strings.Cut(kv, "=")
		if !ok || k == "" {
			continue
		}
		x := corev1.Taint{Key: k, Value: v, Effect: corev1.TaintEffect(effect)}
		if i, known := at[kindOf(x)]; known {
			out[i] = x
			continue
		}
		at[kindOf(x)] = len(out)
		out = append(out, x)
	}
	return out
}

// taintKind is what a Node has one taint of.
type taintKind struct {
	key    string
	effect corev1.TaintEffect
}

func kindOf(t corev1.Taint) taintKind { return taintKind{t.Key, t.Effect} }

// kindsOf returns of which kinds taints are.
func kindsOf(taints []corev1.Taint) map[taintKind]bool {
	all := make(map[taintKind]bool, len(taints))
	for _, t := range taints {
		all[kindOf(t)] = true
	}
	return all
}
