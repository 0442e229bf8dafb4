// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// pieces is into how many parts a Pod's room is divided.
const pieces = 32

// promises returns, by place, Pods that keep the room that they were promised. This packing may find no place for some of them, unlike
// the one that they were counted on in. They wait for their Nodes all the same, and pieces of them keep what room these have left, or it
// would be given to whoever comes later.
func (sc *scan) promises(counted []*corev1.Pod) (kept, parts map[int][]*corev1.Pod) {
	p := sc.fit(sc.world, counted, nil)
	kept = placed(p)
	var firsts, others []*corev1.Pod
	for i, shape := range p.Shapes {
		if left := p.Left[i]; left > 0 {
			first, other := pieceOf(shape.Pods[0])
			firsts = append(firsts, slices.Repeat([]*corev1.Pod{first}, left)...)
			others = append(others, slices.Repeat([]*corev1.Pod{other}, left*(pieces-1))...)
		}
	}
	if len(firsts) == 0 {
		return kept, nil
	}
	var nodes []scheduling.Node
	var at []int
	for i, n := range sc.seen {
		if sc.places[i].fresh {
			n.Pods, n.Briefs = slices.Concat(n.Pods, kept[i]), nil
			nodes, at = append(nodes, n), append(at, i)
		}
	}
	heads := placed(sc.fit(scheduling.NewWorld(nodes, firsts, sc.facts()), firsts, nil)) // each takes the place of one Pod
	for i := range nodes {
		nodes[i].Node, nodes[i].Pods = ofAnyPods(nodes[i].Node), slices.Concat(nodes[i].Pods, heads[i])
	}
	rests := placed(sc.fit(scheduling.NewWorld(nodes, others, sc.facts()), others, nil))
	parts = map[int][]*corev1.Pod{}
	for i, where := range at {
		head, rest := heads[i], rests[i]
		if len(rest) > 0 {
			n := min(1, len(head))
			head = append([]*corev1.Pod{joined(slices.Concat(head[:n], rest))}, head[n:]...)
		}
		if len(head) > 0 {
			parts[where] = head
		}
	}
	return kept, parts
}

// ofAnyPods returns a Node that any number of Pods may be on: pieces are many where Pods are few.
func ofAnyPods(n *corev1.Node) *corev1.Node {
	next := *n
	next.Status.Allocatable = maps.Clone(n.Status.Allocatable)
	if next.Status.Allocatable == nil {
		next.Status.Allocatable = corev1.ResourceList{}
	}
	next.Status.Allocatable[corev1.ResourcePods] = *resource.NewQuantity(math.MaxInt32, resource.DecimalSI)
	return &next
}

// joined returns one Pod that asks for what pieces in one place ask for together, so that they take the place of one.
func joined(parts []*corev1.Pod) *corev1.Pod {
	x, sum := *parts[0], corev1.ResourceList{}
	for _, p := range parts {
		for name, q := range p.Spec.Containers[0].Resources.Requests {
			has := sum[name]
			has.Add(q)
			sum[name] = has
		}
	}
	x.Spec.Containers = []corev1.Container{{Name: "pieces", Resources: corev1.ResourceRequirements{Requests: sum}}}
	return &x
}

// pieceOf divides what a Pod asks for into equal pieces, of which the first has what cannot be divided as well. Rules about other Pods
// are in none.
func pieceOf(p *corev1.Pod) (first, other *corev1.Pod) {
	whole, part := scheduling.Requests(p).DeepCopy(), corev1.ResourceList{}
	for _, name := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		if q, asks := whole[name]; asks {
			part[name] = *resource.NewMilliQuantity(q.MilliValue()/pieces, q.Format)
			whole[name] = part[name]
		}
	}
	piece := func(name string, requests corev1.ResourceList) *corev1.Pod {
		x := &corev1.Pod{Spec: corev1.PodSpec{Priority: p.Spec.Priority, NodeSelector: p.Spec.NodeSelector, Tolerations: p.Spec.Tolerations}}
		if a := p.Spec.Affinity; a != nil {
			x.Spec.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity}
		}
		x.Namespace, x.Name, x.UID = p.Namespace, p.Name+"-"+name, types.UID(name+"/"+string(p.UID))
		x.Spec.Containers = []corev1.Container{{Name: name, Resources: corev1.ResourceRequirements{Requests: requests}}}
		return x
	}
	return piece("first", whole), piece("other", part)
}
