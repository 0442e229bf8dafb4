// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A set is as large as its hosts are many: a Machine that waits for one has none, else each scan made one more that waits; one that is
// deleted has none once its host is another's or free, else that host counted twice (E37).
func TestWhoHasAHost(t *testing.T) {
	t.Parallel()
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "set", UID: "set"}}
	owner := []metav1.OwnerReference{{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: set.Name, UID: set.UID, Controller: new(true)}}
	runs, waits, goes, other := slowMachine("runs", "i-1", machine.PhaseRunning), slowMachine("waits", "", ""), deletedMachine("goes"), slowMachine("other", "i-2", machine.PhaseRunning)
	waits.Spec.ProviderID = nil
	s := snapshot.Snapshot{Machines: []*machine.Machine{runs, waits, goes, other}}
	for _, m := range s.Machines[:3] {
		m.OwnerReferences = owner
	}
	for _, tt := range []struct {
		stock provider.Stock
		want  int32
	}{
		{provider.Stock{}, 1},
		{provider.Stock{Free: 2, Taken: []string{"runs", "other"}}, 3},
		{provider.Stock{Free: 1, Taken: []string{"runs", "waits", "goes", "other"}}, 4},
	} {
		if got := hosts(s, set, tt.stock); got != tt.want {
			t.Errorf("of %+v the set has %d hosts, want %d", tt.stock, got, tt.want)
		}
	}
}
