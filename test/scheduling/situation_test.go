// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"sigs.k8s.io/yaml"

	ours "github.com/machine-functions/machine-functions/shared/scheduling"
)

// situation is a cluster, as far as scheduling is concerned, and Pods that wait.
type situation struct {
	Nodes       []*corev1.Node
	Pods        []*corev1.Pod // bound to a Node, or nominated for one
	Waiting     []*corev1.Pod
	Namespaces  []*corev1.Namespace
	Claims      []*corev1.PersistentVolumeClaim
	Volumes     []*corev1.PersistentVolume
	Classes     []*storagev1.StorageClass
	CSINodes    []*storagev1.CSINode
	Attachments []*storagev1.VolumeAttachment
}

// world is the situation as shared/scheduling sees it.
func (x *situation) world() *ours.World {
	var nodes []ours.Node
	for _, n := range x.Nodes {
		node := ours.Node{Node: n}
		for _, p := range x.Pods {
			if p.Spec.NodeName == n.Name || p.Spec.NodeName == "" && p.Status.NominatedNodeName == n.Name {
				node.Pods = append(node.Pods, p)
			}
		}
		nodes = append(nodes, node)
	}
	return ours.NewWorld(nodes, x.Waiting, &ours.Facts{
		Namespaces: x.Namespaces, Claims: x.Claims, Volumes: x.Volumes, Classes: x.Classes, CSINodes: x.CSINodes, Attachments: x.Attachments,
	})
}

// String is the situation as YAML, for reading.
func (x *situation) String() string {
	var b strings.Builder
	section(&b, "nodes", x.Nodes)
	section(&b, "pods", x.Pods)
	section(&b, "waiting", x.Waiting)
	section(&b, "namespaces", x.Namespaces)
	section(&b, "claims", x.Claims)
	section(&b, "volumes", x.Volumes)
	section(&b, "classes", x.Classes)
	section(&b, "csinodes", x.CSINodes)
	section(&b, "attachments", x.Attachments)
	return b.String()
}

func section[T any](b *strings.Builder, name string, list []T) {
	if len(list) == 0 {
		return
	}
	text, err := yaml.Marshal(list)
	if err != nil {
		text = []byte(err.Error())
	}
	b.WriteString("-- " + name + " --\n")
	for line := range strings.Lines(string(text)) { // what is never set says nothing
		if !strings.HasSuffix(line, `: ""`+"\n") && !strings.HasSuffix(line, ": {}\n") && !strings.Contains(line, "kubeletEndpoint") && !strings.Contains(line, "Port: 0") {
			b.WriteString(line)
		}
	}
}

// shrunk returns the smallest situation that it can find in which something still holds. It tries to leave out
// objects, then fields of Pods and Nodes, until nothing more can go.
func (x *situation) shrunk(holds func(*situation) bool) *situation {
	best := x
	try := func(change func(*situation)) bool {
		smaller := best.copy()
		change(smaller)
		if !smaller.sound() || !holds(smaller) {
			return false
		}
		best = smaller
		return true
	}
	for again := true; again; {
		again = false
		again = leaveOut(try, func(s *situation) *[]*corev1.Pod { return &s.Waiting }) || again
		again = leaveOut(try, func(s *situation) *[]*corev1.Node { return &s.Nodes }) || again
		again = leaveOut(try, func(s *situation) *[]*corev1.Pod { return &s.Pods }) || again
		again = leaveOut(try, func(s *situation) *[]*corev1.Namespace { return &s.Namespaces }) || again
		again = leaveOut(try, func(s *situation) *[]*corev1.PersistentVolumeClaim { return &s.Claims }) || again
		again = leaveOut(try, func(s *situation) *[]*corev1.PersistentVolume { return &s.Volumes }) || again
		again = leaveOut(try, func(s *situation) *[]*storagev1.StorageClass { return &s.Classes }) || again
		again = leaveOut(try, func(s *situation) *[]*storagev1.CSINode { return &s.CSINodes }) || again
		again = leaveOut(try, func(s *situation) *[]*storagev1.VolumeAttachment { return &s.Attachments }) || again
		again = simplify(try, func(s *situation) []*corev1.Pod { return s.Pods }, podParts, best) || again
		again = simplify(try, func(s *situation) []*corev1.Pod { return s.Waiting }, podParts, best) || again
		again = simplify(try, func(s *situation) []*corev1.Node { return s.Nodes }, nodeParts, best) || again
	}
	return best
}

// sound reports whether all Pods are on Nodes that are there.
func (x *situation) sound() bool {
	for _, p := range x.Pods {
		name := cmp.Or(p.Spec.NodeName, p.Status.NominatedNodeName)
		if !slices.ContainsFunc(x.Nodes, func(n *corev1.Node) bool { return n.Name == name }) {
			return false
		}
	}
	return true
}

