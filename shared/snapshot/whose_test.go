// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// The Node that joined after nothing was drained for want of one holds up the end of its Machine; one that fits by an address alone only if it
// is older than the deletion, as addresses are given again (R-B31, R-B32).
func TestLateNodeHoldsUpItsMachine(t *testing.T) {
	t.Parallel()
	deleted := metav1.NewTime(time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC))
	for name, c := range map[string]struct {
		id   string // of the Node
		came time.Duration
		edit func(*machine.Machine)
		want bool
	}{
		"by its instance":          {"x", time.Minute, func(*machine.Machine) {}, true},
		"by an address, older":     {"", -time.Minute, func(*machine.Machine) {}, true},
		"by an address, younger":   {"", time.Minute, func(*machine.Machine) {}, false},
		"of another instance":      {"y", -time.Minute, func(*machine.Machine) {}, false},
		"its Machine stays":        {"x", time.Minute, func(m *machine.Machine) { m.DeletionTimestamp = nil }, false},
		"its Machine is not ended": {"x", time.Minute, func(m *machine.Machine) { m.Status.Conditions = nil }, false},
		"it was drained": {"x", time.Minute, func(m *machine.Machine) {
			m.Status.Conditions[0].Reason = machine.ReasonDrained
		}, false},
	} {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "machines", Name: "a", UID: "a", DeletionTimestamp: &deleted}}
		m.Spec.ProviderID = new("x")
		m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
		m.Status.Conditions = []machine.Condition{machine.True(machine.ConditionDrained, machine.ReasonNoNode, "")}
		c.edit(m)
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", UID: "n", CreationTimestamp: metav1.NewTime(deleted.Add(c.came))}}
		n.Spec.ProviderID, n.Status.Addresses = c.id, m.Status.Addresses
		s := Snapshot{}
		s.Add(m, n)
		if got := s.LateNodeOf(m); (got == n) != c.want || got != nil && got != n {
			t.Errorf("%s: %v, want it %v", name, got, c.want)
		}
	}
}

// A query selects by all that it says, and nothing where nobody can read its selector.
func TestQuerySelectsByAllThatItSays(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", Labels: map[string]string{"app": "a"}}}
	bound := pod.DeepCopy()
	bound.Spec.NodeName = "n"
	for name, c := range map[string]struct {
		q                Query
		pending, running bool
	}{
		"all":                  {All("Pod"), true, true},
		"of another kind":      {All("Node"), false, false},
		"of the namespace":     {Query{Kind: "Pod", Namespace: "ns"}, true, true},
		"of another namespace": {Query{Kind: "Pod", Namespace: "other"}, false, false},
		"by name":              {One("Pod", "ns", "p"), true, true},
		"by another name":      {One("Pod", "ns", "q"), false, false},
		"on its Node":          {Query{Kind: "Pod", Node: "n"}, false, true},
		"on another Node":      {Query{Kind: "Pod", Node: "m"}, false, false},
		"on none":              {Query{Kind: "Pod", Unbound: true}, true, false},
		"by label":             {Query{Kind: "Pod", Labels: "app=a"}, true, true},
		"by another label":     {Query{Kind: "Pod", Labels: "app=b"}, false, false},
		"by no label":          {Query{Kind: "Pod", Labels: "app in"}, false, false},
	} {
		if c.q.Selects(pod) != c.pending || c.q.Selects(bound) != c.running {
			t.Errorf("%s: the pending Pod %v, the running one %v", name, c.q.Selects(pod), c.q.Selects(bound))
		}
	}
}

// What is changed in a copy is not in what it was copied from, and what is asked anew is no longer what it was.
func TestCloneIsItsOwn(t *testing.T) {
	t.Parallel()
	node := func(name, id string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{ProviderID: id}}
	}
	s := Snapshot{}
	s.Add(node("a", "1"), node("c", "1"))
	c := s.Clone()
	c.Add(node("a", "2"), node("b", "2"))
	c.Drop(One("Node", "", "c"))
	if len(s.Nodes) != 2 || s.Node("a").Spec.ProviderID != "1" || s.Node("c") == nil || s.Node("b") != nil {
		t.Errorf("the first one has %v", s.Nodes)
	}
	if len(c.Nodes) != 2 || c.Node("a").Spec.ProviderID != "2" || c.Node("b") == nil || c.Node("c") != nil {
		t.Errorf("the copy has %v", c.Nodes)
	}
}
