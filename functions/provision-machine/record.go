// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// edit changes a Machine that is about to be written.
type edit func(*machine.Machine)

// recordInstance writes what is known of the instance, in one write. Where the API server, or somebody's policy, refuses that, the
// identity is written alone: an instance without its id on record runs and is paid for, and nobody finds its Node. What is
// refused is told, and asked for again by every scan.
func (l life) recordInstance(in provider.Instance) plan.Sequence {
	identity := l.identity(in)
	all := l.edited(slices.Concat(identity, l.words(in)), "", "instance "+in.ID)
	if all == nil {
		return plan.Sequence{}
	}
	why, refused := l.Refused(*all)
	if !refused {
		return plan.Sequence{Do: []plan.Action{*all}, Notes: l.recordedNotes(in)}
	}
	told := []plan.Note{l.warning("FailedUpdate", "what is known of instance "+in.ID+" cannot be written: "+why)}
	alone := l.edited(identity, partIdentity, "instance "+in.ID+", its identity alone")
	switch {
	case alone == nil:
		return plan.Sequence{Notes: told}
	case l.isRefused(*alone):
		seq := l.unrecordable(in, why)
		seq.Notes = append(seq.Notes, told...)
		return seq
	}
	return plan.Sequence{Do: []plan.Action{*alone}, Notes: append(l.recordedNotes(in), told...)}
}

// partIdentity names the write of an instance's identity alone.
const partIdentity = "identity"

// recordedNotes tells that an instance was made, or is as it should not be.
func (l life) recordedNotes(in provider.Instance) []plan.Note {
	switch {
	case machine.ProviderID(l.m) == "" && !l.intent.Called():
		return []plan.Note{l.normal("Adopt", "Took over instance "+in.ID)}
	case machine.ProviderID(l.m) == "":
		return []plan.Note{l.normal("Create", "Created instance "+in.ID)}
	case in.State != provider.StatePending && in.State != provider.StateRunning:
		return []plan.Note{l.normal("Update", fmt.Sprintf("Instance %s is %s", in.ID, in.CloudState))}
	}
	return nil
}

// surfaced goes on with a deleted Machine whose instance came out of a lost answer, or waits for further calls that nobody makes any
// more: its identity is written, so that its Node is found (R-B31). Where that is refused the instance goes all the same, and its Node is left
// to sweep-instances.
func (l life) surfaced(in provider.Instance) plan.Sequence {
	what := "of a lost answer"
	if in.State == provider.StateIncomplete {
		what = "that is not complete"
	}
	a := l.edited(l.identity(in), partIdentity, "instance "+in.ID+" "+what)
	if !l.isRefused(*a) {
		return plan.Sequence{Do: []plan.Action{*a}}
	}
	o, _ := l.Outcome(*a)
	seq := l.remove()
	seq.Notes = append(seq.Notes, l.warning("FailedUpdate", "instance "+in.ID+" cannot be recorded: "+o.Message))
	return seq
}

func (l life) isRefused(a plan.Action) bool {
	_, refused := l.Refused(a)
	return refused
}

// identity returns what has to be on record before anything else: the id, which is written once and never changes (R-S16),
// that the attempt is over, and in whose account the instance is.
func (l life) identity(in provider.Instance) []edit {
	var edits []edit
	if machine.ProviderID(l.m) == "" {
		edits = append(edits, func(m *machine.Machine) { m.Spec.ProviderID = &in.ProviderID })
	}
	if i := l.intent; i != nil && (i.Outcome != machine.OutcomeCreated || l.unclustered() || l.moved()) {
		done := i.Onward(l.m, in.Token).Released(machine.OutcomeCreated, time.Time{})
		done.Failures, done.Code, done.Message = 0, "", ""
		if !i.Made(l.m) || i.Instance == "" { // else what was made for it, whatever people led it to since
			done.Instance = in.ID
		}
		if l.unclustered() {
			done = done.In(l.m, l.cloud.Cluster)
		}
		if l.moved() {
			done = l.readdressed(done)
		}
		edits = append(edits, func(m *machine.Machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, machine.AnnotationIntent, done.String())
		})
	}
	if l.cloud.Owner != "" && l.m.Annotations[machine.AnnotationCloudAccount] != l.cloud.Owner {
		edits = append(edits, l.owned)
	}
	return edits
}

// words returns what else the cloud says of the instance that is not on record. Labels that people set are kept.
func (l life) words(in provider.Instance) []edit {
	var edits []edit
	annotate := func(key, value string) {
		if value != "" && l.m.Annotations[key] != value {
			edits = append(edits, func(m *machine.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value) })
		}
	}
	for _, word := range [][2]string{{machine.LabelInstanceType, in.Type}, {machine.LabelRegion, in.Region}, {machine.LabelZone, in.Zone}} {
		if machine.LacksWord(l.m, word[0], word[1]) {
			edits = append(edits, func(m *machine.Machine) { machine.SetWord(m, word[0], word[1]) })
		}
	}
	_, marked := l.m.Labels[machine.LabelInterruptible]
	if _, node := l.m.Spec.Labels[machine.LabelInterruptible]; in.Spot && !(marked && node) {
		edits = append(edits, markSpot)
	}
	annotate(machine.AnnotationInstanceState, in.CloudState)
	annotate(machine.AnnotationBareMetalHost, machine.BareMetalHost(in.ProviderID))
	return edits
}

// edited returns the write of these edits, or nil if there are none.
func (l life) edited(edits []edit, part, why string) *plan.Update {
	if len(edits) == 0 {
		return nil
	}
	next := l.m.DeepCopy()
	for _, change := range edits {
		change(next)
	}
	return &plan.Update{Old: l.m, New: next, Why: why, Part: part}
}

// markSpot marks an instance that the cloud may take back; the spec's label is for the Node.
func markSpot(m *machine.Machine) {
	metav1.SetMetaDataLabel(&m.ObjectMeta, machine.LabelInterruptible, "")
	if m.Spec.Labels == nil {
		m.Spec.Labels = map[string]string{}
	}
	m.Spec.Labels[machine.LabelInterruptible] = ""
}

// unrecordable says in the status that the instance is there, but that not even its id can be written.
func (l life) unrecordable(in provider.Instance, why string) plan.Sequence {
	next := l.m.DeepCopy()
	reason, message := reasonCreate, "instance "+in.ID+" exists, but cannot be recorded: "+why
	next.Status.ErrorReason, next.Status.ErrorMessage = &reason, &message
	l.set(next, l.exists(in))
	l.keepWords(next)
	return l.status(next, phase(l.m), message)
}
