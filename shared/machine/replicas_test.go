// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
)

func TestReplicas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, ledger string
		said         *int32
		want         int32
		unsized      bool
	}{
		{"what is said counts, whatever the ledger has", `{"schema":1,"setUID":"set-1","next":3,"active":"0-2"}`, new(int32(0)), 0, false},
		{"what is left out is as the ledger has it", `{"schema":1,"setUID":"set-1","next":9,"active":"0-2,7"}`, nil, 4, false},
		{"a set without Machines stays without", `{"schema":1,"setUID":"set-1","next":9,"active":""}`, nil, 0, false},
		{"what is said needs no ledger", "", new(int32(2)), 2, false},
		{"a new set has one", "", nil, 1, true},
		{"another set's ledger says nothing", `{"schema":1,"setUID":"set-2","next":3,"active":"0-2"}`, nil, 1, true},
		{"nor does one that cannot be read", `{"schema":99}`, nil, 1, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := &machine.MachineSet{}
			set.UID, set.Spec.Replicas = "set-1", c.said
			set.Annotations = map[string]string{machine.AnnotationLedger: c.ledger}
			if got := machine.Replicas(set); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
			if got := machine.Unsized(set); got != c.unsized {
				t.Errorf("unsized: %v", got)
			}
		})
	}
}
