// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// unproved is so many Machines that are drained, and that another system made with their instances, which have no tag of ours.
func unproved(machines int) snapshot.Snapshot {
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	s := snapshot.Snapshot{Now: now, Invocation: "me", Clouds: map[types.UID]snapshot.Cloud{}}.Answered(snapshot.All("Machine"))
	for i := range machines {
		id := fmt.Sprintf("aws:///us-east-2a/i-%017x", i)
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("worker-%05d", i), Namespace: machine.Namespace, UID: types.UID(fmt.Sprintf("%05d-machine", i)),
			Finalizers: []string{machine.Finalizer}, DeletionTimestamp: new(metav1.NewTime(now.Add(-time.Hour))),
		}}
		m.Spec.ProviderID = &id
		m.Status.Phase = new(machine.PhaseDeleting)
		m.Status.Conditions = []machine.Condition{machine.True(machine.ConditionDrained, "", "")}
		s.Clouds[m.UID] = snapshot.Cloud{Account: "a", Found: []provider.Instance{{ID: id, ProviderID: id, State: provider.StateRunning}}}
		s.Machines = append(s.Machines, m)
	}
	return s
}

// Who records the same instance is found among many as among few, however it writes the id (R-S3).
func TestClaimantIsFoundAmongMany(t *testing.T) {
	t.Parallel()
	s := unproved(100)
	other := s.Machines[40].DeepCopy()
	other.Name, other.UID, other.DeletionTimestamp = "copy", "copy", nil
	other.Spec.ProviderID = new(fmt.Sprintf("aws:///i-%017x", 40)) // without the zone
	s.Machines = append(s.Machines, other)
	known := &claims{}
	for i, m := range s.Machines[:100] {
		o := life{Snapshot: s, m: m, cloud: s.Clouds[m.UID], claims: known}.claimant()
		if i == 40 && o != other || i != 40 && o != nil {
			t.Errorf("the instance of %s is recorded by %v too", m.Name, o)
		}
	}
}

// BenchmarkUnproved is one decision about thousands of Machines that are to go, of which no record proves whose their instances are.
func BenchmarkUnproved(b *testing.B) {
	for _, size := range []int{1000, 4000} {
		b.Run(fmt.Sprintf("machines=%d", size), func(b *testing.B) {
			s := unproved(size)
			for b.Loop() {
				if got := len(Decide(s).Actions()); got != size {
					b.Fatalf("%d actions", got)
				}
			}
		})
	}
}

// BenchmarkDrained is one decision about thousands of Machines that were drained, and whose Nodes, which name no instance, are linked to none.
func BenchmarkDrained(b *testing.B) {
	for _, size := range []int{1000, 4000} {
		b.Run(fmt.Sprintf("machines=%d", size), func(b *testing.B) {
			s := unproved(size)
			for i, m := range s.Machines {
				m.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: fmt.Sprintf("10.0.%d.%d", i/250, i%250)}}
				n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Name, CreationTimestamp: metav1.NewTime(s.Now.Add(-2 * time.Hour))}}
				n.Status.Addresses = m.Status.Addresses
				s.Nodes = append(s.Nodes, n)
			}
			for b.Loop() {
				if got := len(Decide(s).Actions()); got != size {
					b.Fatalf("%d actions", got)
				}
			}
		})
	}
}
