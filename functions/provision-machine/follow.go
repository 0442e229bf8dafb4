// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// follow keeps a Machine that has an instance, or had one, true to what the cloud shows. Where nothing was asked of
// the cloud only the phase can move.
func (l life) follow() plan.Sequence {
	in := l.in
	if in == nil {
		return l.followUnseen()
	}
	record := l.recordInstance(*in)
	if len(record.Do) > 0 {
		return record
	}
	seq := l.report(l.phaseWithInstance(), in)
	seq.Notes = slices.Concat(seq.Notes, record.Notes, l.renamed(*in))
	twin := l.twin(*in)
	return plan.Sequence{Do: append(seq.Do, twin.Do...), Notes: append(seq.Notes, twin.Notes...)}
}

// followUnseen does so where the cloud shows no instance, was not asked or did not answer.
func (l life) followUnseen() plan.Sequence {
	_, asked := l.Clouds[l.m.UID]
	switch {
	case !asked:
		return l.report(l.phaseWithInstance(), nil)
	case l.cloud.Err != nil && l.Request.Scan() && !l.turn():
		return plan.Sequence{}
	case l.cloud.Err != nil:
		return l.reportError(l.cloud.Err.Message)
	}
	if seq := l.inherit(); seq != nil {
		return *seq
	}
	return l.missing()
}

func (l life) phaseWithInstance() string {
	switch {
	case machine.ProviderID(l.m) == "" || len(l.m.Status.Addresses) == 0 && l.in == nil:
		return phase(l.m)
	case l.m.Status.NodeRef == nil:
		return machine.PhaseProvisioned
	}
	return machine.PhaseRunning
}

// found returns the Machine's own instance: the one that this invocation created, the recorded one, or one that no other
// can be; else the only one that carries the Machine's UID; of several the smallest id once none can surface any more (2b.7).
func (l life) found() *provider.Instance {
	if in := l.made(); in != nil {
		return in
	}
	return l.shown()
}

// shown returns the one of them that the cloud shows. What the attempt has yet to finish is none to record, nor what the cloud
// found no room for: the attempt goes on (E2). One that is on record stays what it is.
func (l life) shown() *provider.Instance {
	id := machine.ProviderID(l.m)
	recorded := id != ""
	var mine []*provider.Instance
	var renamed *provider.Instance
	for k := range l.cloud.Found {
		in := &l.cloud.Found[k]
		switch {
		case in.Child, in.State == provider.StateDeleting, !recorded && l.unfinished(*in):
		case recorded && machine.SameID(in.ProviderID, id) && (in.UID == "" || in.UID == machine.InstanceUID(l.m)):
			return in
		case recorded && in.Sole && in.UID == machine.InstanceUID(l.m):
			renamed = in
		case !recorded:
			mine = append(mine, in)
		}
	}
	if recorded {
		return renamed
	}
	return l.smallest(mine)
}

// made returns the instance that this invocation created, unless another is recorded.
func (l life) made() *provider.Instance {
	o, ok := created(l.Snapshot, l.m, l.intent)
	done := ok && o.Result == plan.Done && o.Instance.ID != "" && o.Instance.State != provider.StateIncomplete
	if done && (machine.ProviderID(l.m) == "" || machine.SameID(machine.ProviderID(l.m), o.Instance.ProviderID)) {
		in := o.Instance
		return &in
	}
	return nil
}

// smallest returns the one of mine with the smallest id, or nil. While others may surface it is the one of the last attempt.
func (l life) smallest(mine []*provider.Instance) *provider.Instance {
	if len(mine) > 1 && l.intent.Unresolved() && l.Now.Before(l.intent.SurfacesUntil(l.cloud.Horizon)) {
		mine = slices.DeleteFunc(mine, func(in *provider.Instance) bool { return in.Token != l.intent.Token })
	}
	if len(mine) == 0 {
		return nil
	}
	return slices.MinFunc(mine, func(a, b *provider.Instance) int { return cmp.Compare(a.ID, b.ID) })
}

