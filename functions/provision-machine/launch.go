// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"bytes"
	"cmp"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	claimFor = machine.LongestClaim
	// retryBase doubles with every refusal in a row, up to retryMax. The walk-through saw a retry every 4 s (S23); a
	// cloud that refuses is asked less and less often.
	retryBase = 5 * time.Second
	retryMax  = 5 * time.Minute
	// unclearMax bounds the same pause where nobody knows what became of the call: sooner or later it is repeated to find out,
	// but a cloud that answers nothing clear must not spend on that all that one credential may ask.
	unclearMax = time.Minute
	// restock is how often a stock is looked into that people fill, however often it was found empty (SPEC E31).
	restock = 30 * time.Second
	// patience is how many refusals in a row an attempt that has made something outlasts: with these pauses five minutes of
	// a cloud that has no room now. Then it counts as one that will not pass.
	patience = 6
)

// launch takes a Machine without an instance one step towards it.
func (l life) launch() plan.Sequence {
	i := l.intent
	o, tried := created(l.Snapshot, l.m, i)
	switch {
	case tried && i.Holder == l.Invocation:
		return l.answered(o)
	case tried: // one call in one invocation; what became of it is recorded
		return l.stuck(o)
	case phase(l.m) == "":
		return l.report(machine.PhaseProvisioning, nil)
	case i != nil && l.unreported():
		return l.refused()
	case waits(l.Snapshot, l.m, i):
		return plan.Sequence{}
	case l.goesOn():
		return l.status(l.m.DeepCopy(), phase(l.m), "the attempt goes on")
	case l.cloud.Err != nil:
		return l.unreachable()
	case i != nil && i.Outcome == machine.OutcomeCreated:
		return l.missing() // somebody took the providerID off the Machine
	case i.Outdated(l.m):
		return l.giveUp()
	case l.taken(): // it goes on
	case l.leftover():
		return l.clear()
	case l.cloud.Refused != nil && (i == nil || i.Over()):
		return l.refuse(*l.cloud.Refused)
	}
	if seq := l.announce(); len(seq.Do) > 0 {
		return seq
	}
	if why := l.forbidden(); why != "" {
		return l.withhold(why)
	}
	if !l.fresh.remembered(l) {
		return plan.Sequence{} // in the next round
	}
	return l.attempt()
}

// goesOn reports whether the Machine still says when the next attempt is made, but that was made since and not refused.
func (l life) goesOn() bool {
	_, timed := l.overtaken(l.m)
	return timed && l.intent != nil && l.intent.Message == ""
}

// attempt claims the Machine and calls the cloud, in this order: for the first time, for the next step, once more for
// an attempt whose answer was lost, or anew after a refusal.
func (l life) attempt() plan.Sequence {
	var next machine.Intent
	switch i := l.intent; {
	case i == nil:
		next = machine.NewIntent(l.m, 1, l.cloud.Account, l.cloud.Resolved).In(l.m, l.cloud.Cluster)
	case l.taken():
		next = *i
	case i.Over():
		next = machine.NewIntent(l.m, i.Attempt+1, l.cloud.Account, l.cloud.Resolved).In(l.m, l.cloud.Cluster)
		if !i.Edited(l.m) {
			next.Failures = i.Failures
		}
	case i.Outcome == machine.OutcomePartial, l.cloud.Tokens:
		next = *i
	case l.Now.Before(i.SurfacesUntil(l.cloud.Horizon)):
		return l.await() // without tokens a second call could make a second instance
	default:
		gone := i.Released(machine.OutcomeRefused, time.Time{})
		gone.Unanswered = nil
		gone.Message = "no answer, and nothing surfaced until " + machine.Stamp(i.SurfacesUntil(l.cloud.Horizon))
		return plan.Sequence{Do: []plan.Action{l.withIntent(gone, gone.Message)}}
	}
	next = next.Claimed(l.Invocation, l.Now, claimFor)
	ref := provider.Ref{UID: l.m.UID, Name: l.m.Name, Token: next.Token, Progress: next.Progress}
	why := fmt.Sprintf("attempt %d", next.Attempt)
	claim := l.withIntent(next, "claim "+why)
	if m, ok := claim.New.(*machine.Machine); ok {
		l.owned(m)
	}
	return plan.Sequence{
		Do: []plan.Action{
			claim,
			plan.CreateInstance{Account: next.Account, Cluster: l.cloud.Cluster, Ref: ref, Request: next.Request, Why: why},
		},
		Notes: []plan.Note{l.triggersCreate()},
	}
}

// giveUp ends an attempt that was refused midway and whose request nobody wants any more. What it made goes next.
func (l life) giveUp() plan.Sequence {
	over := l.intent.Released(machine.OutcomeRefused, time.Time{})
	over.Failures, over.Code, over.Message = 0, "", "" // the cloud refused nothing: it goes on no more
	return plan.Sequence{Do: []plan.Action{l.withIntent(over, fmt.Sprintf("the spec was edited since attempt %d was refused", over.Attempt))}}
}

