// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// retag gives the instance the tags that its providerSpec wants and that it lacks, where the cloud can (SPEC E1, B20).
// Tags that the spec no longer names stay, as labels do on Nodes: nobody knows who else set them. What just came out of a
// call has the tags that it was made with.
func (l life) retag() plan.Sequence {
	in := l.in
	if _, called := created(l.Snapshot, l.m, l.intent); called || in == nil || !settled(l.m) {
		return plan.Sequence{}
	}
	lacks, waits := l.lacking(*in), tagPauseOf(l.m)
	switch {
	case lacks != nil && waits.Schema > tagPauseSchema: // a newer version's, which is not written over (G9)
		return l.tell("FailedUpdate", fmt.Sprintf("metadata.annotations[%s]: schema %d, this version reads %d: the tags are left to whoever wrote it",
			machine.AnnotationTagsRefused, waits.Schema, tagPauseSchema))
	case lacks == nil && waits.NotBefore.IsZero():
		return plan.Sequence{}
	case lacks == nil:
		next := l.m.DeepCopy()
		delete(next.Annotations, machine.AnnotationTagsRefused)
		return l.update(next, "instance "+in.ID+" has its tags")
	case waits.Generation == l.m.Generation && l.Now.Before(waits.NotBefore.Time) && !machine.TooFar(waits.NotBefore.Time, l.Now, machine.LongestPause):
		return plan.Sequence{}
	}
	names := strings.Join(slices.Sorted(maps.Keys(lacks)), ", ")
	a := plan.UpdateInstance{Account: l.cloud.Account, Cluster: l.cloud.Cluster, Tags: lacks, Why: "tags that the providerSpec wants"}
	a.Ref = l.refOf(*in)
	switch o, tried := l.Outcome(a); {
	case !tried:
		return plan.Sequence{Do: []plan.Action{a}, Notes: []plan.Note{l.normal("Update", "Updated tags of instance "+in.ID+": "+names)}}
	case o.Result == plan.Done, o.Result == plan.Gone:
		return plan.Sequence{} // the cloud's list tells in the next scan
	default:
		why := "tags " + names + ": " + cmp.Or(o.Message, "there is no such instance")
		seq := l.update(l.withTagPause(waits, o.RetryAfter, why), why)
		seq.Notes = []plan.Note{l.warning("FailedUpdate", why)}
		return seq
	}
}

// lacking returns the tags that the spec wants and in does not have; nil if there are none.
func (l life) lacking(in provider.Instance) map[string]string {
	var lacks map[string]string
	for name, value := range l.cloud.Tags {
		if has, ok := in.Tags[name]; !ok || has != value {
			if lacks == nil {
				lacks = map[string]string{}
			}
			lacks[name] = value
		}
	}
	return lacks
}

// tagPause is what provision-machine remembers of tags that a cloud did not set, in AnnotationTagsRefused, until it sets
// them or the spec changes: a call for every Machine in every scan would use up what the account may ask.
type tagPause struct {
	Schema     int         `json:"schema"`
	Generation int64       `json:"generation,omitempty"` // of the Machine whose tags they are
	Failures   int         `json:"failures"`             // in a row
	NotBefore  metav1.Time `json:"notBefore"`
	Message    string      `json:"message,omitempty"` // in the cloud's words
}

const tagPauseSchema = 1

// tagPauseOf returns the pause of m; none where there is no record that can be read, and of a newer version's its schema alone.
func tagPauseOf(m *machine.Machine) tagPause {
	var p tagPause
	var of struct {
		Schema int `json:"schema"`
	}
	text, ok := m.Annotations[machine.AnnotationTagsRefused]
	switch {
	case ok && json.Unmarshal([]byte(text), &of) == nil && of.Schema > tagPauseSchema: // whatever its fields are
		return tagPause{Schema: of.Schema}
	case !ok || json.Unmarshal([]byte(text), &p) != nil || p.Failures < 0:
		return tagPause{}
	}
	return p
}

// withTagPause returns the Machine with a pause that is twice as long as the last, or longer if the cloud says so.
func (l life) withTagPause(last tagPause, after time.Duration, why string) *machine.Machine {
	if last.Generation != l.m.Generation {
		last.Failures = 0
	}
	due := metav1.NewTime(l.Now.Add(pause(last.Failures, after)).Truncate(time.Second))
	text, err := json.Marshal(tagPause{tagPauseSchema, l.m.Generation, last.Failures + 1, due, why})
	next := l.m.DeepCopy()
	if err == nil { // it has only words, numbers and a time
		metav1.SetMetaDataAnnotation(&next.ObjectMeta, machine.AnnotationTagsRefused, string(text))
	}
	return next
}
