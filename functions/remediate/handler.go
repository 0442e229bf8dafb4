// SPDX-License-Identifier: Apache-2.0

// Package remediate replaces Machines that a MachineHealthCheck finds sick, never many at a time.
//
//	wakes on  MachineHealthCheck, Machine, Node; scan
//	reads     MachineHealthCheck (and what its remediationTemplate names), Machine, Node, MachineSet,
//	          MachineHealthCheck.v1alpha1.healthchecking.openshift.io, ConfigMap (budget; rules of legacy checks)
//	writes    MachineHealthCheck (in-flight annotation, status; requests made from its remediationTemplate),
//	          MachineHealthCheck.v1alpha1.healthchecking.openshift.io (likewise), Machine (health condition, claim,
//	          delete), ConfigMap (budget)
//
// A remediation goes through four rounds, each decided on fresh reads and only if the Machine is still sick
// (RELIABILITY 2f):
//
//	sick ──▶ in flight ──▶ slot ──▶ claim ──▶ act
//	         the check's   the      the       delete the Machine, or another of the check's steps
//	         annotation    budget   Machine
//
// What was written by compare-and-swap is never acted upon in the round that writes it.
package remediate

import (
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const name = "remediate"

// Function is the deployable function.
var Function = function.Function{Name: name, Reads: reads, Decide: Decide}

// Decide shows on every Machine of the snapshot how healthy it is. Where all Machines were read, each check acts.
func Decide(s snapshot.Snapshot) plan.Plan {
	var p plan.Plan
	d := newDecision(s)
	for _, c := range d.idle {
		p.Add(c.refuse())
	}
	if d.whole {
		d.admit()
	}
	verdicts := d.verdicts()
	touched := map[*machine.Machine]bool{} // by this plan: whatever else it needs, the next round does
	for _, m := range s.Machines {
		seq := plan.Sequence{}
		if v, looked := verdicts[m]; looked {
			seq = d.show(m, v)
		} else if d.whole && len(d.idle)+d.done == 0 {
			seq = forget(m)
		}
		touched[m] = len(seq.Do) > 0
		p.Add(seq)
	}
	if d.whole {
		p.Add(d.act(touched)...)
		p.Add(d.release(verdicts, touched)...)
	}
	return p.Untried(s.Outcomes)
}

// act stores what the checks have to remember, or else carries out what they have in flight, and reports.
func (d *decision) act(touched map[*machine.Machine]bool) []plan.Sequence {
	all := []plan.Sequence{d.budget.commit()}
	for _, c := range d.checks {
		if c.next.String() != c.stored {
			all = append(all, c.commit())
			continue
		}
		all = append(all, d.repair(c, touched)...)
		withdrawn, left := d.withdraw(c.name())
		c.left = left
		all = append(append(all, withdrawn...), c.report())
	}
	for _, gone := range d.bereft() {
		withdrawn, _ := d.withdraw(gone)
		all = append(all, withdrawn...)
	}
	return all
}
