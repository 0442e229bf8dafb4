// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"cmp"
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// maxNames bounds the names in one message.
const maxNames = 5

// report writes the check's status if it changed (B49), with the reason where nothing may be remediated (B55).
func (c *check) report() plan.Sequence {
	next := c.h.DeepCopy()
	next.Status.ExpectedMachines, next.Status.CurrentHealthy = &c.sum.machines, &c.sum.healthy
	next.Status.RemediationsAllowed = int32(max(0, c.sum.most-c.sum.unhealthy()))
	allowed := machine.True(machinev1beta1.RemediationAllowedCondition, "", "")
	var notes []plan.Note
	if c.restriction.reason != "" {
		next.Status.RemediationsAllowed = 0
		allowed = machine.False(allowed.Type, machinev1beta1.ConditionSeverityWarning, c.restriction.reason, c.restriction.message)
		if c.restriction.reason != machinev1beta1.TooManyUnhealthyReason || c.sum.ill() > 0 { // a set that grows is no reason to warn
			notes = []plan.Note{plan.Warning(c.object(c.h), "RemediationRestricted", c.restriction.message)}
		}
	}
	flying := c.remediating()
	notes = append(notes, c.tellOverdue(flying)...)
	for _, condition := range slices.Concat([]machine.Condition{allowed, c.wellbeing()}, flying, c.available()) {
		next.Status.Conditions = machine.SetCondition(next.Status.Conditions, condition, c.Now)
	}
	return c.tell(next, notes, "counted")
}

// refuse writes into the status why the check is idle. Next to a newer version it writes nothing.
func (c *check) refuse() plan.Sequence {
	severity, notes := machinev1beta1.ConditionSeverityError, []plan.Note{plan.Warning(c.object(c.h), "RemediationRestricted", c.idles.message)}
	if _, paused := c.h.Annotations[machine.AnnotationPaused]; paused { // people did that, and know
		severity, notes = machinev1beta1.ConditionSeverityInfo, nil
	}
	if c.newer {
		return plan.Sequence{Notes: notes}
	}
	next := c.h.DeepCopy()
	next.Status.RemediationsAllowed = 0
	next.Status.Conditions = machine.SetCondition(next.Status.Conditions, machine.False(machinev1beta1.RemediationAllowedCondition,
		severity, c.idles.reason, c.idles.message), c.Now)
	return c.tell(next, notes, "idle: "+c.idles.reason)
}

func (c *check) tell(next *machine.MachineHealthCheck, notes []plan.Note, why string) plan.Sequence {
	if plan.Same(c.h.Status, next.Status) {
		return plan.Sequence{}
	}
	return plan.Sequence{Do: []plan.Action{plan.UpdateStatus{Old: c.object(c.h), New: c.object(next), Why: why}}, Notes: notes}
}

// wellbeing tells apart why Machines are not healthy: starting is not sick (B53).
func (c *check) wellbeing() machine.Condition {
	if c.sum.unhealthy() == 0 {
		return machine.True(machine.ConditionMachinesHealthy, "", "")
	}
	message := c.sum.String()
	if len(c.sum.names) > 0 {
		message += "; sick: " + plan.Few(c.sum.names, maxNames)
	}
	return machine.False(machine.ConditionMachinesHealthy, machinev1beta1.ConditionSeverityInfo, "NotAllHealthy", message)
}

// remediating names what is in flight, with its step. A check that never remediated anything carries no condition.
func (c *check) remediating() []machine.Condition {
	if len(c.next.InFlight) == 0 {
		if machine.FindCondition(c.h.Status.Conditions, machine.ConditionRemediating) == nil {
			return nil
		}
		return []machine.Condition{machine.False(machine.ConditionRemediating, machinev1beta1.ConditionSeverityInfo, "NothingInFlight", "")}
	}
	var flying []string
	reason, end := "InFlight", ""
	for _, f := range c.next.InFlight {
		does := "replaced"
		if t := c.target(f.UID); t != nil && t.m.DeletionTimestamp == nil {
			does = c.does(f, t)
		}
		flying = append(flying, fmt.Sprintf("%s (%s since %s)", f.Machine, does, machine.Stamp(f.At.Time)))
		if c.overdue(f) {
			reason, end = reasonOverdue, fmt.Sprintf(endOverdue, f.Machine)
		}
	}
	return []machine.Condition{machine.True(machine.ConditionRemediating, reason, plan.Few(flying, maxNames)+end)}
}

