// SPDX-License-Identifier: Apache-2.0

// Package scalemachineset keeps the number of Machines equal to MachineSet.spec.replicas.
//
//	wakes on  MachineSet, Machine; scan
//	reads     MachineSet, Machine, Node, Infrastructure
//	writes    MachineSet (ledger, status), Machine (create, adopt, release, delete)
//
// It decides by compare-and-swap: which Machines shall exist is committed to the set's ledger, in one write. Only what
// is committed is carried out, under names that follow from the ledger, so that any number of invocations may do it at
// the same time (DESIGN 5.3, RELIABILITY 2a).
package scalemachineset

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Function is the deployable function.
var Function = function.Function{Name: "scale-machineset", Reads: reads, Decide: Decide}

// Decide gives every set that was asked about what it needs now: first the commit, then in the next round what was
// committed, then the status.
func Decide(s snapshot.Snapshot) plan.Plan {
	var p plan.Plan
	all := herdOf(s)
	for _, set := range s.MachineSets {
		if s.Changed(set) { // its Machines were read before that: the next look tells (2a.1)
			continue
		}
		if set.DeletionTimestamp == nil && complete(s, set) { // garbage collection removes a deleted set's Machines (B39)
			s.Apart(set, func() { scale(&p, s, set, all) })
		}
	}
	return p.Untried(s.Outcomes)
}

func scale(p *plan.Plan, s snapshot.Snapshot, set *machine.MachineSet, all herd) {
	if c, _ := machine.Paused(set.Spec.AuthoritativeAPI, set.Status.AuthoritativeAPI); c.Status == corev1.ConditionTrue {
		next := set.DeepCopy()
		next.Status.Conditions = machine.SetCondition(next.Status.Conditions, c, s.Now)
		p.Add(statusIfChanged(set, next))
		return
	}
	selector, err := machine.SelectorOf(set)
	if err != nil {
		p.Add(invalid(set, err))
		return
	}
	owned := all.membersOf(set, selector)
	ledger, why, err := readLedger(s, set, owned)
	if err != nil {
		p.Notes = append(p.Notes, plan.Warning(set, "ReconcileError", err.Error()+": nothing is done to the set"))
		return
	}
	if why != "" {
		told := plan.Warning(set, eventRebuild, why+", by what is there")
		l := rebuild(s, set, owned)
		p.Add(commit(set, change{ledger: l, want: leftOut(set, l, owned), why: why, told: []plan.Note{told}}))
		return
	}
	if ledger.Rebuilt != s.Invocation { // else this invocation has done its share (2a.7)
		if next := decide(s, set, ledger, owned); next.why != "" {
			if _, wrong := ledger.Bounded(s.Now); wrong != "" {
				p.Notes = append(p.Notes, plan.Warning(set, "ReconcileError", wrong))
			}
			p.Add(commit(set, next))
			return
		}
		work := execute(s, set, ledger, owned)
		p.Add(work...)
		if untried(s, work) {
			return
		}
	}
	p.Add(reportStatus(s, set, ledger, owned))
}

// untried reports whether some of the work is still to be done. What was refused in this invocation is merely told: for that no
// status waits.
func untried(s snapshot.Snapshot, work []plan.Sequence) bool {
	return len(plan.Plan{Do: work}.Untried(s.Outcomes).Actions()) > 0
}
