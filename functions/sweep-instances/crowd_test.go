// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// lost is a cluster whose Machines are gone, of which so many instances and Nodes are left, of which nothing is heard.
func lost(instances int) snapshot.Snapshot {
	now := time.Date(2026, 1, 1, 10, 5, 0, 0, time.UTC)
	s := snapshot.Snapshot{Now: now, Served: []string{machine.Namespace}}.Answered(stateQuery)
	state := machine.SweepState{Schema: 1, Accounts: map[string]machine.SweptAccount{"a": {Namespace: machine.Namespace}}, Sightings: map[string]metav1.Time{}}
	a := snapshot.Account{Horizon: time.Minute}
	for k := range instances {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("worker-%05d", k), UID: types.UID(fmt.Sprint("node-", k)), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
		n.Annotations = map[string]string{machine.AnnotationMachine: machine.Namespace + "/" + n.Name}
		n.Spec.ProviderID = "kubemark://" + n.Name
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionUnknown}}
		in := provider.Instance{ID: n.Name, ProviderID: n.Spec.ProviderID, UID: types.UID(fmt.Sprint("gone-", k)), Name: n.Name, State: provider.StateRunning, Created: now.Add(-time.Hour)}
		s.Nodes, a.Instances = append(s.Nodes, n), append(a.Instances, in)
		if k < maxSightings {
			state.Sightings[machine.SightingKey("a", in.ID)] = metav1.NewTime(now.Add(-30 * time.Minute))
		}
	}
	s.Accounts = map[string]snapshot.Account{"a": a}
	s.ConfigMaps = []*corev1.ConfigMap{{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapSweep}, Data: map[string]string{machine.SweepKey: state.String()}}}
	return s
}

// BenchmarkLostMachines is one decision about such a cluster, in which nothing is removed: each instance is compared with each Node.
func BenchmarkLostMachines(b *testing.B) {
	for _, size := range []int{1000, 4000} {
		b.Run(fmt.Sprintf("instances=%d", size), func(b *testing.B) {
			s := lost(size)
			for b.Loop() {
				for _, a := range Decide(s).Actions() {
					if _, deletes := a.(plan.DeleteInstance); deletes {
						b.Fatal(a)
					}
				}
			}
		})
	}
}
