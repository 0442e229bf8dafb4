// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
)

var evicting = []test{
	{"an evicted pod gets its own time to end", evictRunning},
	{"an eviction may shorten that time", evictSoon},
	{"a pod that is bound to no node is evicted at once", evictUnbound},
	{"a pod that has ended is evicted at once, whatever the budget", evictEnded},
	{"a spent budget blocks and is named", evictBlocked},
	{"a budget is spent by one eviction", evictAllowed},
	{"a pod that is not ready goes while enough others are", evictUnready},
	{"two budgets over a pod are an error", evictTwoBudgets},
	{"an eviction of what is gone, or of another pod of that name, is ErrGone", evictGone},
	{"a node that goes leaves its pods", nodeLeavesPods},
}

// running returns a Pod on a Node whose kubelet says that it runs, and whether it is ready.
func (h Harness) running(t *testing.T, name, node string, ready corev1.ConditionStatus) *corev1.Pod {
	t.Helper()
	return updateStatus(t, h, create(t, h, h.pod(name, node)), func(p *corev1.Pod) {
		p.Status.Phase = corev1.PodRunning
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
	})
}

// settled returns the budget once its status says what its controller computes. Where no controller works, it writes
// that itself.
func (h Harness) settled(t *testing.T, b *policyv1.PodDisruptionBudget, desired, current, allowed int32) *policyv1.PodDisruptionBudget {
	t.Helper()
	eventually(t, "the budget's status computed", func() bool {
		b = find(t, h, b)
		s := b.Status
		if s.DesiredHealthy == desired && s.CurrentHealthy == current && s.DisruptionsAllowed == allowed && s.ObservedGeneration == b.Generation {
			return true
		}
		err := h.Other.Apply(t.Context(), editStatus(b, func(b *policyv1.PodDisruptionBudget) {
			b.Status = policyv1.PodDisruptionBudgetStatus{
				ObservedGeneration: b.Generation, DesiredHealthy: desired, CurrentHealthy: current, DisruptionsAllowed: allowed,
				ExpectedPods: current,
			}
		}))
		if err != nil && !errors.Is(err, cluster.ErrConflict) {
			t.Fatal(err)
		}
		return false
	})
	return b
}

func evictRunning(t *testing.T, h Harness) {
	n := create(t, h, h.node("a"))
	p := h.running(t, "a", n.Name, corev1.ConditionTrue)
	since := h.Clock()
	h.apply(t, plan.Evict{Pod: p})
	q := find(t, h, p)
	if q == nil || q.DeletionTimestamp == nil || q.DeletionGracePeriodSeconds == nil || *q.DeletionGracePeriodSeconds != 30 {
		t.Fatalf("became %+v", q)
	}
	if began := q.DeletionTimestamp.Add(-30 * time.Second); h.aside(began, since) > 5*time.Second {
		t.Errorf("it ends at %v, evicted between %v and %v", q.DeletionTimestamp, since, h.Clock())
	}
	if !slices.ContainsFunc(q.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.DisruptionTarget }) {
		t.Errorf("conditions %v", q.Status.Conditions)
	}
	h.apply(t, plan.Evict{Pod: q})
	if again := find(t, h, p); !again.DeletionTimestamp.Equal(q.DeletionTimestamp) {
		t.Errorf("a second eviction moved its end from %v to %v", q.DeletionTimestamp, again.DeletionTimestamp)
	}
}

func evictSoon(t *testing.T, h Harness) {
	n := create(t, h, h.node("a"))
	p := h.running(t, "a", n.Name, corev1.ConditionTrue)
	soon, now := int64(5), int64(0)
	h.apply(t, plan.Evict{Pod: p, GraceSeconds: &soon})
	q := find(t, h, p)
	if q == nil || q.DeletionGracePeriodSeconds == nil || *q.DeletionGracePeriodSeconds != soon {
		t.Fatalf("became %+v", q)
	}
	h.apply(t, plan.Evict{Pod: q, GraceSeconds: &now})
	if exists(t, h, p) {
		t.Error("it is still there")
	}
}

func evictUnbound(t *testing.T, h Harness) {
	p := create(t, h, h.pod("a", ""))
	h.apply(t, plan.Evict{Pod: p})
	if exists(t, h, p) {
		t.Error("it is still there")
	}
}

