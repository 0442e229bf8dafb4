// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// GPU is the resource of graphics processors, unless the set names another (SPEC B88).
const GPU = machine.ResourceGPU

// vendors are the resources by which device plugins offer whole GPUs, or what is used in their place. Those that offer
// shares of one, or the graphics of any processor, count only where a set names them.
var vendors = GPUs{GPU: true, "amd.com/gpu": true, "habana.ai/gaudi": true, "google.com/tpu": true, "aws.amazon.com/neuron": true}

// GPUs are the resources that stand for graphics processors, whoever made them.
type GPUs map[corev1.ResourceName]bool

// GPUsOf returns the resources of the vendors that are known, and those that sets say are theirs.
func GPUsOf(sets []*machine.MachineSet) GPUs {
	var all GPUs
	for _, s := range sets {
		name := corev1.ResourceName(machine.GPUType(s.Annotations))
		if vendors[name] || all[name] {
			continue
		}
		if all == nil {
			all = maps.Clone(vendors)
		}
		all[name] = true
	}
	if all == nil {
		return vendors
	}
	return all
}

// In returns the resource of the GPUs in a list, and how many there are: of several resources the one with the most,
// between equals the first by name. Without any it is the empty name.
func (g GPUs) In(list corev1.ResourceList) (name corev1.ResourceName, count int64) {
	for r, q := range list {
		if !g[r] || q.Sign() <= 0 {
			continue
		}
		if name == "" || cmp.Or(cmp.Compare(Amount(r, q), count), cmp.Compare(name, r)) > 0 {
			name, count = r, Amount(r, q)
		}
	}
	return name, count
}

// AskedBy reports whether a Pod asks for GPUs.
func (g GPUs) AskedBy(p *corev1.Pod) bool {
	return g.askedBy(p.Spec.Containers) || g.askedBy(p.Spec.InitContainers)
}

func (g GPUs) askedBy(containers []corev1.Container) bool {
	for i := range containers { // they are large: none is copied
		for r := range containers[i].Resources.Requests {
			if g[r] {
				return true
			}
		}
	}
	return false
}
