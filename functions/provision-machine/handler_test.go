// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Run(t, Function)
}

func TestProperties(t *testing.T) {
	t.Parallel()
	scenario.Properties(t, Function)
}

// Before the first call a cloud is asked for an instance that nobody recorded, unless the Machine is so young that no
// record of it can have been lost (2b.3).
func TestLooksForLostInstances(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for age, looks := range map[time.Duration]bool{0: false, time.Minute - time.Second: false, time.Minute: true, time.Hour: true} {
		s, _, err := scenario.Load("testdata/claims-then-creates.txtar")
		if err != nil {
			t.Fatal(err)
		}
		m := s.World.Machines[0].DeepCopy()
		m.CreationTimestamp = metav1.NewTime(now.Add(-age))
		one := scenario.Scenario{World: snapshot.Snapshot{Now: now, Request: s.World.Request}}
		for o := range s.World.Objects() {
			if _, is := o.(*machine.Machine); !is {
				one.World.Add(o)
			}
		}
		one.World.Add(m)
		_, asked, err := scenario.Observe(Function, one)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, sc := range asked {
			for _, l := range sc.Lookups {
				found = true
				if l.Open == looks || !l.Resolve {
					t.Errorf("at %v: %+v", age, l)
				}
			}
		}
		if !found {
			t.Errorf("at %v nothing is asked of the cloud", age)
		}
	}
}
