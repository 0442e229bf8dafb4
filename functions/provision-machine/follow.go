// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// follow keeps a Machine that has an instance, or had one, true to what the cloud shows. Where nothing was asked of
// the cloud only the phase can move.
func (l life) follow() plan.Sequence {
	in := l.in
	_, asked := l.Clouds[l.m.UID]
	switch {
	case in == nil && !asked:
		return l.report(l.phaseWithInstance(), nil)
	case in == nil && l.cloud.Err != nil && l.Request.Scan() && !l.turn():
		return plan.Sequence{}
	case in == nil && l.cloud.Err != nil:
		return l.reportError(l.cloud.Err.Message)
	case in == nil:
		return l.missing()
	}
	if next := l.recorded(*in); next != nil {
		seq := l.update(next, "instance "+in.ID)
		switch {
		case l.m.Spec.ProviderID == nil:
			seq.Notes = []plan.Note{l.normal("Create", "Created instance "+in.ID)}
		case in.State != provider.StatePending && in.State != provider.StateRunning:
			seq.Notes = []plan.Note{l.normal("Update", fmt.Sprintf("Instance %s is %s", in.ID, in.CloudState))}
		}
		return seq
	}
	seq := l.report(l.phaseWithInstance(), in)
	if twin := l.twin(*in); twin != nil {
		seq.Do = append(seq.Do, *twin)
	}
	return seq
}

func (l life) phaseWithInstance() string {
	switch {
	case l.m.Spec.ProviderID == nil || len(l.m.Status.Addresses) == 0 && l.in == nil:
		return phase(l.m)
	case l.m.Status.NodeRef == nil:
		return machine.PhaseProvisioned
	}
	return machine.PhaseRunning
}

// found returns the Machine's own instance: the one that this invocation created, the recorded one, else the only one that carries the Machine's UID; of several the smallest id once none can surface any more (2b.7).
func (l life) found() *provider.Instance {
	o, ok := created(l.Snapshot, l.m, l.intent)
	made := ok && o.Result == plan.Done && o.Instance.ID != "" && o.Instance.State != provider.StateIncomplete
	id, recorded := machine.ProviderID(l.m), l.m.Spec.ProviderID != nil
	if made && (!recorded || id == o.Instance.ProviderID) {
		return &o.Instance
	}
	var mine []*provider.Instance
	for k := range l.cloud.Found {
		in := &l.cloud.Found[k]
		switch {
		case in.Child, in.State == provider.StateIncomplete, in.State == provider.StateDeleting:
		case recorded && in.ProviderID == id:
			return in
		case !recorded:
			mine = append(mine, in)
		}
	}
	if len(mine) > 1 && l.intent.Unresolved() && l.Now.Before(l.intent.SurfacesUntil(l.cloud.Horizon)) {
		mine = slices.DeleteFunc(mine, func(in *provider.Instance) bool { return in.Token != l.intent.Token })
	}
	if len(mine) == 0 {
		return nil
	}
	return slices.MinFunc(mine, func(a, b *provider.Instance) int { return cmp.Compare(a.ID, b.ID) })
}

// twin removes an instance that carries the Machine's UID but is not the recorded one: what a lost answer left behind.
func (l life) twin(mine provider.Instance) *plan.DeleteInstance {
	for _, in := range l.cloud.Found {
		if in.Child || in.ID == mine.ID || in.UID != l.m.UID || in.State == provider.StateDeleting {
			continue
		}
		a := plan.DeleteInstance{Account: l.cloud.Account, Why: "duplicate of " + mine.ID}
		a.Ref = provider.Ref{Name: l.m.Name, ID: in.ID}
		if _, tried := l.Outcome(a); !tried {
			return &a
		}
	}
	return nil
}

// recorded returns the Machine with what is known of its instance, or nil if all of it is on record: the id is written
// once and never changes (R-S16), labels that people set are kept.
func (l life) recorded(in provider.Instance) *machine.Machine {
	var edits []func(*machine.Machine)
	edit := func(f func(*machine.Machine)) { edits = append(edits, f) }
	if l.m.Spec.ProviderID == nil {
		edit(func(m *machine.Machine) { m.Spec.ProviderID = &in.ProviderID })
	}
	for _, label := range [][2]string{{machine.LabelInstanceType, in.Type}, {machine.LabelRegion, in.Region}, {machine.LabelZone, in.Zone}} {
		if _, set := l.m.Labels[label[0]]; !set && label[1] != "" {
			edit(func(m *machine.Machine) { metav1.SetMetaDataLabel(&m.ObjectMeta, label[0], label[1]) })
		}
	}
	if _, marked := l.m.Spec.Labels[machine.LabelInterruptible]; in.Spot && !marked {
		edit(markSpot)
	}
	if in.CloudState != "" && l.m.Annotations[machine.AnnotationInstanceState] != in.CloudState {
		edit(func(m *machine.Machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, machine.AnnotationInstanceState, in.CloudState)
		})
	}
	if host := machine.BareMetalHost(in.ProviderID); host != "" && l.m.Annotations[machine.AnnotationBareMetalHost] != host {
		edit(func(m *machine.Machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, machine.AnnotationBareMetalHost, host)
		})
	}
	if i := l.intent; i != nil && i.Outcome != machine.OutcomeCreated {
		done := i.Released(machine.OutcomeCreated, time.Time{})
		done.Instance, done.Failures, done.Code, done.Message = in.ID, 0, "", ""
		edit(func(m *machine.Machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, machine.AnnotationIntent, done.String())
		})
	}
	if len(edits) == 0 {
		return nil
	}
	next := l.m.DeepCopy()
	for _, f := range edits {
		f(next)
	}
	return next
}

// markSpot marks an instance that the cloud may take back; the spec's label is for the Node.
func markSpot(m *machine.Machine) {
	metav1.SetMetaDataLabel(&m.ObjectMeta, machine.LabelInterruptible, "")
	if m.Spec.Labels == nil {
		m.Spec.Labels = map[string]string{}
	}
	m.Spec.Labels[machine.LabelInterruptible] = ""
}

// missing is a recorded instance that the cloud does not show. It is believed gone after the Horizon and two readings
// (B21, R-S12); the first is remembered in the condition.
func (l life) missing() plan.Sequence {
	c := machine.FindCondition(l.m.Status.Conditions, machine.ConditionInstanceExists)
	if c != nil && c.Status == corev1.ConditionFalse && c.Reason == machinev1beta1.InstanceMissingReason {
		return l.lost(l.m.DeepCopy(), c.LastTransitionTime.Time)
	}
	next := l.m.DeepCopy() // without what was False for another reason: its time would be taken for the first reading's
	next.Status.Conditions = slices.DeleteFunc(next.Status.Conditions, func(c machine.Condition) bool { return c.Type == machine.ConditionInstanceExists })
	return l.lost(next, l.Now)
}

// lost writes into next since when the instance is missing, and fails the Machine when the Horizon has passed since.
func (l life) lost(next *machine.Machine, since time.Time) plan.Sequence {
	due := since.Add(max(l.cloud.Horizon, retryBase))
	if !l.Now.Before(due) {
		seq := l.fail("", "can't find created instance")
		seq.Notes = append(seq.Notes, l.warning("FailedUpdate", "can't find created instance"))
		return seq
	}
	l.set(next, machine.False(machine.ConditionInstanceExists, machinev1beta1.ConditionSeverityWarning,
		machinev1beta1.InstanceMissingReason, "Instance not found since "+stamp(since)+", given up at "+stamp(due)))
	return l.status(next, phase(l.m), "instance not found")
}