func evictEnded(t *testing.T, h Harness) {
	n := create(t, h, h.node("a"))
	h.settled(t, create(t, h, h.budget("web", 1)), 1, 0, 0)
	p := h.running(t, "a", n.Name, corev1.ConditionFalse)
	p = updateStatus(t, h, p, func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded })
	h.apply(t, plan.Evict{Pod: p})
	if exists(t, h, p) {
		t.Error("it is still there")
	}
}

func evictBlocked(t *testing.T, h Harness) {
	n := create(t, h, h.node("a"))
	p := h.running(t, "a", n.Name, corev1.ConditionTrue)
	h.settled(t, create(t, h, h.budget("web", 1)), 1, 1, 0)
	err := h.Cluster.Apply(t.Context(), plan.Evict{Pod: p})
	blocked, ok := errors.AsType[*cluster.BlockedError](err)
	if !ok || !strings.Contains(blocked.Message, "web") {
		t.Errorf("error %v", err)
	}
	if q := find(t, h, p); q.DeletionTimestamp != nil || q.ResourceVersion != p.ResourceVersion {
		t.Errorf("became %+v", q)
	}
}

func evictAllowed(t *testing.T, h Harness) {
	n := create(t, h, h.node("a"))
	a, b := h.running(t, "a", n.Name, corev1.ConditionTrue), h.running(t, "b", n.Name, corev1.ConditionTrue)
	budget := h.settled(t, create(t, h, h.budget("web", 1)), 1, 2, 1)
	h.apply(t, plan.Evict{Pod: a})
	if q := find(t, h, a); q == nil || q.DeletionTimestamp == nil {
		t.Errorf("became %+v", q)
	}
	if now := find(t, h, budget); now.Status.DisruptionsAllowed != 0 {
		t.Errorf("status %+v", now.Status)
	}
	err := h.Cluster.Apply(t.Context(), plan.Evict{Pod: b})
	if _, ok := errors.AsType[*cluster.BlockedError](err); !ok {
		t.Errorf("the next one: %v", err)
	}
}

func evictUnready(t *testing.T, h Harness) {
	n := create(t, h, h.node("a"))
	h.running(t, "a", n.Name, corev1.ConditionTrue)
	b := h.running(t, "b", n.Name, corev1.ConditionFalse)
	h.settled(t, create(t, h, h.budget("web", 1)), 1, 1, 0)
	h.apply(t, plan.Evict{Pod: b})
	if q := find(t, h, b); q == nil || q.DeletionTimestamp == nil {
		t.Errorf("became %+v", q)
	}
}

func evictTwoBudgets(t *testing.T, h Harness) {
	n := create(t, h, h.node("a"))
	p := h.running(t, "a", n.Name, corev1.ConditionTrue)
	create(t, h, h.budget("one", 0))
	create(t, h, h.budget("two", 0))
	err := h.Cluster.Apply(t.Context(), plan.Evict{Pod: p})
	if _, blocked := errors.AsType[*cluster.BlockedError](err); err == nil || blocked || errors.Is(err, cluster.ErrGone) {
		t.Errorf("error %v", err)
	}
}

func evictGone(t *testing.T, h Harness) {
	p := create(t, h, h.pod("a", ""))
	h.apply(t, plan.Delete{Object: p})
	if err := h.Cluster.Apply(t.Context(), plan.Evict{Pod: p}); !errors.Is(err, cluster.ErrGone) {
		t.Errorf("gone: %v", err)
	}
	q := create(t, h, h.pod("a", ""))
	if err := h.Cluster.Apply(t.Context(), plan.Evict{Pod: p}); !errors.Is(err, cluster.ErrGone) {
		t.Errorf("another: %v", err)
	}
	if !exists(t, h, q) {
		t.Error("the other one is gone")
	}
}

func nodeLeavesPods(t *testing.T, h Harness) {
	n := create(t, h, h.node("a"))
	p := h.running(t, "a", n.Name, corev1.ConditionTrue)
	h.apply(t, plan.Delete{Object: n})
	if exists(t, h, n) {
		t.Error("the node is still there")
	}
	if q := find(t, h, p); q == nil || q.DeletionTimestamp != nil {
		t.Errorf("the pod became %+v", q)
	}
}
