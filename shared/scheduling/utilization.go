// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	corev1 "k8s.io/api/core/v1"
)

// Utilization is how much of a Node is asked for. Printed with %v it reads as operators know it (SPEC S68).
type Utilization struct {
	CPU, Memory, GPU float64
	Resource         corev1.ResourceName // the one that counts
	Max              float64
}

// Utilization returns how much of a node of the world the Pods ask for that uses selects; nil selects all. Pods that it
// leaves out and spared selects are taken out of the node's size as well (SPEC C55). Where there are GPUs, they alone count.
func (w *World) Utilization(n int, uses, spared func(*corev1.Pod) bool) Utilization {
	gpu, hasGPU := 0, false
	of, count := w.gpus.In(w.nodes[n].Status.Allocatable)
	if count > 0 {
		gpu, hasGPU = w.axes.axis(of)
	}
	size := w.axes.node(w.nodes[n].Status.Allocatable)
	used := w.used[n]
	for _, p := range w.nodes[n].Pods {
		if uses == nil {
			break
		}
		if uses(p) {
			continue
		}
		v, _ := w.axes.pod(p)
		used = used.Minus(v)
		if spared(p) {
			size = size.Minus(v)
		}
	}
	part := func(i int) float64 {
		if size[i] <= 0 {
			return 0
		}
		return float64(used[i]) / float64(size[i])
	}
	u := Utilization{CPU: part(0), Memory: part(1), Resource: corev1.ResourceCPU}
	u.Max = u.CPU
	if u.Memory > u.CPU {
		u.Resource, u.Max = corev1.ResourceMemory, u.Memory
	}
	if hasGPU {
		u = Utilization{GPU: part(gpu), Resource: of, Max: part(gpu)}
	}
	return u
}

// NodeNamed returns the name of the only Node that a Pod may run on by its node affinity, as those of DaemonSets do;
// the empty text if there is none.
func NodeNamed(p *corev1.Pod) string {
	a := p.Spec.Affinity
	if a == nil || a.NodeAffinity == nil || a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return ""
	}
	for _, t := range a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
		for _, f := range t.MatchFields {
			if f.Key == "metadata.name" && f.Operator == corev1.NodeSelectorOpIn && len(f.Values) == 1 {
				return f.Values[0]
			}
		}
	}
	return ""
}