func leaveOut[T any](try func(func(*situation)) bool, list func(*situation) *[]T) (simpler bool) {
	for i := 0; i < 100; i++ {
		there := false
		gone := try(func(s *situation) {
			l := list(s)
			if there = i < len(*l); there {
				*l = append((*l)[:i:i], (*l)[i+1:]...)
			}
		})
		if !there {
			break
		}
		if gone {
			simpler = true
			i--
		}
	}
	return simpler
}

// simplify takes parts away from objects, one at a time. A part reports whether there was anything to take.
func simplify[T any](try func(func(*situation)) bool, list func(*situation) []T, parts []func(T) bool, now *situation) (simpler bool) {
	for i := range list(now) {
		for _, part := range parts {
			there := false
			gone := try(func(s *situation) {
				if l := list(s); i < len(l) {
					there = part(l[i])
				}
			})
			simpler = simpler || there && gone
		}
	}
	return simpler
}

// clearSlice, clearMap and clearPointer empty something and report whether there was anything.
func clearSlice[T any](s *[]T) bool {
	had := len(*s) > 0
	*s = nil
	return had
}

func clearMap[M ~map[K]V, K comparable, V any](m *M) bool {
	had := len(*m) > 0
	*m = nil
	return had
}

func clearPointer[T any](p **T) bool {
	had := *p != nil
	*p = nil
	return had
}

var podParts = []func(*corev1.Pod) bool{
	func(p *corev1.Pod) bool { return clearPointer(&p.Spec.Affinity) },
	func(p *corev1.Pod) bool { return p.Spec.Affinity != nil && clearPointer(&p.Spec.Affinity.NodeAffinity) },
	func(p *corev1.Pod) bool { return p.Spec.Affinity != nil && clearPointer(&p.Spec.Affinity.PodAffinity) },
	func(p *corev1.Pod) bool {
		return p.Spec.Affinity != nil && clearPointer(&p.Spec.Affinity.PodAntiAffinity)
	},
	func(p *corev1.Pod) bool { return clearSlice(&p.Spec.TopologySpreadConstraints) },
	func(p *corev1.Pod) bool { return firstOnly(&p.Spec.TopologySpreadConstraints) },
	func(p *corev1.Pod) bool { return clearSlice(&p.Spec.Tolerations) },
	func(p *corev1.Pod) bool { return clearSlice(&p.Spec.Volumes) },
	func(p *corev1.Pod) bool { return firstOnly(&p.Spec.Volumes) },
	func(p *corev1.Pod) bool { return clearSlice(&p.Spec.InitContainers) },
	func(p *corev1.Pod) bool { return clearMap(&p.Spec.NodeSelector) },
	func(p *corev1.Pod) bool { return clearMap(&p.Spec.Overhead) },
	func(p *corev1.Pod) bool { return clearPointer(&p.Spec.Resources) },
	func(p *corev1.Pod) bool { return clearPointer(&p.Spec.Priority) },
	func(p *corev1.Pod) bool { return clearSlice(&p.Status.ContainerStatuses) },
	func(p *corev1.Pod) bool { return clearSlice(&p.Spec.Containers[0].Ports) },
	func(p *corev1.Pod) bool { return clearMap(&p.Spec.Containers[0].Resources.Requests) },
	func(p *corev1.Pod) bool { return clearPointer(&p.DeletionTimestamp) },
	func(p *corev1.Pod) bool { return clearMap(&p.Labels) },
}

func firstOnly[T any](s *[]T) bool {
	if len(*s) < 2 {
		return false
	}
	*s = (*s)[:1]
	return true
}

var nodeParts = []func(*corev1.Node) bool{
	func(n *corev1.Node) bool { return clearSlice(&n.Spec.Taints) },
	func(n *corev1.Node) bool { return firstOnly(&n.Spec.Taints) },
	func(n *corev1.Node) bool { had := n.Spec.Unschedulable; n.Spec.Unschedulable = false; return had },
}

func (x *situation) copy() *situation {
	return &situation{
		Nodes: copies(x.Nodes), Pods: copies(x.Pods), Waiting: copies(x.Waiting), Namespaces: copies(x.Namespaces), Claims: copies(x.Claims),
		Volumes: copies(x.Volumes), Classes: copies(x.Classes), CSINodes: copies(x.CSINodes), Attachments: copies(x.Attachments),
	}
}

func copies[T interface{ DeepCopy() T }](list []T) (all []T) {
	for _, o := range list {
		all = append(all, o.DeepCopy())
	}
	return all
}
