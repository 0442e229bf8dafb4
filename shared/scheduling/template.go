// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// goodAfter is how long a Node has to be ready before it stands for others: its DaemonSets have settled by then.
const goodAfter = time.Minute

// Templates makes templates of node groups: what the next Node of a MachineSet will be (SPEC C13–C15).
type Templates struct {
	Now           time.Time
	Daemons       []*appsv1.DaemonSet
	Youngest      map[types.UID]*corev1.Pod // of the Pods of each DaemonSet
	CSINodes      []*storagev1.CSINode
	StartupTaints []string           // keys that go away by themselves (SPEC C76)
	Changed       map[types.UID]bool // sets whose next Machine has another size than their Nodes, for certain
}

// Of returns the template of a set: made from a good Node of the set, else from what is remembered of its Nodes, else from
// the set's annotations, else from any of its Nodes. Without any of them there is none. The members are the set's Nodes with the Pods that run
// there. Of good Nodes it is the one with the fewest taints of its own: the next Node has none of what somebody put on one of them.
func (t Templates) Of(set *machine.MachineSet, members []Node) (Node, bool) {
	best, least := -1, math.MaxInt
	for i, n := range members {
		if own := t.OwnTaints(set, n.Node); own < least && t.Good(set, n) {
			best, least = i, own
		}
		if least == 0 {
			break
		}
	}
	if best >= 0 {
		return t.Like(set, renewed(set, members[best])), true
	}
	if n, ok := t.remembered(set); ok {
		return n, true
	}
	if n, ok := t.fromAnnotations(set, members); ok {
		return n, true
	}
	if len(members) > 0 {
		return t.Like(set, renewed(set, members[0])), true
	}
	return Node{}, false
}

// Good reports whether a Node of a set stands for those to come: it is ready for long enough, nobody wants it gone, and the
// set still makes such Machines.
func (t Templates) Good(set *machine.MachineSet, n Node) bool {
	if n.Spec.Unschedulable || !Ready(n.Node, t.StartupTaints) || !Settled(n.Node, t.Now) || !Equipped(set, n.Node) || t.outdated(set, n) {
		return false
	}
	return !slices.ContainsFunc(n.Spec.Taints, func(x corev1.Taint) bool { return x.Key == machine.TaintToBeDeleted })
}

// OwnTaints counts the taints that keep Pods off a Node of a set for good, and that are not what the set says of its Nodes: somebody put them
// on this Node, or on each.
func (t Templates) OwnTaints(set *machine.MachineSet, n *corev1.Node) (count int) {
	lasting := slices.DeleteFunc(slices.Clone(n.Spec.Taints), func(x corev1.Taint) bool { return x.Effect == corev1.TaintEffectPreferNoSchedule || t.passing(x) })
	if len(lasting) == 0 { // as on nearly all
		return 0
	}
	says := kindsOf(taintsOf(set))
	for _, x := range lasting {
		if !says[kindOf(x)] {
			count++
		}
	}
	return count
}

// taintsOf returns the taints that a set says its Nodes have.
func taintsOf(set *machine.MachineSet) []corev1.Taint {
	return withTaints(machine.CarriedByTemplate(set).Taints, set.Annotations[machine.CapacityTaints])
}

// Settled reports whether a Node has been as it is, ready or not, for long enough to be believed.
func Settled(n *corev1.Node, now time.Time) bool {
	ready := machine.NodeCondition(n, corev1.NodeReady)
	return ready != nil && !ready.LastTransitionTime.Add(goodAfter).After(now)
}

// Ready reports whether a Node takes Pods as far as it is concerned: its condition says so, and no taint says that it
// is still starting.
func Ready(n *corev1.Node, startupTaints []string) bool {
	bad := func(t corev1.NodeConditionType) bool {
		c := machine.NodeCondition(n, t)
		return c != nil && c.Status == corev1.ConditionTrue
	}
	if !machine.NodeReady(n) || bad(corev1.NodeNetworkUnavailable) || bad(corev1.NodeDiskPressure) {
		return false
	}
	return !slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeNotReady || t.Key == uninitialized || starting(t, startupTaints)
	})
}

// uninitialized is the key of the taint that a Node has until its cloud's controller has seen to it.
const uninitialized = "node.cloudprovider.kubernetes.io/uninitialized"

// statusPrefix begins the keys of taints that leave a Node ready (SPEC C76).
const statusPrefix = "status-taint.cluster-autoscaler.kubernetes.io/"

func starting(t corev1.Taint, keys []string) bool {
	return slices.Contains(keys, t.Key) || machine.StartupTaint(t.Key)
}

// passing reports whether a taint says something about one Node at one time, not about its group (SPEC C14).
func (t Templates) passing(x corev1.Taint) bool {
	switch x.Key {
	case machine.TaintToBeDeleted, machine.TaintCandidate, uninitialized, "node.cloudprovider.kubernetes.io/shutdown",
		corev1.TaintNodeNotReady, corev1.TaintNodeUnreachable, corev1.TaintNodeUnschedulable, corev1.TaintNodeOutOfService,
		corev1.TaintNodeMemoryPressure, corev1.TaintNodeDiskPressure, corev1.TaintNodePIDPressure, corev1.TaintNodeNetworkUnavailable:
		return true
	}
	return starting(x, t.StartupTaints) || strings.HasPrefix(x.Key, statusPrefix)
}

// Like returns a template made from a Node of the set. What labels that Node alone has a name of its own there, as the Node has.
func (t Templates) Like(set *machine.MachineSet, from Node) Node {
	n := blank(set)
	maps.Copy(n.Labels, from.Labels)
	for _, k := range ownLabels(set, from.Node) {
		n.Labels[k] = n.Name
	}
	n.Labels[corev1.LabelHostname] = n.Name
	for _, x := range from.Spec.Taints {
		if !t.passing(x) {
			n.Spec.Taints = append(n.Spec.Taints, x)
		}
	}
	n.Status.Capacity, n.Status.Allocatable = from.Status.Capacity, from.Status.Allocatable
	pods := t.DaemonPods(n)
	for _, p := range from.Pods {
		if _, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]; mirror {
			pods = append(pods, p)
		}
	}
	return Node{Node: n, Pods: pods, Attach: t.attachLimits(from.Name)}
}

// ownLabels returns the keys of the labels that each Node has with another value: the Node's or its host's name, as drivers of volumes write
// that live on one Node. What the set says, and what tells of a place or a type, is not the Node's own, whatever the Node is called.
func ownLabels(set *machine.MachineSet, n *corev1.Node) (keys []string) {
	says, also := machine.CarriedByTemplate(set).Labels, pairs(set.Annotations[machine.CapacityLabels])
	for k, v := range n.Labels {
		if v == "" || v != n.Name && v != n.Labels[corev1.LabelHostname] || slices.Contains(inherited, k) {
			continue
		}
		if says[k] != v && also[k] != v {
			keys = append(keys, k)
		}
	}
	return keys
}

// attachLimits returns how many volumes of each driver a Node takes. One that has not said is like the others, of which
// the largest counts.
func (t Templates) attachLimits(node string) map[string]int64 {
	most := map[string]int64{}
	for _, c := range t.CSINodes {
		limits := attachLimits(c)
		if c.Name == node && len(limits) > 0 {
			return limits
		}
		for driver, n := range limits {
			most[driver] = max(most[driver], n)
		}
	}
	return most
}

func blank(set *machine.MachineSet) *corev1.Node {
	n := &corev1.Node{}
	n.Name = "template-of-" + set.Namespace + "-" + set.Name
	n.Labels = map[string]string{}
	return n
}
