// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/json"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// What functions ask helpers that they share, answered wrongly: a check that asked the same helpers would believe it too.

// forgetsWhoGoes ends a remediation when its Machine is told to go, forgetsWhoIsGone when it is gone, whatever comes for it.
var (
	forgetsWhoGoes   = lands(func(m *machine.Machine) bool { return m == nil || m.DeletionTimestamp != nil })
	forgetsWhoIsGone = lands(func(m *machine.Machine) bool { return m == nil })
)

// lands takes Machines out of the records of checks that are like that.
func lands(like func(*machine.Machine) bool) mistake {
	return func(f function.Function) function.Function {
		return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
			next := s.Clone()
			for i, h := range next.HealthChecks {
				record := map[string]any{}
				if json.Unmarshal([]byte(h.Annotations[machine.AnnotationInFlight]), &record) != nil {
					continue
				}
				flying, _ := record["inFlight"].([]any)
				record["inFlight"] = slices.DeleteFunc(flying, func(f any) bool {
					name, _ := f.(map[string]any)["machine"].(string)
					return s.Has(snapshot.All("Machine")) && like(s.Machine(h.Namespace, name))
				})
				text, err := json.Marshal(record)
				if err != nil {
					panic(err)
				}
				c := h.DeepCopy()
				c.Annotations[machine.AnnotationInFlight] = string(text)
				next.HealthChecks[i] = c
			}
			return next
		})
	}
}

// calledBefore takes the begin of each call for one of an hour ago: what surfaces of it has surfaced.
func calledBefore(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		return withIntent(s, func(_ *machine.Machine, i *machine.Intent) {
			i.StartedAt = metav1.NewTime(i.StartedAt.Add(-time.Hour))
			if i.Unanswered != nil {
				i.Unanswered = new(metav1.NewTime(i.Unanswered.Add(-time.Hour)))
			}
		})
	})
}

// overlooks sees nothing of the instances of Machines that record none.
func overlooks(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := s.Clone()
		next.Clouds = maps.Clone(s.Clouds)
		for _, m := range s.Machines {
			if c, asked := s.Clouds[m.UID]; asked && m.Spec.ProviderID == nil {
				c.Found = nil
				next.Clouds[m.UID] = c
			}
		}
		return next
	})
}

// answersItself writes of a call that nobody answered that it was refused.
var answersItself = written(func(_, now *machine.Machine) {
	if i, _ := machine.ParseIntent(now); i != nil && i.Until == nil && i.Unresolved() {
		i.Outcome, i.Unanswered = machine.OutcomeRefused, nil
		now.Annotations[machine.AnnotationIntent] = i.String()
	}
})

// takesForDrained takes every Machine for one whose Node is drained, and cordoned since.
func takesForDrained(f function.Function) function.Function {
	return seen(f, func(s snapshot.Snapshot) snapshot.Snapshot {
		next := machines(s, func(m *machine.Machine) {
			c := machine.True(machine.ConditionDrained, machine.ReasonDrained, "")
			m.Status.Conditions = machine.SetCondition(m.Status.Conditions, c, s.Now)
		})
		for i, n := range next.Nodes {
			c := n.DeepCopy()
			c.Spec.Unschedulable = true
			next.Nodes[i] = c
		}
		return next
	})
}

// mistakesOrdinals takes the Machine of an active ordinal for that of the next, which is retired.
func mistakesOrdinals(f function.Function) function.Function {
	return each(f, func(s snapshot.Snapshot, a plan.Action) plan.Action {
		d, deletes := a.(plan.Delete)
		if _, is := d.Object.(*machine.Machine); deletes && is {
			other := slices.IndexFunc(s.Machines, func(m *machine.Machine) bool { return m.DeletionTimestamp == nil && m.Name != d.Object.GetName() })
			if other >= 0 {
				d.Object = s.Machines[other]
			}
			return d
		}
		return a
	})
}

// deletesUnlinked deletes the Nodes of Machines that are there, which it does not take for linked.
var deletesUnlinked = rogue(func(s snapshot.Snapshot) (all []plan.Action) {
	for _, n := range s.Nodes {
		if n.DeletionTimestamp == nil && !machine.NodeReady(n) && slices.ContainsFunc(s.Machines, func(m *machine.Machine) bool { return machine.SameInstance(m, n) && m.Status.NodeRef == nil }) {
			all = append(all, plan.Delete{Object: n, Why: "a mistake"})
		}
	}
	return all
}, "Node", "Machine")
