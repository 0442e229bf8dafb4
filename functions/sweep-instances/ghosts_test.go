// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Of many Nodes that outlived their Machines a few go in one sweep, in however many rounds it decides, and others come first in the
// next: those that may not be deleted hold up nobody (2b.10, G8, R-L4).
func TestFewNodesGoInOneSweep(t *testing.T) {
	t.Parallel()
	const nodes, ghosts = 200, 12
	now := time.Date(2026, 1, 1, 10, 5, 0, 0, time.UTC)
	state := machine.SweepState{Schema: 1, Accounts: map[string]machine.SweptAccount{"a": {Namespace: machine.Namespace}}, Sightings: map[string]metav1.Time{}}
	s := snapshot.Snapshot{Now: now, Served: []string{machine.Namespace}, Accounts: map[string]snapshot.Account{"a": {Horizon: time.Minute}}}.Answered(stateQuery)
	for k := range nodes {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%03d", k), UID: types.UID(fmt.Sprint(k)), CreationTimestamp: metav1.NewTime(now.Add(-time.Hour))}}
		if k < ghosts {
			n.Spec.ProviderID = "kubemark://" + n.Name
			n.Annotations = map[string]string{machine.AnnotationMachine: machine.Namespace + "/worker-" + n.Name}
			state.Sightings[ghostKey(n)] = metav1.NewTime(now.Add(-30 * time.Minute))
		}
		s.Nodes = append(s.Nodes, n)
	}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapSweep}, Data: map[string]string{machine.SweepKey: state.String()}}
	s.ConfigMaps = []*corev1.ConfigMap{cm}
	asked := map[plan.Key]bool{}
	for range 6 { // sweeps, in which nothing may be deleted
		s.Outcomes = map[plan.Key]plan.Outcome{}
		for range 3 { // rounds
			for _, a := range Decide(s).Actions() {
				if strings.HasPrefix(string(a.Key()), "delete node/") {
					asked[a.Key()], s.Outcomes[a.Key()] = true, plan.Outcome{Result: plan.Refused}
				}
			}
		}
		if len(s.Outcomes) != maxDeletes {
			t.Errorf("%d nodes are deleted in one sweep, not %d", len(s.Outcomes), maxDeletes)
		}
		s.Now = s.Now.Add(sweepEvery)
	}
	if len(asked) <= 2*maxDeletes {
		t.Errorf("in six sweeps only %d of %d nodes have their turn", len(asked), ghosts)
	}
}
