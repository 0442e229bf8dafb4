// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Another Node of the same instance speaks for the linked one that is silent, and for no other: not for one that is Ready itself, nor where
// neither says which instance it is, nor for a copy of the Machine, whose Node it is not (RELIABILITY 2f).
func TestAnotherNodeSpeaksForASilentOne(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	node := func(name, id string, ready corev1.ConditionStatus) *corev1.Node {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: corev1.NodeSpec{ProviderID: id}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.NewTime(now), LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
		return n
	}
	for name, c := range map[string]struct {
		id    string
		ready corev1.ConditionStatus
		want  string
	}{
		"silent":              {"kubemark://a", corev1.ConditionUnknown, "renamed"},
		"ready":               {"kubemark://a", corev1.ConditionTrue, "linked"},
		"silent, without ids": {"", corev1.ConditionUnknown, "linked"},
	} {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "a"}}
		m.Spec.ProviderID = &c.id
		m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "linked", UID: "linked"}
		copied := m.DeepCopy()
		copied.Name, copied.UID, copied.Status.NodeRef = "copy", "copy", nil
		s := snapshot.Snapshot{Now: now}
		s.Add(m, copied, node("linked", c.id, c.ready), node("renamed", c.id, corev1.ConditionTrue))
		net := networkOf(s)
		if got := net.nodeOf(m); got == nil || got.Name != c.want {
			t.Errorf("%s: the Node is %v, want %s", name, got, c.want)
		}
		if got := net.nodeOf(copied); got != nil {
			t.Errorf("%s: a copy of the Machine has the Node %s", name, got.Name)
		}
	}
}
