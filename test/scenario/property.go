// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"fmt"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	worlds    = 3000 // random worlds that a property is tried on
	maxRounds = 12   // of one invocation, as in package runner
)

// Properties checks on random worlds what every function promises (package function): Decide is total and
// deterministic, it modifies nothing, one sequence writes no object twice, and deciding again on the result of the
// plan, in this invocation or in the next, comes to want nothing.
func Properties(t *testing.T, f function.Function) {
	t.Helper()
	for seed := range uint64(worlds) {
		s := Random(seed)
		for invocation := range 2 {
			s.World.Outcomes = map[plan.Key]plan.Outcome{}
			if err := settle(f, &s); err != nil {
				t.Fatalf("seed %d, invocation %d: %v", seed, invocation+1, err)
			}
		}
	}
}

// settle runs one invocation: decide, carry out, look again until quiet.
func settle(f function.Function, s *Scenario) error {
	var p plan.Plan
	for range maxRounds {
		seen, _, err := Observe(f, *s)
		if err != nil {
			return err
		}
		before := fingerprint(seen)
		p = f.Decide(seen)
		if again := f.Decide(seen).String(); again != p.String() {
			return fmt.Errorf("not deterministic (-first +second):\n%s", cmp.Diff(p.String(), again))
		}
		if fingerprint(seen) != before {
			return fmt.Errorf("modified its snapshot by deciding\n%s", p)
		}
		if why := inadmissible(p); why != nil {
			return why
		}
		if p.Quiet() {
			return nil
		}
		outcomes := maps.Clone(s.World.Outcomes)
		for _, seq := range p.Do {
			if err := s.carryOut(seq, outcomes); err != nil {
				return err
			}
		}
		s.World.Outcomes = outcomes
	}
	return fmt.Errorf("not quiet after %d rounds, still wants\n%s", maxRounds, p)
}

const twice = "twice in a sequence"

// carryOut applies one sequence to the world. Some evictions are blocked, some writes refused, and of some nobody knows whether
// they came to pass, for ever.
func (s *Scenario) carryOut(seq plan.Sequence, outcomes map[plan.Key]plan.Outcome) error {
	written := map[string]bool{}
	for _, a := range seq.Do {
		if _, ok := outcomes[a.Key()]; ok {
			return fmt.Errorf("%q was planned again", a.Key())
		}
		o := s.apply(a, written)
		if o.Message == twice {
			return fmt.Errorf("%q writes an object twice in a sequence", a.Key())
		}
		outcomes[a.Key()] = o
		if !o.Result.Achieves(a) {
			return nil
		}
	}
	return nil
}

func (s *Scenario) apply(a plan.Action, written map[string]bool) plan.Outcome {
	switch a := a.(type) {
	case plan.Create:
		return s.write(nil, a.Object, written)
	case plan.Update:
		return s.write(a.Old, a.New, written)
	case plan.UpdateStatus:
		return s.write(a.Old, a.New, written)
	case plan.Delete:
		if len(a.Object.GetFinalizers()) == 0 {
			return s.remove(a.Object)
		}
		next, _ := a.Object.DeepCopyObject().(plan.Object)
		next.SetDeletionTimestamp(new(metav1.NewTime(s.World.Now)))
		return s.write(a.Object, next, written)
	case plan.Evict:
		if a.Pod.Name[len(a.Pod.Name)-1]%3 == 0 {
			return plan.Outcome{Result: plan.Blocked, Message: "not now"}
		}
		return s.remove(a.Pod)
	case plan.Approve:
		return s.write(a.Request, a.Approved(), written)
	case plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
	}
	return plan.Outcome{}
}

// write puts after in the place of before, if that is still as it was seen.
func (s *Scenario) write(before, after plan.Object, written map[string]bool) plan.Outcome {
	name := plan.NameOf(after)
	have := s.object(after)
	switch {
	case written[name]:
		return plan.Outcome{Result: plan.Failed, Message: twice}
	case strings.HasSuffix(name, "-c"):
		return plan.Outcome{Result: plan.Failed, Message: "timed out"}
	case strings.HasSuffix(name, "-d"):
		return plan.Outcome{Result: plan.Refused, Message: "denied by policy"}
	case before == nil && have != nil:
		return plan.Outcome{Result: plan.Exists}
	case before != nil && (have == nil || have.GetResourceVersion() != before.GetResourceVersion()):
		return plan.Outcome{Result: plan.Conflict}
	}
	written[name] = true
	next, _ := after.DeepCopyObject().(plan.Object)
	version, _ := strconv.Atoi(next.GetResourceVersion()) // of a new object: 0
	next.SetResourceVersion(strconv.Itoa(version + 1))
	s.World.Add(next)
	return plan.Outcome{}
}

func (s *Scenario) object(like plan.Object) plan.Object {
	for o := range s.World.Objects() {
		if plan.NameOf(o) == plan.NameOf(like) {
			return o
		}
	}
	return nil
}

// remove builds the world anew without o.
func (s *Scenario) remove(o plan.Object) plan.Outcome {
	rest := snapshot.Snapshot{Now: s.World.Now, Before: s.World.Before, Request: s.World.Request, Invocation: s.World.Invocation, Outcomes: s.World.Outcomes, Served: s.World.Served}
	for other := range s.World.Objects() {
		if plan.NameOf(other) != plan.NameOf(o) {
			rest.Add(other)
		}
	}
	s.World = rest
	return plan.Outcome{}
}