// What is told of a Machine of the control plane whose remediation is not over in time, with what ends it.
const (
	reasonOverdue = "ControlPlaneOverdue"
	endOverdue    = "; no other one of the control plane is remediated before %s is well, or one made since is Ready in its place. If none shall be: take annotation " +
		machine.AnnotationInFlight + " off the check"
)

// tellOverdue warns once that the control plane is held up until people see to it.
func (c *check) tellOverdue(flying []machine.Condition) []plan.Note {
	told := machine.FindCondition(c.h.Status.Conditions, machine.ConditionRemediating)
	if len(flying) == 0 || flying[0].Reason != reasonOverdue || told != nil && told.Reason == reasonOverdue {
		return nil
	}
	return []plan.Note{plan.Warning(c.object(c.h), "RemediationOverdue", flying[0].Message)}
}

// commit stores what a check has to remember.
func (c *check) commit() plan.Sequence {
	next := c.h.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[machine.AnnotationInFlight] = c.next.String()
	if c.next.String() == "" {
		delete(next.Annotations, machine.AnnotationInFlight)
	}
	return plan.Sequence{Do: []plan.Action{plan.Update{Old: c.object(c.h), New: c.object(next), Why: c.next.why()}}, Notes: c.settled}
}

// show writes on a Machine what the checks say about it, and why it is not remediated if it is not. A Machine that was
// never found unhealthy carries no condition, unless its health is that of another Node than the linked one.
func (d *decision) show(m *machine.Machine, v verdict) plan.Sequence {
	have := machine.FindCondition(m.Status.Conditions, machine.ConditionHealthy)
	unknown := (v.reason == reasonStartup || v.reason == reasonInvalid) && !d.whole // of a Node that nobody linked, or the set: whoever reads all says so
	if m.DeletionTimestamp != nil || machine.IsPaused(m) || unknown || have == nil && (v.reason == "" && v.message == "" || v.early) {
		return plan.Sequence{}
	}
	want := machine.True(machine.ConditionHealthy, "", "")
	var notes []plan.Note
	switch {
	case v.reason != "":
		message, held := v.message, d.held[m.UID]
		if held != "" {
			message += "; " + held
		}
		want = machine.False(machine.ConditionHealthy, machinev1beta1.ConditionSeverityWarning, v.reason, message)
		notes = []plan.Note{plan.Normal(m, "DetectedUnhealthy", message)}
		if held == heldOwner {
			notes = append(notes, plan.Warning(m, "SkippedNoController", held))
		}
	case v.message != "":
		want = machine.True(machine.ConditionHealthy, reasonAnother, v.message)
	}
	next := m.DeepCopy()
	next.Status.Conditions = machine.SetCondition(next.Status.Conditions, want, d.Now)
	if plan.Same(m.Status, next.Status) {
		return plan.Sequence{}
	}
	return plan.Sequence{Do: []plan.Action{plan.UpdateStatus{Old: m, New: next, Why: cmp.Or(v.reason, "healthy")}}, Notes: notes}
}

// forget takes the verdict off a Machine that no check looks at any more.
func forget(m *machine.Machine) plan.Sequence {
	if machine.IsPaused(m) || machine.FindCondition(m.Status.Conditions, machine.ConditionHealthy) == nil {
		return plan.Sequence{}
	}
	next := m.DeepCopy()
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c machine.Condition) bool { return c.Type == machine.ConditionHealthy })
	return plan.Sequence{Do: []plan.Action{plan.UpdateStatus{Old: m, New: next, Why: "no check looks at it"}}}
}

// worst returns for every Machine that a check looks at what the checks say: of several, the one that is due first.
func worst(checks []*check) map[*machine.Machine]verdict {
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
