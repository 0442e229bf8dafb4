// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// Log keys.
const (
	keyFunction = "function"
	keyRequest  = "request"
	keyError    = "error"
	keyPlan     = "plan"
	keyRound    = "round"
	keyAction   = "action"
	keyResult   = "result"
	keyCode     = "code"
	keyReason   = "reason"
	keyObject   = "object"
	keyMessage  = "message"
	keyAccount  = "account"
	keyLeft     = "left"
	keyCall     = "call"
	keyStack    = "stack"
)

// toldFor is how long the same note is not told again.
const toldFor = 5 * time.Minute

const (
	// tellFor is how long one Event is waited for, and how long Events about states are recorded before the work goes on.
	tellFor = 5 * time.Second
	// tellMargin is how long the last of these takes, where changes in clouds wait for it.
	tellMargin = 250 * time.Millisecond
)

// once remembers what was done lately, so that it is not done again. Losing it repeats something harmless: an Event,
// which the API server's record counts up, or the deletion of what is being deleted.
type once[K comparable] struct {
	mu    sync.Mutex
	last  map[K]time.Time
	swept time.Time // when what is old was last forgotten: for each of thousands of keys that would be much
}

// fresh reports whether k was not done in the last d, and remembers that it is done now. What was done at a time that comes again,
// because the clock was set back, was done long ago.
func (o *once[K]) fresh(k K, now time.Time, d time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if at, ok := o.last[k]; ok && now.Sub(at).Abs() < d {
		return false
	}
	o.mark(k, now, d)
	return true
}

// mark remembers that k is done now, and forgets in time what was done d ago. The caller has the lock.
func (o *once[K]) mark(k K, now time.Time, d time.Duration) {
	if o.last == nil {
		o.last = map[K]time.Time{}
	}
	if now.Sub(o.swept).Abs() >= d {
		maps.DeleteFunc(o.last, func(_ K, at time.Time) bool { return now.Sub(at).Abs() >= d })
		o.swept = now
	}
	o.last[k] = now
}

// lately reports whether k was done in the last d.
func (o *once[K]) lately(k K, now time.Time, d time.Duration) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	at, ok := o.last[k]
	return ok && now.Sub(at).Abs() < d
}

// tell records Events and log lines. What accompanies a deed is told every time, so that Events count how often it was
// tried (SPEC S23); what only describes a state is told once in five minutes, or by a later scan where it is too much for this. An
// Event that cannot be recorded is logged: it never stops the work. Who did not answer about one is told no other by this invocation.
func (i *invocation) tell(ctx context.Context, notes []plan.Note, deed bool) {
	most, hurried := i.timeToTell(ctx)
	end := time.Now().Add(most)
	for _, n := range notes {
		if !deed && !time.Now().Before(end) && !i.deaf.Load() {
			return
		}
		if n.Source == "" {
			n.Source = i.Function.Name
		}
		n.Message = plan.Cut(n.Message, mostSaid) // it may quote an object that a stranger made
		if !deed {
			state := n
			state.Message = plan.Gist(n.Message) // a port or an id in it makes it no other state
			if !i.told.fresh(state, time.Now(), toldFor) {
				continue
			}
		}
		if n.Object.Kind == "" {
			i.log.Info("decision", keyMessage, n.Message)
			continue
		}
		i.log.Info("event", keyObject, plan.Name(n.Object.Kind, n.Object.Namespace, n.Object.Name), keyReason, n.Reason, keyMessage, n.Message)
		if i.deaf.Load() {
			continue
		}
		wait := tellFor
		if hurried && !deed {
			wait = min(wait, time.Until(end)+tellMargin/2)
		}
		if err := i.tellOne(ctx, n, wait); err != nil {
			i.log.Warn("event was not recorded", keyReason, n.Reason, keyError, said(err))
			continue
		}
		i.telling.Lock()
		i.events = append(i.events, n)
		i.telling.Unlock()
	}
}

// timeToTell returns how long states are told: not in the time that a change in a cloud needs, if there is one, and time for it.
func (i *invocation) timeToTell(ctx context.Context) (most time.Duration, hurried bool) {
	deadline, _ := ctx.Deadline()
	spare := time.Until(deadline) - mutationBudget
	if !i.mutates || spare < 0 {
		return tellFor, false
	}
	return min(tellFor, spare-tellMargin), true
}

// tellOne waits so long. Who does not answer in less than tellFor may be slow: others are told in a later scan, and deeds still.
func (i *invocation) tellOne(ctx context.Context, n plan.Note, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	err := i.Cluster.Tell(ctx, n)
	if err != nil && ctx.Err() != nil && wait == tellFor {
		i.deaf.Store(true)
	}
	return err
}

func (i *invocation) logPlan(p plan.Plan, round int) {
	if p.Quiet() {
		i.log.Debug("nothing to do", keyRound, round)
		return
	}
	if i.log.Enabled(context.Background(), slog.LevelInfo) {
		for _, lines := range summary(p) {
			i.log.Info("plan", keyRound, round, keyPlan, lines)
		}
	}
}

// summary is the plan without the fields it changes: names and reasons, of as many actions together as one line of the log has room for.
func summary(p plan.Plan) (parts [][]string) {
	size := mostSaid + 1
	for _, a := range p.Actions() {
		line := plan.Cut(plan.Line(a), mostSaid)
		if size += len(line); size > mostSaid {
			parts, size = append(parts, nil), len(line)
		}
		parts[len(parts)-1] = append(parts[len(parts)-1], line)
	}
	return parts
}

func (i *invocation) logOutcome(a plan.Action, o plan.Outcome) {
	level := slog.LevelDebug
	switch o.Result {
	case plan.Done, plan.Gone, plan.Conflict, plan.Exists:
	case plan.Refused, plan.Blocked, plan.Failed, plan.Unsent:
		level = slog.LevelWarn
	}
	i.log.Log(context.Background(), level, "action", keyAction, string(a.Key()), keyResult, o.Result.String(), keyCode, o.Code.String(), keyMessage, o.Message)
}
