// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// Annotations of Pods and Nodes that speak to the autoscaler (SPEC B.5).
const (
	safeAnnotation     = "cluster-autoscaler.kubernetes.io/safe-to-evict"
	volumesAnnotation  = "cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes"
	delayAnnotation    = "cluster-autoscaler.kubernetes.io/pod-scale-up-delay"
	disabledAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
)

const (
	// onCompletion holds a Node until its Pod has ended (SPEC C62).
	onCompletion = "BlockedByOnCompletionPod"
	// systemPodAge is how old a Pod of kube-system without a budget has to be before it may be moved (SPEC C72).
	systemPodAge = time.Hour
	// pastGrace is how long after its grace period a Pod that is being deleted counts as gone (SPEC C68).
	pastGrace = 30 * time.Second
)

// stays reports whether a Pod keeps its Node neither alive nor occupied: it goes with the Node (SPEC C67, C68, C70).
func (sc *scan) stays(p *corev1.Pod) bool {
	_, mirror := p.Annotations[corev1.MirrorPodAnnotationKey]
	return mirror || scheduling.OfDaemonSet(p) || p.DeletionTimestamp != nil && !sc.Now.Before(p.DeletionTimestamp.Add(pastGrace))
}

// remaining returns the Pods on a Node that have to leave before it is empty.
func (sc *scan) remaining(n *corev1.Node) (pods []*corev1.Pod) {
	for _, p := range sc.running[n.Name] {
		if p.Spec.NodeName == n.Name && !sc.stays(p) {
			pods = append(pods, p)
		}
	}
	return pods
}

// emptied reports whether nobody is on a Node any more who has to leave before it goes, but those that came back.
func (sc *scan) emptied(r autoscaling.Removal, n *corev1.Node) bool {
	return !slices.ContainsFunc(sc.remaining(n), func(p *corev1.Pod) bool { return !sc.cameBack(p, r) })
}

// cameBack reports whether a Pod came to a Node that is drained although that takes none, which it tolerates: to evict it would bring the next
// one. For its Machine, once that is deleted, it is evicted as any other.
func (sc *scan) cameBack(p *corev1.Pod, r autoscaling.Removal) bool {
	return r.Drain && scheduling.CameThoughCordoned(p, r.At.Time, sc.Now)
}

// occupied reports whether Pods have to leave before a Node is empty.
func (sc *scan) occupied(n *corev1.Node) bool {
	return slices.ContainsFunc(sc.running[n.Name], func(p *corev1.Pod) bool { return p.Spec.NodeName == n.Name && !sc.stays(p) })
}

// toMove returns the Pods that need a place elsewhere if a Node goes: those that are leaving already need none.
func (sc *scan) toMove(n *corev1.Node) (pods []*corev1.Pod) {
	all := sc.running[n.Name]
	for i, p := range all {
		if !sc.stays(p) && p.DeletionTimestamp == nil {
			if pods == nil {
				pods = make([]*corev1.Pod, 0, len(all)-i)
			}
			pods = append(pods, p)
		}
	}
	return pods
}

// succeeded returns the Pods on a Node that leave and that a StatefulSet makes anew once they are gone, under the same name and with the same volumes:
// the next one needs a place, which may be here alone. A ReplicaSet's Pod has its successor already.
func (sc *scan) succeeded(n *corev1.Node) (pods []*corev1.Pod) {
	if !sc.leavers[n.Name] { // as nearly always
		return nil
	}
	for _, p := range sc.running[n.Name] {
		if owner := metav1.GetControllerOfNoCopy(p); p.DeletionTimestamp != nil && !sc.stays(p) && owner != nil && owner.Kind == "StatefulSet" {
			pods = append(pods, p)
		}
	}
	return pods
}