// triggersCreate is the line that operators grep for whenever an attempt begins or goes on (S24).
func (l life) triggersCreate() plan.Note {
	return plan.Log(l.m.Name + ": reconciling machine triggers idempotent create")
}

// await says, once, until when nothing is asked for because an answer was lost: that may take a quarter of an hour.
func (l life) await() plan.Sequence {
	why := l.lostAnswer()
	next := l.m.DeepCopy()
	l.set(next, notCreated(why+", and no other is made before"))
	seq := l.status(next, phase(l.m), "an answer was lost")
	if len(seq.Do) > 0 {
		seq.Notes = append(seq.Notes, l.warning("FailedCreate", why))
	}
	return seq
}

// lostAnswer says what is not known of the latest attempt, and until when.
func (l life) lostAnswer() string {
	return fmt.Sprintf("the answer to attempt %d was lost: its instance may surface until %s", l.intent.Attempt, machine.Stamp(l.intent.SurfacesUntil(l.cloud.Horizon)))
}

// withhold tells of a Machine that gets no instance because of its owner. A young one goes again in a moment, as a rule; one
// that stays says what it waits for.
func (l life) withhold(why string) plan.Sequence {
	if young(l.Snapshot, l.m) {
		return plan.Sequence{Notes: []plan.Note{plan.Log(l.m.Name + " gets no instance: " + why)}}
	}
	next := l.m.DeepCopy()
	l.set(next, notCreated("gets no instance: "+why))
	seq := l.status(next, phase(l.m), "its owner does not want it")
	seq.Notes = append(seq.Notes, l.warning("FailedCreate", "gets no instance: "+why))
	return seq
}

// forbidden says why the owner does not want this Machine to have an instance: the fence against Machines that a
// delayed invocation made for an ordinal that was retired meanwhile (RELIABILITY 2a.5).
func (l life) forbidden() string {
	owner := machine.OwningSet(l.m)
	if owner == nil {
		return ""
	}
	set := l.MachineSet(l.m.Namespace, owner.Name)
	if set == nil || set.UID != owner.UID {
		return "its MachineSet " + owner.Name + " is gone"
	}
	if set.DeletionTimestamp != nil {
		return "its MachineSet " + owner.Name + " is being deleted"
	}
	ledger, err := l.Records.Ledger(set)
	if err != nil {
		return "the ledger of its MachineSet " + set.Name + " cannot be read: " + err.Error()
	}
	if ledger.SetUID != set.UID {
		return "the ledger of its MachineSet " + set.Name + " is another set's"
	}
	if k, ok := ledger.OrdinalOf(set.Name, l.m); !ok || !ledger.Active.Has(k) {
		return "it is not in the ledger of " + set.Name
	}
	return ""
}

// answered records what the cloud answered to this invocation's call: the outcome, the end of the claim and the
// backoff in one write. An instance with an id is recorded by follow.
func (l life) answered(o plan.Outcome) plan.Sequence {
	i := *l.intent
	switch o.Result {
	case plan.Done:
		return l.stepped(i, o.Instance.Progress)
	case plan.Unsent:
		return l.unsent(i, o)
	case plan.Refused:
		if after := o.Instance.Progress; len(after) > 0 {
			i.Progress = after
		}
		outcome := l.outcome(i, o)
		if !l.unheard(i, o) {
			i.Unanswered = nil
		}
		return l.record(i, outcome, o.Code, o.Message, o.RetryAfter)
	case plan.Failed, plan.Gone, plan.Conflict, plan.Exists, plan.Blocked: // of a cloud only the first
	}
	again := l.Now.Add(max(min(o.RetryAfter, machine.LongestPause), min(pause(i.Failures, 0), unclearMax)))
	i.Failures++
	seq := plan.Sequence{Do: []plan.Action{l.withIntent(i.Released("", again), "no clear answer: "+o.Message)}}
	seq.Notes = []plan.Note{l.warning("FailedCreate", o.Message)}
	return seq
}

// stepped records how far the attempt is. The write wakes the function, which goes on at once; where the progress is as it was the call had to
// wait, and the next one would too: it comes after a pause, whatever wakes the function meanwhile.
func (l life) stepped(i machine.Intent, progress []byte) plan.Sequence {
	what, again := "made a step", time.Time{}
	if bytes.Equal(i.Progress, progress) {
		what, again = "waits", l.Now.Add(retryBase)
	}
	i.Progress = progress
	return plan.Sequence{Do: []plan.Action{l.withIntent(i.Released(machine.OutcomePartial, again), fmt.Sprintf("attempt %d %s", i.Attempt, what))}}
}

// unsent ends the claim of a call that was not sent: the attempt is as it was before it.
func (l life) unsent(i machine.Intent, o plan.Outcome) plan.Sequence {
	i = i.Released(machine.OutcomePartial, l.Now.Add(pause(i.Failures, o.RetryAfter)))
	i.Code, i.Message = o.Code.String(), o.Message
	seq := plan.Sequence{Do: []plan.Action{l.withIntent(i, "not sent: "+o.Message)}}
	seq.Notes = []plan.Note{l.warning("FailedCreate", o.Message)}
	return seq
}

