// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// hearFor is how long a cloud is waited for at least before anybody says that it does not answer.
	hearFor = 8 * time.Second
	// lookFor is how long a scan looks at clouds at least, so that one that is slow is heard beside an API server that is slow.
	lookFor = hearFor + 500*time.Millisecond
	// lookBudget is what a scan leaves of its time when it has looked at clouds for lookFor: for a change, and for what is written first.
	lookBudget = mutationBudget + time.Second
)

// Why a call is not made, in an invocation that was to make it before.
var (
	errUnanswered = errors.New("the cloud did not answer")
	errCut        = errors.New("there was no time to wait for the cloud")
)

// waits remembers how long one invocation waited for clouds.
type waits struct {
	mu   sync.Mutex
	over map[string]error         // why a call is not made once more
	took map[string]time.Duration // by account: from when it was looked at until its last answer
}

// room returns how long a scan looks at clouds now, of the time that is left: ctx has a deadline, as each invocation has
// ([Runner.Handle]). It keeps time for changes, as long as there is, and for what is read once more
// after them: a cloud that is silent holds up none in the others (R-L2, R-L4).
func (i *invocation) room(ctx context.Context, reading time.Duration) time.Duration {
	if !i.request.Scan() {
		return budget
	}
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline)
	return min(max(left-reading-lookBudget, lookFor), left-writeBudget)
}

// wait returns a context that ends when a call to an account was waited for long enough; the call ends with done, which reports
// whether it was cut off by our own time: that says nothing about a cloud that had less than hearFor to answer, or that was looked
// at in an earlier round. What was not answered is not asked again in the same invocation, which has others to ask: that is the error.
func (i *invocation) wait(ctx context.Context, a account, call string) (_ context.Context, done func() (cut bool), err error) {
	w := &i.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	call += " " + a.id()
	if why := w.over[call]; why != nil {
		return nil, nil, why
	}
	if w.took == nil {
		w.over, w.took = map[string]error{}, map[string]time.Duration{}
	}
	timed, cancel := context.WithTimeout(ctx, callTimeout)
	began := time.Now()
	return timed, func() bool {
		defer cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case timed.Err() == nil:
			w.took[a.Key()] = max(w.took[a.Key()], time.Since(i.looked))
		case ctx.Err() != nil && (i.rounds > 0 || time.Since(began) < hearFor):
			w.over[call] = errCut
		default:
			w.over[call] = errUnanswered
		}
		return errors.Is(w.over[call], errCut)
	}, nil
}

// known lets stand what a slow account said in the round before, where another look of the scan would be cut off, and leaves the
// rest to be asked. It stands of the same spec and to the same question, and of Machines where their instances were changed since:
// what became of that is newer. The turn of others comes in a later scan: by now they may be there, or not.
func (i *invocation) known(s *snapshot.Snapshot, v *visit, subjects map[types.UID]subject) {
	before := map[types.UID]led{}
	for _, l := range i.before {
		before[l.UID] = l
	}
	var rest []led
	for _, l := range v.lookups {
		c, told := i.seen.Clouds[l.UID]
		if !told || !l.within(before[l.UID]) {
			rest = append(rest, l)
			continue
		}
		c.Later = c.Later || i.unchanged(subjects[l.UID], c.Found)
		s.Clouds[l.UID] = c
	}
	v.lookups = rest
	v.sweeps = slices.DeleteFunc(v.sweeps, func(q snapshot.AccountQuery) bool {
		_, asked := i.seen.Accounts[q.Key]
		if asked {
			s.Accounts[q.Key] = snapshot.Account{Err: refusal(errCut), Later: true}
		}
		return asked
	})
}

// within reports whether what was said to a lookup before is an answer to l too.
func (l led) within(was led) bool {
	return l.by == was.by && l.other == was.other && (l.Open || !was.Open) && (l.Open || l.New || !was.New) && (was.Resolve || !l.Resolve) &&
		(was.Type || !l.Type) && (was.Fresh || !l.Fresh) && (was.Stock || !l.Stock)
}

// unchanged reports whether a subject is a Machine of which this invocation was to change no instance, nor a twin among those found.
func (i *invocation) unchanged(sub subject, found []provider.Instance) bool {
	m, isMachine := sub.object.(*machine.Machine)
	if !isMachine {
		return false
	}
	return !i.changed[m.UID] && !i.changed[machine.InstanceUID(m)] &&
		!slices.ContainsFunc(found, func(in provider.Instance) bool { return i.mutated[target{id: in.ID}] })
}
