// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A Node that has nothing of a Machine but an address goes with that one only if it never was linked: what is linked has its Node, and
// who is at its address beside that is a stranger (R-S3, R-B32).
func TestStrangerAtTheAddressOfALinkedMachineStays(t *testing.T) {
	t.Parallel()
	born := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.7"}}
	node := func(name string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name), CreationTimestamp: metav1.NewTime(born)}, Status: corev1.NodeStatus{Addresses: at}}
	}
	stranger, own := node("a-stranger"), node("own")
	for _, linked := range []bool{false, true} {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{
			Name: "m", Namespace: machine.Namespace, UID: "m", DeletionTimestamp: new(metav1.NewTime(born.Add(time.Hour))),
		}}
		m.Status.Addresses = at
		nodes := []*corev1.Node{stranger}
		if linked {
			nodes = append(nodes, own)
			m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: own.Name, UID: own.UID}
		}
		l := life{Snapshot: snapshot.Snapshot{Now: born.Add(2 * time.Hour), Machines: []*machine.Machine{m}, Nodes: nodes}, m: m}
		got := l.nodes()
		if len(got) != 1 || (got[0] == own) != linked {
			t.Errorf("linked %v: %d Nodes go, the first is %s", linked, len(got), got[0].Name)
		}
	}
}

// A scan reads the Nodes of instances that are going one by one, while they are few: one that never goes costs no list of all Nodes each time.
func TestScanReadsFewNodesOneByOne(t *testing.T) {
	t.Parallel()
	const few = 20
	for _, n := range []int{1, few, few + 1} {
		s := snapshot.Snapshot{Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		for k := range n {
			name := fmt.Sprintf("m-%d", k)
			m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{
				Name: name, Namespace: machine.Namespace, UID: types.UID(name), DeletionTimestamp: new(metav1.NewTime(s.Now)), Finalizers: []string{machine.Finalizer},
			}}
			uid := types.UID("node-" + name)
			m.Spec.ProviderID = new("kubemark://" + name)
			m.Status.Phase = new(machine.PhaseDeleting)
			m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: name, UID: uid}
			drained := machine.NodeDrained(uid)
			m.Status.Conditions = []machine.Condition{drained}
			s.Machines = append(s.Machines, m)
		}
		var one int
		asked := reads(s).Objects
		for _, q := range asked {
			if q.Kind == "Node" && q.Name != "" {
				one++
			}
		}
		if all := slices.Contains(asked, snapshot.All("Node")); all != (n > few) || one != n && !all || one > 0 && all {
			t.Errorf("of %d Nodes %d are read by name, all: %v", n, one, all)
		}
	}
}