// blocks returns why a Pod must not be moved for a scale-down, budgets aside (SPEC C70–C74).
func (sc *scan) blocks(p *corev1.Pod) string {
	safe := p.Annotations[safeAnnotation]
	switch safe {
	case "true":
		return ""
	case "on-completion":
		return onCompletion
	}
	owner := metav1.GetControllerOfNoCopy(p)
	switch {
	case owner == nil || !replicates(owner):
		return "NotReplicated"
	case p.Namespace == metav1.NamespaceSystem && sc.youngSystemPod(p) && len(sc.budgetsOf(p)) == 0:
		return "UnmovableKubeSystemPod"
	case safe == "false":
		return "NotSafeToEvictAnnotation"
	case sc.settings.SkipNodesWithLocalStorage && hasLocalStorage(p):
		return "LocalStorageRequested"
	}
	return ""
}

// replicates reports whether a controller makes a Pod anew that is evicted. Of a kind of the same name in another API group nobody knows
// (SPEC C69, C71).
func replicates(owner *metav1.OwnerReference) bool {
	group, _, named := strings.Cut(owner.APIVersion, "/")
	if !named {
		group = corev1.GroupName
	}
	switch owner.Kind {
	case "ReplicationController":
		return group == corev1.GroupName
	case "ReplicaSet", "StatefulSet":
		return group == appsv1.GroupName
	case "Job":
		return group == batchv1.GroupName
	}
	return false
}

// outlasts returns the reason if a Pod that is being deleted ends later than one would that is evicted for a removal which begins at a time
// (SPEC C64): who deleted it gave it more time than the settings give. To wait for it would keep the only place of a drain from all other Nodes.
func outlasts(p *corev1.Pod, at time.Time, grace time.Duration) string {
	if p.DeletionTimestamp == nil || !p.DeletionTimestamp.After(at.Add(maxPodEviction+grace+pastGrace)) {
		return ""
	}
	return "it is being deleted and has until " + machine.Stamp(p.DeletionTimestamp.Time) + " to end"
}

// youngSystemPod reports whether a Pod of kube-system is so new that it may not be moved. Of one that a clock which was ahead made nobody
// knows: it is not (RELIABILITY G7).
func (sc *scan) youngSystemPod(p *corev1.Pod) bool {
	made := p.CreationTimestamp.Time
	return sc.Now.Before(made.Add(systemPodAge)) && !machine.TooFar(made, sc.Now, 0)
}

// hasLocalStorage reports a volume that would be lost with the Node, unless the Pod says that it may be.
func hasLocalStorage(p *corev1.Pod) bool {
	if len(p.Spec.Volumes) == 0 {
		return false
	}
	may := strings.Split(p.Annotations[volumesAnnotation], ",")
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		lost := v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
		return lost && !slices.Contains(may, v.Name)
	})
}

// guard is a disruption budget, compiled.
type guard struct {
	at       int                             // in the list of budgets
	alone    []*policyv1.PodDisruptionBudget // itself
	selector labels.Selector
}

// guards are the budgets of one namespace, by a label that their Pods have; those that ask for none are apart.
type guards struct {
	byLabel []labeled
	rest    []guard
}

// labeled are budgets whose Pods have a label with some value.
type labeled struct {
	key     string
	byValue map[string][]guard
}

// guardsOf compiles the budgets of every namespace. A selector that does not parse covers nothing.
func guardsOf(all []*policyv1.PodDisruptionBudget) map[string]*guards {
	by := map[string]*guards{}
	for i, b := range all {
		selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if err != nil {
			continue
		}
		if by[b.Namespace] == nil {
			by[b.Namespace] = &guards{}
		}
		in, g := by[b.Namespace], guard{i, []*policyv1.PodDisruptionBudget{b}, selector}
		if b.Spec.Selector == nil || len(b.Spec.Selector.MatchLabels) == 0 {
			in.rest = append(in.rest, g)
			continue
		}
		key := slices.Min(slices.Collect(maps.Keys(b.Spec.Selector.MatchLabels)))
		k := slices.IndexFunc(in.byLabel, func(l labeled) bool { return l.key == key })
		if k < 0 {
			k, in.byLabel = len(in.byLabel), append(in.byLabel, labeled{key, map[string][]guard{}})
		}
		value := b.Spec.Selector.MatchLabels[key]
		in.byLabel[k].byValue[value] = append(in.byLabel[k].byValue[value], g)
	}
	return by
}

