// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A scan knows the checks of today before it asks for those of before, which may not be readable; without those nothing is decided.
func TestScanReadsTheChecksOfTodayFirst(t *testing.T) {
	t.Parallel()
	today, before := snapshot.All("MachineHealthCheck"), snapshot.All(legacyKind)
	var s snapshot.Snapshot
	if got := reads(s).Objects; !slices.Equal(got, []snapshot.Query{today}) {
		t.Errorf("a scan asks for %v at first", got)
	}
	if got := reads(s.Answered(today)).Objects; !slices.Contains(got, before) {
		t.Errorf("a scan asks for %v then", got)
	}
	s.Request = snapshot.Request{Kind: "Node", Name: "n"}
	if got := reads(s).Objects; !slices.Equal(got, []snapshot.Query{today, before}) {
		t.Errorf("an event asks for %v at first", got)
	}
}

// In a storm over many sets each of them would be a request in every scan: they are one list then.
func TestManySetsAreOneList(t *testing.T) {
	t.Parallel()
	for sets, want := range map[int]int{20: 20, 21: 1} {
		s := snapshot.Snapshot{HealthChecks: []*machine.MachineHealthCheck{{}}}.Answered(snapshot.All("MachineHealthCheck"))
		for k := range 2 * sets {
			owner := metav1.OwnerReference{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: fmt.Sprint("set-", k%sets), Controller: new(true)}
			m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: fmt.Sprint("worker-", k), OwnerReferences: []metav1.OwnerReference{owner}}}
			m.Status.Phase = new(machine.PhaseFailed)
			s.Machines = append(s.Machines, m)
		}
		asked := map[snapshot.Query]bool{}
		for _, q := range reads(s).Objects {
			asked[q] = q.Kind == "MachineSet"
		}
		got := 0
		for _, is := range asked {
			if is {
				got++
			}
		}
		if got != want || asked[snapshot.All("MachineSet")] != (want == 1) {
			t.Errorf("%d sets are %d requests, want %d", sets, got, want)
		}
	}
}
