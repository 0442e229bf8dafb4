// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// errBusy is an answer that did not come in time. The invocation it waited for goes on; the event comes again.
var errBusy = errors.New("busy")

// flights lets concurrent requests for the same object share invocations: one in flight, one waiting behind it, which
// all others join. Whoever joins is answered by an invocation that began after he came.
type flights struct {
	slots chan struct{}
	mu    *sync.Mutex
	next  map[snapshot.Request]*flight // the last invocation of each object that has one in flight

	joined func() // called for every request that shares an invocation; may be nil
}

// flight is one invocation, waiting or running.
type flight struct {
	started bool
	done    chan struct{}
	plan    plan.Plan
	err     error
}

func newFlights(parallel int) flights {
	return flights{slots: make(chan struct{}, parallel), mu: &sync.Mutex{}, next: map[snapshot.Request]*flight{}}
}

// join returns the result of an invocation of f for req that begins after join was called, or a Busy RetryError when
// ctx ends first. f runs with a context of its own, so that a request that gives up stops nobody else's work.
func (f flights) join(ctx context.Context, req snapshot.Request, run func(context.Context) (plan.Plan, error)) (plan.Plan, error) {
	f.mu.Lock()
	last := f.next[req]
	mine := last
	if last == nil || last.started {
		mine = &flight{done: make(chan struct{})}
		f.next[req] = mine
		go f.fly(context.WithoutCancel(ctx), req, mine, last, run)
	} else if f.joined != nil {
		f.joined()
	}
	f.mu.Unlock()
	select {
	case <-mine.done:
		return mine.plan, mine.err
	case <-ctx.Done():
		return plan.Plan{}, &events.RetryError{Busy: true, After: time.Second, Err: errBusy}
	}
}

func (f flights) fly(ctx context.Context, req snapshot.Request, mine, last *flight, run func(context.Context) (plan.Plan, error)) {
	if last != nil {
		<-last.done
	}
	f.slots <- struct{}{}
	f.mu.Lock()
	mine.started = true
	f.mu.Unlock()
	mine.plan, mine.err = run(ctx)
	<-f.slots
	f.mu.Lock()
	if f.next[req] == mine {
		delete(f.next, req)
	}
	f.mu.Unlock()
	close(mine.done)
}
