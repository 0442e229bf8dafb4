// SPDX-License-Identifier: Apache-2.0

// Package scheduling answers, as the scheduler would, where Pods fit: on Nodes that exist, on Nodes that a group of
// Machines could add, and why not elsewhere.
package scheduling

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machine-functions/machine-functions/shared/binpack"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// Node is a place for Pods: a Node of the cluster, or what the next one of a group will be.
type Node struct {
	*corev1.Node
	Pods   []*corev1.Pod // that take room there; finished ones do not
	Closed bool          // takes no Pod; what runs there counts for affinity and spread all the same
	Last   bool          // is filled after the others
	Gone   bool          // is as good as gone: closed, and nothing for Pods to be spread over
	Briefs []Brief       // of the Pods, in their order, where somebody looked at them already; else nil

	Machine *machine.Machine // of a Node of a set, where it is known
	Attach  map[string]int64 // of a template: volumes that can be attached, by CSI driver; what is not there has no limit
	Useless map[string]bool  // of a template: digests of shapes that it takes none of, whatever it looks like
}

// World is all Nodes with the Pods on them, prepared for many questions. It never changes what it was made of, and is
// not safe for concurrent use.
type World struct {
	nodes   []Node
	axes    *axes
	spaces  spaces
	gpus    GPUs
	storage *storage                 // nil: nothing is known of volumes
	claims  map[string][]*corev1.Pod // by claim: the running Pods that use it
	sole    map[string]bool          // claims that one waiting Pod uses, and no other
	used    []binpack.Vector         // by node
	class   []int                    // by node: equal in what Pods can ask for, the host name aside
	samples []int                    // by class: one of its nodes
	far     []placedTerm             // required anti-affinity of running Pods
	kinds   []kind                   // of running Pods; nil until asked for
	kindAt  map[string]int           // by namespace and labels
	room    []binpack.Vector         // by node, for as many axes as are known
	known   int
	bare    *World // see bound
	others  [][]*corev1.Pod
}

// placedTerm is a running Pod's wish to be alone in a topology domain.
type placedTerm struct {
	term
	value string
	of    *corev1.Pod
}

// kind is all running Pods with the same namespace and labels.
type kind struct {
	namespace string
	labels    labels.Set
	on        []int // nodes, one entry for each Pod that is not on its way out
	leaving   []int // nodes of those that are
}

// NewWorld returns the world of nodes. The waiting Pods are those that will be asked about first: what they ask for
// gets an axis before what others have.
func NewWorld(nodes []Node, waiting []*corev1.Pod, facts *Facts) *World {
	w := &World{nodes: nodes, spaces: facts.spaces(), gpus: facts.gpus(), storage: facts.storage()}
	w.axes = w.axesOf(waiting, facts.coming())
	w.prepare()
	return w
}

// prepare looks at all Pods of the nodes.
func (w *World) prepare() {
	nodes := w.nodes
	w.claims = map[string][]*corev1.Pod{}
	w.used = make([]binpack.Vector, len(nodes))
	asked := map[*corev1.Pod]binpack.Vector{}
	for n := range nodes {
		for i, b := range nodes[n].briefs() {
			v, ok := asked[b.like]
			if !ok {
				v, _ = w.axes.pod(b.like)
				if b.like != nodes[n].Pods[i] || len(asked) < mostLikes {
					asked[b.like] = v
				}
			}
			w.used[n].Add(&v)
			if b.apart || b.claim {
				w.note(nodes[n].Pods[i], n)
			}
		}
	}
	w.classify()
}

// note remembers what a running Pod means to others: rules that keep them away, and claims.
func (w *World) note(p *corev1.Pod, n int) {
	for _, t := range w.standing(p) {
		if value, ok := w.nodes[n].Labels[t.key]; ok {
			w.far = append(w.far, placedTerm{t, value, p})
		}
	}
	for i := range p.Spec.Volumes {
		if c := p.Spec.Volumes[i].PersistentVolumeClaim; c != nil {
			key := p.Namespace + "/" + c.ClaimName
			w.claims[key] = append(slices.Clip(w.claims[key]), p) // another world may have the same list
		}
	}
}

// free is what the nodes have left. The axes may have grown since it was last asked for.
func (w *World) free() []binpack.Vector {
	if len(w.axes.names) == w.known {
		return w.room
	}
	w.known = len(w.axes.names)
	w.room = make([]binpack.Vector, len(w.nodes))
	for n := range w.nodes {
		w.room[n] = w.axes.node(w.nodes[n].Status.Allocatable).Minus(w.used[n])
		w.attachable(&w.room[n], n)
	}
	return w.room
}

