// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"sync"
	"time"
)

const (
	// lookFor is how long a scan looks at clouds at least, so that one that is slow is heard beside an API server that is slow.
	lookFor = 8500 * time.Millisecond
	// lookBudget is what a scan leaves of its time when it has looked at clouds for lookFor: for a change, and for what is written first.
	lookBudget = mutationBudget + time.Second
)

// errUnanswered is why a call is not made.
var errUnanswered = errors.New("the cloud did not answer")

// waits remembers how long one invocation waited for clouds.
type waits struct {
	mu      sync.Mutex
	vain    map[string]bool // calls that were waited for in vain
	longest time.Duration   // that a call took that was answered
}

// within returns a context in which clouds are looked at. A scan keeps time for changes, as long as there is: a cloud that is silent
// holds up none in the others (R-L2, R-L4).
func (i *invocation) within(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	left := time.Until(deadline) - lookBudget
	if !i.request.Scan() || !ok || left <= 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, max(left, lookFor))
}

// wait returns a context that ends when a call was waited for long enough; the call ends with done. What was waited for in vain is
// not asked again in the same invocation, which has others to ask: that is the error.
func (i *invocation) wait(ctx context.Context, call string) (_ context.Context, done func(), err error) {
	w := &i.waits
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.vain[call] {
		return nil, nil, errUnanswered
	}
	timed, cancel := context.WithTimeout(ctx, callTimeout)
	began := time.Now()
	return timed, func() {
		defer cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		switch {
		case timed.Err() == nil:
			w.longest = max(w.longest, time.Since(began))
		case w.vain == nil:
			w.vain = map[string]bool{call: true}
		default:
			w.vain[call] = true
		}
	}, nil
}

// slow reports whether clouds take so long that another look of a scan would be cut off: then what they said before in the invocation
// stands, beside what became of what was done since.
func (i *invocation) slow(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ok && i.request.Scan() && time.Until(deadline) < i.waits.longest+writeBudget
}
