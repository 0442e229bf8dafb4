// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// leftover reports whether a refused attempt got so far that something of it may be there: children that nobody would
// remove before the Machine goes, while every further attempt makes its own, up to the quota (R-B12, RELIABILITY 2b.8). In
// another region than the one that is asked now sweep-instances finds them, once the Machine's instance is made.
func (l life) leftover() bool {
	return l.intent.Over() && len(l.intent.Progress) > 0 && l.reached()
}

// reached reports whether the cloud that is asked now is the one that the attempt was made in.
func (l life) reached() bool { return l.intent.Account == l.cloud.Account && l.sameCluster() }

// failed serves a Machine that has Failed: no attempt follows that would have to make room first, so what the last one left goes by
// itself (2b.8): where an answer was lost, once nothing of that can surface any more. Whatever may run on it is left to the deletion, which
// drains it.
func (l life) failed() plan.Sequence {
	if seq := l.markUnknown(); len(seq.Do) > 0 {
		return seq
	}
	drained := l.in == nil && l.onNetwork() == nil && l.m.Status.NodeRef == nil
	surfacing := l.Now.Before(l.surfaces())
	if !leaves(l.Snapshot, l.m, l.intent) || l.cloud.Err != nil || !l.reached() || l.elsewhere() || surfacing || !drained {
		return plan.Sequence{}
	}
	return l.clear()
}

// leaves reports whether the attempt of a Failed Machine may have left something that can be removed, unless an answer to it may still matter.
func leaves(s snapshot.Snapshot, m *machine.Machine, i *machine.Intent) bool {
	refused := i != nil && i.Outcome == machine.OutcomeRefused
	return machine.ProviderID(m) == "" && machine.HasFinalizer(m) && refused && len(i.Progress) > 0 && !waits(s, m, i)
}

// clear has the cloud remove it, under a claim: only then the Progress is forgotten, and another attempt may begin. A process that was
// held up past its claim calls when another attempt may have its instance: what is removed carries the token of this one (R-S3).
func (l life) clear() plan.Sequence {
	i, a := *l.intent, l.removalOfLeft()
	o, tried := l.Outcome(a)
	released := func(again time.Duration, why string) plan.Sequence {
		var at time.Time
		if again > 0 {
			at = l.Now.Add(again)
		}
		return plan.Sequence{Do: []plan.Action{l.withIntent(i.Released(machine.OutcomeRefused, at), why)}}
	}
	switch {
	case !tried:
		return plan.Sequence{Do: []plan.Action{l.withIntent(i.Held(l.Invocation, l.Now, claimFor), "claim before removing what was "+a.Why), a}}
	case i.Holder != l.Invocation: // what became of it is recorded
		return plan.Sequence{}
	case o.Result == plan.Gone:
		i.Progress = nil
		return released(0, fmt.Sprintf("nothing of attempt %d is left", i.Attempt))
	case o.Result == plan.Done && l.Now.Before(i.StartedAt.Add(longRemoval)):
		return released(retryBase, "what was "+a.Why+", is going")
	case o.Result == plan.Done: // it may be for ever; of a cloud that could not be asked for as long the first answer says so, too
		seq := released(unclearMax, "what was "+a.Why+", is going")
		why := "what was " + a.Why + " at " + machine.Stamp(i.StartedAt.Time) + ", is not gone yet"
		if phase(l.m) != machine.PhaseFailed {
			why += ": no other attempt begins before it is gone"
		}
		seq.Notes = []plan.Note{l.warning("FailedCreate", why)}
		return seq
	}
	again := pause(i.Failures, o.RetryAfter)
	i.Failures++
	seq := released(again, "not removed: "+o.Message)
	seq.Notes = []plan.Note{l.warning("FailedCreate", "the cloud does not remove what was "+a.Why+": "+o.Message)}
	return seq
}

// removalOfLeft returns the removal of what the latest attempt left.
func (l life) removalOfLeft() plan.DeleteInstance {
	i := l.intent
	a := plan.DeleteInstance{Account: i.Account, Cluster: l.cloud.Cluster, Why: fmt.Sprintf("left by attempt %d, which was refused", i.Attempt)}
	a.Ref = provider.Ref{UID: l.m.UID, Name: l.m.Name, Token: i.Token, Attempt: true, Progress: i.Progress, Began: i.StartedAt.Time}
	return a
}

// cleared reports whether this invocation asked for such a removal.
func (l life) cleared() bool {
	if l.intent == nil {
		return false
	}
	_, tried := l.Outcome(l.removalOfLeft())
	return tried
}