// refuse records a spec that could not be resolved, as the refusal of an attempt that never called.
func (l life) refuse(r refusal) plan.Sequence {
	var i machine.Intent
	if l.intent != nil {
		i = *l.intent
	} else {
		i = machine.NewIntent(l.m, 1, l.cloud.Account, nil)
		i.StartedAt = metav1.NewTime(l.Now)
	}
	seq := l.record(i, machine.OutcomeRefused, r.Code, r.Message, r.RetryAfter)
	seq.Notes = append([]plan.Note{l.triggersCreate()}, seq.Notes...)
	return seq
}

// outcome returns what o, the refusal of i's latest call, makes of the attempt: the end, unless it may pass and the attempt
// has something to lose, such as what may be a Node by now. While a call before it may have made an instance, its token keeps
// the next one from making another; a spec that can never work is told at once.
func (l life) outcome(i machine.Intent, o plan.Outcome) string {
	if o.Code != provider.Invalid && (l.unheard(i, o) || l.joins()) || len(i.Progress) > 0 && passes(o, i.Failures+1) {
		return machine.OutcomePartial
	}
	return machine.OutcomeRefused
}

// unheard reports whether an unanswered call before the latest may have made an instance. What refuses whoever asks, before it looks at the
// token, says nothing of that, however long ago it was: clocks jump. A cloud that cannot be asked tells no horizon.
func (l life) unheard(i machine.Intent, o plan.Outcome) bool {
	return i.Unanswered != nil && (o.Code == provider.Throttled || o.Code == provider.Denied ||
		l.cloud.Account == "" || l.Now.Before(i.Unanswered.Add(l.cloud.Horizon)))
}

func (l life) record(i machine.Intent, outcome string, code provider.Code, message string, after time.Duration) plan.Sequence {
	if i.Edited(l.m) {
		i.Failures = 0
	}
	wait := pause(i.Failures, after)
	if code == provider.Exhausted && after > 0 { // the cloud says when it may have room: then that is soon enough (SPEC E31)
		wait = max(min(after, machine.LongestPause), min(wait, restock))
	}
	if code != provider.Throttled || after < pause(i.Failures, 0) {
		i.Failures++ // else the cloud itself asks for so long a pause that no longer one has to follow, and no attempt is nearer its end
	}
	i = i.Released(outcome, l.Now.Add(wait))
	if after == 0 || outcome == machine.OutcomePartial { // else the cloud says when it may be asked again, whatever for
		i.Generation = l.m.Generation
	}
	i.Code, i.Message = code.String(), message
	update := l.withIntent(i, "refused: "+message)
	if next, ok := update.New.(*machine.Machine); ok {
		next.Annotations[machine.AnnotationInstanceState] = stateError
	}
	return plan.Sequence{Do: []plan.Action{update}, Notes: []plan.Note{
		l.warning("FailedCreate", message),
		plan.Log("Machine error " + l.m.Name + ": failed to create machine: " + message), // as operators grep (S24)
	}}
}

// passes reports whether the same step may be allowed later, when it was refused so often in a row. To be asked too much
// is no reason to remove what was made and make it anew, which asks for more; nor is room that the cloud expects later.
func passes(o plan.Outcome, failures int) bool {
	switch o.Code {
	case provider.Throttled:
		return true
	case provider.Exhausted, provider.Denied:
		return o.Code == provider.Exhausted && o.RetryAfter > 0 || failures%patience != 0
	case provider.Invalid, provider.NotFound, provider.Unknown: // of what was made something is gone, or will never do
	}
	return false
}

// pause is how long nothing is asked of a cloud that has refused so often in a row, or longer if it says so, but never so
// long that nobody would believe the record.
func pause(failures int, after time.Duration) time.Duration {
	return min(max(after, min(retryBase<<min(failures, 10), retryMax)), machine.LongestPause)
}

// unreachable is a cloud that cannot be asked. A spec that leads to none is final; all else may pass (B19), as what a cloud has against a
// question.
func (l life) unreachable() plan.Sequence {
	e := *l.cloud.Err
	if e.Code == provider.Invalid && l.intent == nil && l.cloud.Account == "" {
		return l.fail(reasonInvalid, e.Message)
	}
	seq, why := l.reportError(e.Message), cmp.Or(e.Message, e.Code.String())
	if l.denied(e) {
		seq, why = l.status(l.m.DeepCopy(), phase(l.m), ""), l.intent.Message
	}
	seq.Notes = append(seq.Notes, l.warning("FailedCreate", why))
	return seq
}

// denied reports whether the Machine says already, as the refusal of an attempt that made nothing, what the cloud denies now:
// credentials that are refused are refused to whoever asks, and that is told once.
func (l life) denied(e refusal) bool {
	c := machine.FindCondition(l.m.Status.Conditions, machine.ConditionInstanceExists)
	return e.Code == provider.Denied && l.intent.Over() && strings.HasSuffix(plan.Gist(l.intent.Message), plan.Gist(e.Message)) &&
		(c == nil || c.Status != corev1.ConditionUnknown) // else it says something else there
}
