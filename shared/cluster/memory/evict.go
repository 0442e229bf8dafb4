// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// unsynced is when to ask again about a budget whose controller has not looked at it yet.
const unsynced = 10 * time.Second

// evict deletes a Pod if the budget that covers it allows that now. Pods that do not run, or are on their way out, are
// covered by none. As in the real server the budget is asked, and spent, before the UID is compared.
func (s *Server) evict(at name, d deletion) error {
	pods, _ := plan.ResourceOf("Pod")
	pod, ok := s.objects["Pod"][at].(*corev1.Pod)
	if !ok {
		return cluster.ErrGone
	}
	if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
		if err := s.spend(pod); err != nil {
			return err
		}
	}
	if pod.UID != d.uid {
		return cluster.ErrGone
	}
	if !holds(pod, corev1.DisruptionTarget) {
		n := pod.DeepCopy()
		n.Status.Conditions = append(slices.DeleteFunc(n.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.DisruptionTarget
		}), corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
			LastTransitionTime: metav1.NewTime(s.now()),
		})
		s.keep(pods, at, n)
	}
	return s.delete(pods, at, d)
}

// spend takes one disruption from the budget that covers pod, if one does.
func (s *Server) spend(pod *corev1.Pod) error {
	r, _ := plan.ResourceOf("PodDisruptionBudget")
	covering := s.budgets(pod)
	if len(covering) == 0 {
		return nil
	}
	if len(covering) > 1 {
		return errors.New("more than one disruption budget covers the pod")
	}
	n := covering[0].DeepCopy()
	if !holds(pod, corev1.PodReady) && expendable(n) {
		return nil
	}
	switch {
	case n.Status.ObservedGeneration < n.Generation:
		return &cluster.BlockedError{RetryAfter: unsynced, Message: "disruption budget " + n.Name + " was not looked at yet"}
	case n.Status.DisruptionsAllowed < 0:
		return refuse(fmt.Errorf("disruption budget %s allows %d", n.Name, n.Status.DisruptionsAllowed))
	case n.Status.DisruptionsAllowed == 0:
		return &cluster.BlockedError{Message: fmt.Sprintf("disruption budget %s wants %d healthy pods of now %d",
			n.Name, n.Status.DesiredHealthy, n.Status.CurrentHealthy)}
	}
	n.Status.DisruptionsAllowed--
	if n.Status.DisruptedPods == nil {
		n.Status.DisruptedPods = map[string]metav1.Time{}
	}
	n.Status.DisruptedPods[pod.Name] = metav1.NewTime(s.now())
	s.keep(r, name{n.Namespace, n.Name}, n)
	return nil
}

// budgets returns the disruption budgets that cover pod. A selector that cannot be read covers nothing.
func (s *Server) budgets(pod *corev1.Pod) (covering []*policyv1.PodDisruptionBudget) {
	for _, at := range s.names("PodDisruptionBudget") {
		b, ok := s.objects["PodDisruptionBudget"][at].(*policyv1.PodDisruptionBudget)
		if !ok || at.namespace != pod.Namespace {
			continue
		}
		if sel, err := metav1.LabelSelectorAsSelector(b.Spec.Selector); err == nil && sel.Matches(labels.Set(pod.Labels)) {
			covering = append(covering, b)
		}
	}
	return covering
}

// expendable reports whether b lets go of Pods that are not ready without being spent.
func expendable(b *policyv1.PodDisruptionBudget) bool {
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
}

// holds reports whether a condition of pod is True.
func holds(pod *corev1.Pod, condition corev1.PodConditionType) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == condition && c.Status == corev1.ConditionTrue
	})
}
