// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

const scanPeriod = 10 * time.Second

// aloneIn returns the scenario with m as its only Machine.
func aloneIn(s scenario.Scenario, m *machine.Machine) scenario.Scenario {
	w := snapshot.Snapshot{Now: s.World.Now, Invocation: s.World.Invocation, Request: s.World.Request}
	for o := range s.World.Objects() {
		if _, is := o.(*machine.Machine); !is {
			w.Add(o)
		}
	}
	w.Add(m)
	s.World = w
	return s
}

// statusWrites decides once about the only Machine of s, and returns it as the decision leaves it, with how often its
// status was written.
func statusWrites(t *testing.T, s scenario.Scenario) (*machine.Machine, int) {
	t.Helper()
	seen, _, err := scenario.Observe(Function, s)
	if err != nil {
		t.Fatal(err)
	}
	return written(s.World.Machines[0], Decide(seen))
}

// written returns m as p leaves it, with how often its status was written.
func written(m *machine.Machine, p plan.Plan) (*machine.Machine, int) {
	writes := 0
	for _, a := range p.Actions() {
		if u, is := a.(plan.UpdateStatus); is {
			m, writes = u.New.(*machine.Machine).DeepCopy(), writes+1
		}
	}
	return m, writes
}

// What is wrong with a Machine that has its instance is written once: the event about that write, which asks no cloud,
// does not take it back for the next scan to write again (R-S14, G11).
func TestErrorOfASettledMachineIsWrittenOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"provider-spec-that-leads-elsewhere", "instance-that-will-never-run-shows-an-error"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _, err := scenario.Load("testdata/" + name + ".txtar")
			if err != nil {
				t.Fatal(err)
			}
			m, writes, began := s.World.Machines[0], 0, s.World.Now
			event := snapshot.Request{APIVersion: "machine.openshift.io/v1beta1", Kind: "Machine", Namespace: m.Namespace, Name: m.Name}
			for tick := range 10 {
				for _, r := range []snapshot.Request{{}, event} {
					s = aloneIn(s, m)
					s.World.Request, s.World.Now = r, began.Add(time.Duration(tick)*scanPeriod)
					var n int
					m, n = statusWrites(t, s)
					writes += n
				}
			}
			if writes != 1 || m.Status.ErrorReason == nil {
				t.Errorf("%d status writes in 10 scans in which nothing changed, want 1; error %v", writes, m.Status.ErrorReason)
			}
		})
	}
}
