// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"cmp"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// report writes the check's status if it changed (B49), with the reason where nothing may be remediated (B55).
func (c check) report(s sum) plan.Sequence {
	next := c.h.DeepCopy()
	next.Status.ExpectedMachines, next.Status.CurrentHealthy = &s.machines, &s.healthy
	next.Status.RemediationsAllowed = int32(max(0, s.most-s.unhealthy()))
	allowed := machine.True(machinev1beta1.RemediationAllowedCondition, "", "")
	counts := fmt.Sprintf("%d of %d machines are not healthy (%d sick)", s.unhealthy(), s.machines, s.sick)
	switch {
	case s.network.partitioned():
		allowed = restricted("NodesUnreachable", fmt.Sprintf("%d of %d nodes are unreachable: nothing is remediated", s.network.unreachable, s.network.nodes))
		next.Status.RemediationsAllowed = 0
	case s.tooMany():
		allowed = restricted(machinev1beta1.TooManyUnhealthyReason, fmt.Sprintf("%s, more than maxUnhealthy %d allows: nothing is remediated", counts, s.most))
	}
	next.Status.Conditions = machine.SetCondition(next.Status.Conditions, allowed, c.Now)
	if equality.Semantic.DeepEqual(c.h.Status, next.Status) {
		return plan.Sequence{}
	}
	seq := plan.Sequence{Do: []plan.Action{plan.UpdateStatus{Old: c.h, New: next, Why: "counted"}}}
	if !s.allowed() {
		seq.Notes = []plan.Note{plan.Warning(c.h, "RemediationRestricted", allowed.Message)}
	}
	return seq
}

func restricted(reason, message string) machine.Condition {
	return machine.False(machinev1beta1.RemediationAllowedCondition, machinev1beta1.ConditionSeverityWarning, reason, message)
}

// show writes on the Machine what the checks say about it. A Machine that was never found unhealthy carries no
// condition.
func show(s snapshot.Snapshot, m *machine.Machine, v verdict) plan.Sequence {
	have := machine.FindCondition(m.Status.Conditions, machine.ConditionHealthy)
	if m.DeletionTimestamp != nil || have == nil && (v.reason == "" || v.early) {
		return plan.Sequence{}
	}
	want := machine.True(machine.ConditionHealthy, "", "")
	var notes []plan.Note
	if v.reason != "" {
		want = machine.False(machine.ConditionHealthy, machinev1beta1.ConditionSeverityWarning, v.reason, v.message)
		notes = []plan.Note{plan.Normal(m, "DetectedUnhealthy", v.message)}
	}
	next := m.DeepCopy()
	next.Status.Conditions = machine.SetCondition(next.Status.Conditions, want, s.Now)
	if equality.Semantic.DeepEqual(m.Status, next.Status) {
		return plan.Sequence{}
	}
	return plan.Sequence{Do: []plan.Action{plan.UpdateStatus{Old: m, New: next, Why: cmp.Or(v.reason, "healthy")}}, Notes: notes}
}

// forget takes the verdict off a Machine that no check looks at any more.
func forget(m *machine.Machine) plan.Sequence {
	if machine.FindCondition(m.Status.Conditions, machine.ConditionHealthy) == nil {
		return plan.Sequence{}
	}
	next := m.DeepCopy()
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c machine.Condition) bool { return c.Type == machine.ConditionHealthy })
	return plan.Sequence{Do: []plan.Action{plan.UpdateStatus{Old: m, New: next, Why: "no check looks at it"}}}
}

// worst returns for every Machine that a check looks at what the checks say: of several, the one that is due first.
func worst(checks []check) map[*machine.Machine]verdict {
	all := map[*machine.Machine]verdict{}
	for _, c := range checks {
		for _, t := range c.targets {
			v, known := all[t.m]
			if !known || v.reason == "" || !t.due.IsZero() && (v.due.IsZero() || t.due.Before(v.due)) {
				all[t.m] = t.verdict
			}
		}
	}
	return all
}