// budgetsOf returns the disruption budgets that cover a Pod, in the order of the list.
func (sc *scan) budgetsOf(p *corev1.Pod) []*policyv1.PodDisruptionBudget {
	in := sc.guards[p.Namespace]
	if in == nil {
		return nil
	}
	var few [4]guard
	found := cover(few[:0], in.rest, p)
	for i := range in.byLabel {
		if value, ok := p.Labels[in.byLabel[i].key]; ok {
			found = cover(found, in.byLabel[i].byValue[value], p)
		}
	}
	switch len(found) {
	case 0:
		return nil
	case 1: // as nearly always
		return found[0].alone
	}
	slices.SortFunc(found, func(a, b guard) int { return cmp.Compare(a.at, b.at) })
	var all []*policyv1.PodDisruptionBudget
	for _, g := range found {
		all = append(all, g.alone...)
	}
	return all
}

// cover appends those of a list that cover a Pod.
func cover(found, list []guard, p *corev1.Pod) []guard {
	for _, g := range list {
		if g.selector.Matches(labels.Set(p.Labels)) {
			found = append(found, g)
		}
	}
	return found
}

// budgets are what disruption budgets have left while scale-downs are planned one after the other (SPEC C75).
type budgets map[*policyv1.PodDisruptionBudget]int32

func (sc *scan) budgets() budgets {
	b := budgets{}
	for _, x := range sc.DisruptionBudgets {
		b[x] = x.Status.DisruptionsAllowed
	}
	return b
}

// evicted returns the Pods that have to be evicted before a candidate is empty, however unimportant they are: whoever drains it for the
// Machine that is given up keeps to the budgets of these as well.
func (sc *scan) evicted(c candidate) []*corev1.Pod {
	if len(sc.lesser[c.node.Name]) == 0 { // as nearly always
		return c.own
	}
	lesser := slices.DeleteFunc(slices.Clone(sc.lesser[c.node.Name]), func(p *corev1.Pod) bool { return sc.stays(p) || p.DeletionTimestamp != nil })
	return slices.Concat(c.own, lesser)
}

// twice returns the reason if several budgets cover a Pod: the API server refuses to evict it for as long as they do, however
// much each of them allows.
func (sc *scan) twice(p *corev1.Pod) string { return twice(sc.charged(p)) }

// charged returns the budgets that an eviction of a Pod is asked of.
func (sc *scan) charged(p *corev1.Pod) []*policyv1.PodDisruptionBudget {
	return scheduling.Charged(p, sc.budgetsOf(p))
}

func twice(all []*policyv1.PodDisruptionBudget) string {
	if len(all) > 1 {
		return fmt.Sprintf("NotEnoughPdb: %s and %s both cover it, and no pod of two budgets is evicted", all[0].Name, all[1].Name)
	}
	return ""
}

// short returns the reason if a budget of any of the Pods allows no eviction at all. One eviction is enough: the Pods
// of a Node are evicted one after the other, as fast as their budgets allow.
func (b budgets) short(sc *scan, pods []*corev1.Pod) string {
	for _, p := range pods {
		all := sc.charged(p)
		if why := twice(all); why != "" {
			return blockedBy(p, why)
		}
		for _, x := range all {
			if b[x] < 1 {
				return blockedBy(p, fmt.Sprintf("NotEnoughPdb: %s allows %d disruptions", x.Name, x.Status.DisruptionsAllowed))
			}
		}
	}
	return ""
}

// spend takes the evictions of Pods from their budgets.
func (b budgets) spend(sc *scan, pods []*corev1.Pod) {
	for _, p := range pods {
		for _, x := range sc.charged(p) {
			b[x]--
		}
	}
}
