// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// silentFor is how long a cloud that let a scan wait in vain is given little time.
	silentFor = time.Minute
	// lookBudget is what must remain for changes in clouds after clouds that are given little time were asked, for the rest of
	// what is read and for what is written first.
	lookBudget = mutationBudget + 3*time.Second
)

// errUnasked is why a call was not made.
var errUnasked = errors.New("there was no time left to ask the cloud")

// opens is the call that opens an account.
const opens = "open"

// errUnanswered is why a call ended that a cloud had its time for.
var errUnanswered = errors.New("the cloud does not answer")

// silences remembers the calls that clouds let scans wait for in vain. Once in a minute, and not twice in a row, one scan gives
// all of them their whole time again, so that a cloud that is slow is heard; the others leave that time to the other clouds (R-L2,
// R-L4). Losing it costs a scan.
type silences struct {
	mu     sync.Mutex
	calls  map[string]silence // by account and call
	waited time.Time          // when they were last given their whole time
	spared bool               // a scan gave them little since
}

// silence is a call that was waited for in vain.
type silence struct {
	since time.Time
	err   error
}

// turn returns the time before which a scan has to have waited in vain to give a call little time: none if it gives each its
// whole time.
func (s *silences) turn() (before time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if s.spared && now.Sub(s.waited) >= silentFor {
		s.waited, s.spared = now, false
		return now
	}
	s.spared = true
	return time.Time{}
}

func (s *silences) of(call string) (silence, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	was, silent := s.calls[call]
	return was, silent
}

// answered forgets that a call was waited for in vain.
func (s *silences) answered(call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.calls, call)
}

// unanswered remembers that it was.
func (s *silences) unanswered(call string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.calls == nil {
		s.calls = map[string]silence{}
	}
	now := time.Now()
	s.calls[call] = silence{now, err}
	s.waited, s.spared = now, false
}

// wait returns a context that ends when a call to an account was waited for long enough, and what is to be told of how the call
// ended. A scan gives those that are silent what leaves lookBudget, all together; the error is that there is no more of it.
func (i *invocation) wait(ctx context.Context, a account, call string) (_ context.Context, done func(error), err error) {
	key := a.id() + " " + call
	was, silent := i.Clouds.silences.of(key)
	short := i.request.Scan() && (i.hurried || silent && !was.since.Before(i.inFull))
	limit := callTimeout
	if short {
		limit = little(ctx, call)
	}
	if limit <= 0 {
		return nil, nil, cmp.Or(was.err, errUnasked)
	}
	timed, cancel := context.WithTimeoutCause(ctx, limit, errUnanswered)
	began := time.Now()
	return timed, func(err error) {
		defer cancel()
		vain := timed.Err() != nil || err != nil && time.Since(began) >= budget-lookBudget
		if !vain {
			i.Clouds.silences.answered(key)
		} else if !short && ctx.Err() == nil {
			i.Clouds.silences.unanswered(key, err)
		}
	}, nil
}

// little returns how much time a call gets that leaves lookBudget.
func little(ctx context.Context, call string) time.Duration {
	deadline, _ := ctx.Deadline()
	limit := min(callTimeout, time.Until(deadline)-lookBudget)
	if call == opens { // what is asked of the others that open comes after
		limit /= 2
	}
	return limit
}