// missing is a recorded instance that the cloud does not show. It is believed gone after the Horizon and two readings
// (B21, R-S12); the first is remembered in the condition.
func (l life) missing() plan.Sequence {
	c := machine.FindCondition(l.m.Status.Conditions, machine.ConditionInstanceExists)
	if missed(l.m) && !machine.TooFar(c.LastTransitionTime.Time, l.Now, 0) { // else by a clock that was ahead (RELIABILITY G7)
		return l.lost(l.m.DeepCopy(), c.LastTransitionTime.Time)
	}
	next := l.m.DeepCopy() // without what was False for another reason, or since a time to come: its time would be taken for the first reading's
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c machine.Condition) bool { return c.Type == machine.ConditionInstanceExists })
	return l.lost(next, l.Now)
}

// believed is how far apart two readings without an instance lie at least, however short the cloud's Horizon is: a list that
// was full a moment ago may be empty by mishap, and Failed is final (G8, R-S12).
const believed = time.Minute

// givenUp returns when an instance that is missing since then is believed gone. One that the cloud itself shows as ended, as
// EC2 does one that it took back, is no lag of a list: for it no Horizon is waited.
func (l life) givenUp(since time.Time) time.Time {
	if l.cloud.Ended != "" {
		return since.Add(believed)
	}
	return since.Add(max(l.cloud.Horizon, believed))
}

// unfound is what a Machine fails of whose instance is given up.
const unfound = "can't find created instance"

// lost writes into next since when the instance is missing, and fails the Machine when the Horizon has passed since.
func (l life) lost(next *machine.Machine, since time.Time) plan.Sequence {
	due := l.givenUp(since)
	if alive := l.aliveAllTheSame(); alive != "" && !l.Now.Before(due) {
		why := "Instance not found since " + machine.Stamp(since) + ", but " + alive + ": not given up"
		l.set(next, missingCondition(why))
		seq := l.status(next, l.underWay(), "instance not found")
		seq.Notes = append(seq.Notes, l.warning("FailedUpdate", why))
		return seq
	}
	if !l.Now.Before(due) {
		l.set(next, missingCondition(l.withCause("Instance not found since "+machine.Stamp(since)+", given up at "+machine.Stamp(l.Now))))
		seq := l.failAs(next, "", l.withCause(unfound))
		seq.Notes = append(seq.Notes, l.warning("FailedUpdate", l.withCause(unfound)))
		return seq
	}
	l.set(next, missingCondition(l.withCause("Instance not found since "+machine.Stamp(since)+", given up at "+machine.Stamp(due))))
	return l.status(next, l.underWay(), "instance not found")
}

// underWay returns the phase of a Machine whose instance is in doubt: one that was made anew, without its status, has none yet (B14).
func (l life) underWay() string { return cmp.Or(phase(l.m), machine.PhaseProvisioning) }

// withCause adds to a text about an instance that is missing why it ended, if the cloud says so, and what is there in its stead.
func (l life) withCause(text string) string {
	if l.cloud.Ended != "" {
		text += ": " + l.cloud.Ended
	}
	if others := l.carriers(); len(others) > 0 {
		text += ": " + l.misrecorded(others[0])
	}
	return text
}

// aboutToFail reports whether an instance is missing for so long that only its Node can say that it is there.
func (l life) aboutToFail() bool {
	c := machine.FindCondition(l.m.Status.Conditions, machine.ConditionInstanceExists)
	_, asked := l.Clouds[l.m.UID]
	return asked && l.m.DeletionTimestamp == nil && l.cloud.Err == nil && !l.cloud.Later && l.in == nil && missed(l.m) && phase(l.m) != machine.PhaseFailed &&
		!l.Now.Before(l.givenUp(c.LastTransitionTime.Time))
}

// missed reports whether the instance is on record as missing.
func missed(m *machine.Machine) bool {
	c := machine.FindCondition(m.Status.Conditions, machine.ConditionInstanceExists)
	return c != nil && c.Status == corev1.ConditionFalse && c.Reason == machinev1beta1.InstanceMissingReason
}

func missingCondition(why string) machine.Condition {
	return machine.False(machine.ConditionInstanceExists, machinev1beta1.ConditionSeverityWarning, machinev1beta1.InstanceMissingReason, why)
}
