// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// repair makes the next step of what is in flight, if the Machine is still sick and the budget lets it: claim
// it, then act. touched are the Machines that are written in this round already.
func (d *decision) repair(c *check, touched map[*machine.Machine]bool) []plan.Sequence {
	var all []plan.Sequence
	for _, f := range c.record.InFlight {
		t := c.target(f.UID)
		if t == nil || !t.sick(d.Now) || touched[t.m] || d.held[f.UID] != "" || !d.budget.lets(t) {
			continue
		}
		claim := c.claim(f, t)
		switch does := c.does(f, t); {
		case t.m.Annotations[machine.AnnotationRemediatedBy] != claim:
			all = append(all, c.take(t, claim, does))
		case does == stepReplace:
			all = append(all, c.replace(t))
		case does == stepTemplate && !t.requested:
			all = append(all, c.handOver(t, claim))
		}
		touched[t.m] = true
	}
	return all
}

// take claims a Machine, by compare-and-swap: two checks may look at it (RELIABILITY 2f). A power-cycle is asked for
// in the same write, once for each claim: whoever carries it out takes that annotation away (B57). A later step takes
// back what nobody carried out.
func (c *check) take(t *target, claim, does string) plan.Sequence {
	next := t.m.DeepCopy()
	withdrawPowerCycle(next)
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, machine.AnnotationRemediatedBy, claim)
	if does != stepPowerCycle {
		return plan.Sequence{Do: []plan.Action{plan.Update{Old: t.m, New: next, Why: t.message}}}
	}
	metav1.SetMetaDataAnnotation(&next.ObjectMeta, machine.AnnotationExternalRepair, "")
	a := plan.Update{Old: t.m, New: next, Why: t.message}
	if why, refused := c.Refused(a); refused {
		return plan.Sequence{Notes: []plan.Note{plan.Warning(t.m, "ExternalAnnotationFailed", why)}}
	}
	return plan.Sequence{
		Do:    []plan.Action{a},
		Notes: []plan.Note{plan.Normal(t.m, "ExternalAnnotationAdded", "power-cycle requested: "+t.message)},
	}
}

// replace deletes a Machine as it was seen; its set makes another (B56).
func (c *check) replace(t *target) plan.Sequence {
	a := plan.Delete{Object: t.m, IfUnchanged: true, Why: t.message}
	if why, refused := c.Refused(a); refused {
		return plan.Sequence{Notes: []plan.Note{plan.Warning(t.m, "MachineDeletionFailed", why)}}
	}
	return plan.Sequence{
		Do:    []plan.Action{a},
		Notes: []plan.Note{plan.Normal(t.m, "MachineDeleted", "remediated by deletion: "+t.message)},
	}
}

// handOver asks somebody else to remediate a Machine (B58). What is wrong with the template is in the check's status.
func (c *check) handOver(t *target, claim string) plan.Sequence {
	a, err := c.ask(t, claim)
	if err != nil {
		return plan.Sequence{}
	}
	return plan.Sequence{
		Do:    []plan.Action{a},
		Notes: []plan.Note{plan.Normal(t.m, "RemediationRequested", "by "+string(c.external.request)+": "+t.message)},
	}
}

// release takes claims off Machines that are in no check's flight any more and well, or that people do not want remediated, with a power-cycle
// that was asked for and never carried out; of what such a flight binds still, that alone.
func (d *decision) release(verdicts map[*machine.Machine]verdict, touched map[*machine.Machine]bool) []plan.Sequence {
	var all []plan.Sequence
	for _, m := range d.Machines {
		_, is := m.Annotations[machine.AnnotationRemediatedBy]
		t := target{m: m, verdict: verdicts[m]}
		kept, free := t.reason != "" && t.excused(d.Now) != "", d.free(m, "")
		if !is || t.reason != "" && !kept || touched[m] || m.DeletionTimestamp != nil || machine.IsPaused(m) || !free && !kept {
			continue
		}
		next := m.DeepCopy()
		withdrawPowerCycle(next)
		if free && !d.recovering(m) {
			delete(next.Annotations, machine.AnnotationRemediatedBy)
		}
		if maps.Equal(m.Annotations, next.Annotations) {
			continue
		}
		all = append(all, plan.Sequence{Do: []plan.Action{plan.Update{Old: m, New: next, Why: "remediation is over"}}})
	}
	return all
}

// recovering reports whether a check has yet to see m well for as long as it asks for: what was tried is not forgotten before.
func (d *decision) recovering(m *machine.Machine) bool {
	return slices.ContainsFunc(d.checks, func(c *check) bool {
		t := c.target(m.UID)
		return t != nil && t.recovering
	})
}

// withdrawPowerCycle takes the wish for a power-cycle off m if the claim on m asked for it.
func withdrawPowerCycle(m *machine.Machine) {
	if fields := strings.Fields(m.Annotations[machine.AnnotationRemediatedBy]); len(fields) > 1 && fields[1] == stepPowerCycle {
		delete(m.Annotations, machine.AnnotationExternalRepair)
	}
}
