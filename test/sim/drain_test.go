// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	drainnode "github.com/machine-functions/machine-functions/functions/drain-node"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A Node may hold more Pods than one invocation can evict: each evicts ten, however they end, and comes to an end itself. One
// that did not would be answered with a fault, and delivered again for no reason (RELIABILITY 2e, 2c).
func TestFullNodeIsDrainedTenByTen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grace   int64 // without one a Pod is gone at once
		request snapshot.Request
	}{
		"pods that end, an event":      {30, snapshot.Request{Kind: "Machine", Namespace: machine.Namespace, Name: "worker-a"}},
		"pods that are gone, an event": {0, snapshot.Request{Kind: "Machine", Namespace: machine.Namespace, Name: "worker-a"}},
		"pods that end, the scan":      {30, snapshot.Request{}},
		"pods that are gone, the scan": {0, snapshot.Request{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const pods = 250 // as many as a Node of OpenShift takes
			w := NewWorld(drainnode.Function)
			fullNode(t, w, pods, c.grace)
			evicted := 0
			for range pods/10 + 2 {
				p, err := w.Runner(drainnode.Function).Handle(t.Context(), c.request)
				if err != nil {
					t.Fatal(err)
				}
				evictions := 0
				for _, a := range p.Actions() {
					if _, is := a.(plan.Evict); is {
						evictions++
					}
				}
				if evictions > 10 {
					t.Fatalf("%d evictions in one invocation", evictions)
				}
				evicted += evictions
			}
			if evicted != pods {
				t.Errorf("%d of %d pods were evicted", evicted, pods)
			}
		})
	}
}

// fullNode puts a deleted Machine there, whose Node is full.
func fullNode(t *testing.T, w *World, pods int, grace int64) {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "node-a", UID: "node-1"},
		Status:     corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}},
	}
	now := metav1.NewTime(w.Now())
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "worker-a", Namespace: machine.Namespace, UID: "m-1", Finalizers: []string{machine.Finalizer}, DeletionTimestamp: &now,
	}}
	m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "node-a", UID: "node-1"}
	for _, o := range []plan.Object{node, m} {
		if err := w.API.Put(o); err != nil {
			t.Fatal(err)
		}
	}
	if err := memory.Patch(w.API, "", "node-a", func(n *corev1.Node) { m.Status.NodeRef.UID = n.UID }); err != nil {
		t.Fatal(err)
	}
	for i := range pods {
		err := w.API.Put(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("web-%03d", i), Namespace: "default"},
			Spec:       corev1.PodSpec{NodeName: "node-a", TerminationGracePeriodSeconds: &grace},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// A host that got another name is another Node of the same instance, and the Machine stays linked to the former one: the drain is not
// over before both are empty (RELIABILITY 2e, R-S7, R-S8).
func TestEveryNodeOfTheInstanceIsDrained(t *testing.T) {
	t.Parallel()
	w := NewWorld(drainnode.Function)
	fullNode(t, w, 0, 0)
	if err := memory.Patch(w.API, "", "node-a", func(n *corev1.Node) {
		n.Spec.ProviderID, n.Status.Conditions[0].Status = "kubemark://a", corev1.ConditionUnknown
	}); err != nil {
		t.Fatal(err)
	}
	if err := memory.Patch(w.API, machine.Namespace, "worker-a", func(m *machine.Machine) { m.Spec.ProviderID = new("kubemark://a") }); err != nil {
		t.Fatal(err)
	}
	renamed := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "renamed", UID: "node-2"}, Spec: corev1.NodeSpec{ProviderID: "kubemark://a"}}
	renamed.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	grace := int64(0)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "default"},
		Spec:       corev1.PodSpec{NodeName: "renamed", TerminationGracePeriodSeconds: &grace},
		Status:     corev1.PodStatus{Phase: corev1.PodRunning},
	}
	if err := w.API.Put(renamed, pod); err != nil {
		t.Fatal(err)
	}
	for range 5 {
		for _, request := range []snapshot.Request{{Kind: "Machine", Namespace: machine.Namespace, Name: "worker-a"}, {}} { // the scan ends it
			if _, err := w.Runner(drainnode.Function).Handle(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		m := memory.Get[*machine.Machine](w.API, machine.Namespace, "worker-a")
		n, left := memory.Get[*corev1.Node](w.API, "", "renamed"), len(memory.List[*corev1.Pod](w.API))
		if !machine.Drained(m) {
			continue
		}
		if left > 0 || !n.Spec.Unschedulable {
			t.Errorf("drained with %d pods on node renamed, which is cordoned: %v", left, n.Spec.Unschedulable)
		}
		return
	}
	t.Error("the drain does not end")
}

// A Pod that tolerates the cordon comes back each time that it is evicted: the drain ends all the same, once its disruption budget allows
// that it goes with the Node (RELIABILITY 2e, R-S8, R-L2).
func TestDrainEndsThoughAPodComesBack(t *testing.T) {
	t.Parallel()
	w := NewWorld(drainnode.Function)
	fullNode(t, w, 1, 3600) // a Pod that takes an hour to end
	made, grace := 0, int64(0)
	comes := func() {
		if err := memory.Patch(w.API, "", "node-a", func(n *corev1.Node) {
			if n.Spec.Unschedulable && len(n.Spec.Taints) == 0 { // as the cluster does that saw the cordon
				n.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule, TimeAdded: new(metav1.NewTime(w.Now()))}}
			}
		}); err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(memory.List[*corev1.Pod](w.API), func(p *corev1.Pod) bool { return len(p.Spec.Tolerations) > 0 }) {
			return
		}
		made++
		pod := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("operator-%d", made), Namespace: "default", Labels: map[string]string{"app": "operator"}},
			Spec:       corev1.PodSpec{NodeName: "node-a", TerminationGracePeriodSeconds: &grace, Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		}
		if err := w.API.Put(pod); err != nil {
			t.Fatal(err)
		}
	}
	budget := &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "operator", Namespace: "default"},
		Spec:       policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "operator"}}},
		Status:     policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 100},
	}
	allow := func(n int32) {
		budget.Status.DisruptionsAllowed = n
		if err := w.API.Put(budget); err != nil {
			t.Fatal(err)
		}
	}
	allow(100)
	drained := func() bool {
		return machine.Drained(memory.Get[*machine.Machine](w.API, machine.Namespace, "worker-a"))
	}
	look := func(scans int) {
		for range scans {
			comes()
			if _, err := w.Runner(drainnode.Function).Handle(t.Context(), snapshot.Request{Kind: "Machine", Namespace: machine.Namespace, Name: "worker-a"}); err != nil {
				t.Fatal(err)
			}
			w.Pass(10 * time.Second)
		}
	}
	look(5)
	allow(0)
	if err := w.API.Remove("Pod", "default", "web-000", memory.Force); err != nil {
		t.Fatal(err)
	}
	if look(5); drained() {
		t.Error("drained although its budget allows no disruption")
	}
	allow(1)
	if look(5); !drained() || made > 3 {
		t.Errorf("drained: %v, of %d Pods", drained(), made)
	}
}
