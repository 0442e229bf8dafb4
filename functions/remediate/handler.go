// SPDX-License-Identifier: Apache-2.0

// Package remediate replaces Machines that a MachineHealthCheck finds sick, never many at a time.
//
//	wakes on  MachineHealthCheck, Machine, Node; scan
//	reads     MachineHealthCheck, Machine, Node, MachineSet
//	writes    MachineHealthCheck (in-flight annotation, status), Machine (health condition, delete)
//
// A remediation is committed to the check's in-flight record first, by compare-and-swap. Only the next round, on fresh
// reads and if the Machine is still sick, deletes it; its MachineSet makes the replacement (RELIABILITY 2f).
package remediate

import (
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Function is the deployable function.
var Function = function.Function{Name: "remediate", Reads: reads, Decide: Decide}

// Decide shows on every Machine of the snapshot how healthy it is. Where all Machines were read, each check acts.
func Decide(s snapshot.Snapshot) plan.Plan {
	var p plan.Plan
	checks, warnings := checksOf(s)
	p.Notes = append(p.Notes, warnings...)
	verdicts := worst(checks)
	touched := map[*machine.Machine]bool{} // by this plan: whatever else it needs, the next round does
	for _, m := range s.Machines {
		seq := plan.Sequence{}
		if v, looked := verdicts[m]; looked {
			seq = show(s, m, v)
		} else if s.Has(snapshot.All("Machine")) && len(checks) == len(s.HealthChecks) {
			seq = forget(m)
		}
		touched[m] = len(seq.Do) > 0
		p.Add(seq)
	}
	if s.Has(snapshot.All("Machine")) {
		for _, c := range checks {
			p.Add(c.step(touched)...)
		}
	}
	return p.Untried(s.Outcomes)
}

// step commits what changes in the record of remediations, or else carries out what it holds and reports.
func (c check) step(touched map[*machine.Machine]bool) []plan.Sequence {
	sum := c.count()
	next := c.admit(c.settled(), sum)
	if next.String() != c.record.String() {
		return []plan.Sequence{c.commit(next)}
	}
	var all []plan.Sequence
	if sum.allowed() {
		for _, t := range c.targets {
			if c.record.has(t.m) && t.sick(c.Now) && !touched[t.m] {
				touched[t.m] = true
				all = append(all, c.repair(t))
			}
		}
	}
	for _, t := range c.targets {
		if t.sick(c.Now) && !c.external() && !owned(t.m) {
			all = append(all, plan.Sequence{Notes: []plan.Note{
				plan.Warning(t.m, "SkippedNoController", "not remediated: nothing would replace it, it has no controller"),
			}})
		}
	}
	return append(all, c.report(sum))
}

// repair has one Machine replaced, or its host power-cycled where the check asks for that (B56, B57).
func (c check) repair(t target) plan.Sequence {
	if c.external() && machine.Phase(t.m) != machine.PhaseFailed {
		if _, asked := t.m.Annotations[machine.AnnotationExternalRepair]; asked {
			return plan.Sequence{}
		}
		next := t.m.DeepCopy()
		if next.Annotations == nil {
			next.Annotations = map[string]string{}
		}
		next.Annotations[machine.AnnotationExternalRepair] = ""
		return plan.Sequence{
			Do:    []plan.Action{plan.Update{Old: t.m, New: next, Why: t.message}},
			Notes: []plan.Note{plan.Normal(t.m, "ExternalAnnotationAdded", "power-cycle requested: "+t.message)},
		}
	}
	a := plan.Delete{Object: t.m, IfUnchanged: true, Why: t.message}
	if o, tried := c.Outcome(a); tried && o.Result == plan.Refused {
		return plan.Sequence{Notes: []plan.Note{plan.Warning(t.m, "MachineDeletionFailed", o.Message)}}
	}
	return plan.Sequence{
		Do:    []plan.Action{a},
		Notes: []plan.Note{plan.Normal(t.m, "MachineDeleted", "remediated by deletion: "+t.message)},
	}
}