// classify finds nodes that are the same to every Pod that does not ask for a host by name.
func (w *World) classify() {
	seen := map[string]int{}
	w.class = make([]int, len(w.nodes))
	var buffer []byte
	for n := range w.nodes {
		buffer = w.nodes[n].looks(buffer[:0])
		c, ok := seen[string(buffer)] // looking it up makes no copy
		if !ok {
			c = len(w.samples)
			seen[string(buffer)] = c
			w.samples = append(w.samples, n)
		}
		w.class[n] = c
	}
}

// looks appends what makes a node's class.
func (n *Node) looks(b []byte) []byte {
	var few [16]string
	keys := few[:0]
	for k := range n.Labels {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return n.fences(n.labeled(b, keys))
}

// labeled appends those of some labels that a node has, but for its name.
func (n *Node) labeled(b []byte, keys []string) []byte {
	for _, k := range keys {
		if value, ok := n.Labels[k]; ok && k != corev1.LabelHostname {
			b = append(append(append(append(b, k...), '='), value...), '\n')
		}
	}
	return b
}

// fences appends what keeps Pods off a node, whatever its labels are.
func (n *Node) fences(b []byte) []byte {
	for _, t := range n.Spec.Taints {
		b = append(append(append(append(append(append(b, t.Key...), '='), t.Value...), ':'), t.Effect...), '\n')
	}
	if n.Spec.Unschedulable {
		b = append(b, '!')
	}
	return b
}

// running returns the kinds of running Pods.
func (w *World) running() []kind {
	if w.kinds != nil {
		return w.kinds
	}
	w.kindAt, w.kinds = map[string]int{}, []kind{}
	for n := range w.nodes {
		w.sort(n, w.nodes[n].Pods)
	}
	return w.kinds
}

// sort puts Pods of a node with those of their kind.
func (w *World) sort(n int, pods []*corev1.Pod) {
	var few [256]byte
	buffer := few[:0]
	for _, p := range pods {
		buffer = appendMap(append(append(buffer[:0], p.Namespace...), '\n'), p.Labels)
		k, ok := w.kindAt[string(buffer)]
		if !ok {
			k = len(w.kinds)
			w.kindAt[string(buffer)] = k
			w.kinds = append(w.kinds, kind{namespace: p.Namespace, labels: p.Labels})
		}
		if p.DeletionTimestamp != nil {
			w.kinds[k].leaving = append(w.kinds[k].leaving, n)
			continue
		}
		w.kinds[k].on = append(w.kinds[k].on, n)
	}
}

// With returns the world as it is once more Pods are on its nodes, by node, in a fraction of the time that it takes to
// look at all of them anew.
func (w *World) With(more map[int][]*corev1.Pod) *World {
	next := &World{
		nodes: slices.Clone(w.nodes), axes: w.axes, spaces: w.spaces, gpus: w.gpus, storage: w.storage, claims: maps.Clone(w.claims),
		used: slices.Clone(w.used), class: w.class, samples: w.samples, far: slices.Clone(w.far),
	}
	if w.kinds != nil {
		next.kindAt, next.kinds = maps.Clone(w.kindAt), slices.Clone(w.kinds)
		for k := range next.kinds {
			next.kinds[k].on, next.kinds[k].leaving = slices.Clip(next.kinds[k].on), slices.Clip(next.kinds[k].leaving)
		}
	}
	for _, n := range slices.Sorted(maps.Keys(more)) {
		node := &next.nodes[n]
		node.Pods, node.Briefs = slices.Concat(node.Pods, more[n]), nil
		for _, p := range more[n] {
			v, _ := next.axes.pod(p)
			next.used[n].Add(&v)
			next.note(p, n)
		}
		if next.kinds != nil {
			next.sort(n, more[n])
		}
	}
	return next
}

// count adds up, by node, the running Pods that match. Pods on their way out count for affinity only.
func (w *World) count(m matcher, leaving bool) map[int]int {
	counts := map[int]int{}
	for i := range w.running() {
		k := &w.kinds[i]
		if !m.matches(k.namespace, k.labels) {
			continue
		}
		for _, n := range k.on {
			counts[n]++
		}
		if leaving {
			for _, n := range k.leaving {
				counts[n]++
			}
		}
	}
	return counts
}

// held is count for a spread constraint. The scheduler holds that a selector of everything selects nothing that runs.
func (w *World) held(s *spread) map[int]int {
	if s.selector.Empty() {
		return nil
	}
	return w.count(s.matcher, false)
}
