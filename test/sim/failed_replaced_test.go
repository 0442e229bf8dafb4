// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// failedAtTheMinimum is the kept schedule in which people spoil the spec of a set's only Machine. Nobody replaces what failed of that
// (R-B27), and the set may not be smaller: for the Pod that waits it grows, then the Failed Machine goes (SPEC C49).
const failedAtTheMinimum = "R-S4: people spoilt the only Machine of a set at its minimum"

func playFailedAtTheMinimum(t *testing.T, wrap func(function.Function) function.Function) (string, error) {
	t.Helper()
	for _, k := range kept {
		if strings.HasPrefix(k.was, failedAtTheMinimum) {
			c, is := k.of.(Config)
			if !is {
				t.Fatal("it is no Play")
			}
			c.Wrap = func(f function.Function) function.Function {
				if f.Name == "remediate" {
					f = readsNoSet(f)
				}
				if wrap != nil {
					f = wrap(f)
				}
				return f
			}
			var trace strings.Builder
			err := c.replay(k.choices(t), &trace)
			return trace.String(), err
		}
	}
	t.Fatal("it is not kept")
	return "", nil
}

// readsNoSet has f never see a MachineSet: then it remembers no template, a write that the schedule does not know.
func readsNoSet(f function.Function) function.Function {
	reads := f.Reads
	f.Reads = func(s snapshot.Snapshot) snapshot.Scope {
		asks := reads(s)
		asks.Objects = slices.DeleteFunc(asks.Objects, func(q snapshot.Query) bool { return q.Kind == "MachineSet" })
		return asks
	}
	return f
}

// The functions do it alone: what the set grew by is not taken back instead of the Machine that failed.
func TestFailedMachineAtTheMinimumIsReplaced(t *testing.T) {
	t.Parallel()
	trace, err := playFailedAtTheMinimum(t, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(trace, "(1 → 2 replicas)") || !strings.Contains(trace, "is the autoscaler's victim)") || strings.Contains(trace, "people delete") {
		t.Error(trace)
	}
}

// One Failed Machine is a reason for one replica more than there are Pods, and no more (R-S4).
func TestFailedMachineIsReplacedByOne(t *testing.T) {
	t.Parallel()
	trace, err := playFailedAtTheMinimum(t, growsByOneMore)
	if err == nil || !strings.HasPrefix(err.Error(), "R-S4: ") || !strings.HasSuffix(err.Error(), " 3 replicas where 2 are enough for the pods") {
		t.Errorf("%v\n%s", err, trace)
	}
}

// growsByOneMore has a set that grows be one larger.
func growsByOneMore(f function.Function) function.Function {
	decide := f.Decide
	f.Decide = func(s snapshot.Snapshot) plan.Plan {
		p := decide(s)
		for i := range p.Do {
			p.Do[i].Do = slices.Clone(p.Do[i].Do)
			for j, a := range p.Do[i].Do {
				u, _ := a.(plan.Update)
				old, _ := u.Old.(*machine.MachineSet)
				now, _ := u.New.(*machine.MachineSet)
				if old != nil && now != nil && *now.Spec.Replicas > *old.Spec.Replicas {
					now = now.DeepCopy()
					now.Spec.Replicas = new(*now.Spec.Replicas + 1)
					u.New = now
					p.Do[i].Do[j] = u
				}
			}
		}
		return p
	}
	return f
}
