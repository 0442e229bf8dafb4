// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
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
	return mirror || ofDaemonSet(p) || p.DeletionTimestamp != nil && !sc.Now.Before(p.DeletionTimestamp.Add(pastGrace))
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

// toMove returns the Pods that need a place elsewhere if a Node goes: those that are leaving already need none.
func (sc *scan) toMove(n *corev1.Node) (pods []*corev1.Pod) {
	for _, p := range sc.running[n.Name] {
		if !sc.stays(p) && p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// blocks returns why a Pod must not be moved for a scale-down, budgets aside (SPEC C70–C74).
func (sc *scan) blocks(p *corev1.Pod) string {
	switch p.Annotations[safeAnnotation] {
	case "true":
		return ""
	case "on-completion":
		return onCompletion
	}
	owner := metav1.GetControllerOf(p)
	switch {
	case owner == nil || !slices.Contains([]string{"ReplicationController", "Job", "ReplicaSet", "StatefulSet"}, owner.Kind):
		return "NotReplicated"
	case p.Namespace == metav1.NamespaceSystem && sc.Now.Before(p.CreationTimestamp.Add(systemPodAge)) && len(sc.budgetsOf(p)) == 0:
		return "UnmovableKubeSystemPod"
	case p.Annotations[safeAnnotation] == "false":
		return "NotSafeToEvictAnnotation"
	case sc.settings.SkipNodesWithLocalStorage && hasLocalStorage(p):
		return "LocalStorageRequested"
	}
	return ""
}

// hasLocalStorage reports a volume that would be lost with the Node, unless the Pod says that it may be.
func hasLocalStorage(p *corev1.Pod) bool {
	may := strings.Split(p.Annotations[volumesAnnotation], ",")
	return slices.ContainsFunc(p.Spec.Volumes, func(v corev1.Volume) bool {
		lost := v.HostPath != nil || v.EmptyDir != nil && v.EmptyDir.Medium != corev1.StorageMediumMemory
		return lost && !slices.Contains(may, v.Name)
	})
}

// guard is a disruption budget, compiled.
type guard struct {
	budget   *policyv1.PodDisruptionBudget
	selector labels.Selector
}

// guardsOf compiles the budgets of every namespace. A selector that does not parse covers nothing.
func guardsOf(all []*policyv1.PodDisruptionBudget) map[string][]guard {
	by := map[string][]guard{}
	for _, b := range all {
		if selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil {
			by[b.Namespace] = append(by[b.Namespace], guard{b, selector})
		}
	}
	return by
}

// budgetsOf returns the disruption budgets that cover a Pod.
func (sc *scan) budgetsOf(p *corev1.Pod) (all []*policyv1.PodDisruptionBudget) {
	for _, g := range sc.guards[p.Namespace] {
		if g.selector.Matches(labels.Set(p.Labels)) {
			all = append(all, g.budget)
		}
	}
	return all
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

// short returns the reason if a budget of any of the Pods allows no eviction at all. One eviction is enough: the Pods
// of a Node are evicted one after the other, as fast as their budgets allow.
func (b budgets) short(sc *scan, pods []*corev1.Pod) string {
	for _, p := range pods {
		for _, x := range sc.budgetsOf(p) {
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
		for _, x := range sc.budgetsOf(p) {
			b[x]--
		}
	}
}
