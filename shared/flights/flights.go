// SPDX-License-Identifier: Apache-2.0

// Package flights lets concurrent calls share the work that all of them wait for, without ever answering one of them with
// something that was seen before it asked.
package flights

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/machine-functions/machine-functions/shared/beside"
)

var (
	// ErrLeft is the answer to a call whose context ended before the work that it waited for. Work that has begun goes on.
	ErrLeft = errors.New("gave up waiting")
	// ErrClosed is the answer to a call whose work will never begin.
	ErrClosed = errors.New("closed")
)

// Group shares runs between calls with the same key: one in flight, one waiting behind it, which all others join. Whoever
// joins is answered by a run that began after he came. What a run returns is every joiner's: nobody may change it.
type Group[K comparable, V any] struct {
	// Joined, if not nil, is called for every call that shares a run.
	Joined func()

	slots  chan struct{} // one for each run at a time; nil: any number
	mu     sync.Mutex
	next   map[K]*flight[V]         // the last run of each key that has one in flight
	under  map[*flight[V]]time.Time // since when runs are under way
	closed bool
	owed   int // how many runs that are promised have not begun
}

// flight is one run, waiting or under way.
type flight[V any] struct {
	started  bool
	waiting  int  // how many calls wait for it
	promised bool // to somebody who does not wait
	done     chan struct{}
	value    V
	err      error
	panicked *beside.Panic
}

// New returns a Group that has so many runs under way at most, of all keys together; zero is no bound.
func New[K comparable, V any](parallel int) *Group[K, V] {
	g := &Group[K, V]{next: map[K]*flight[V]{}, under: map[*flight[V]]time.Time{}}
	if parallel > 0 {
		g.slots = make(chan struct{}, parallel)
	}
	return g
}

// Do returns the result of a run for key that begins after Do was called, or ErrLeft when ctx ends first. The run has a
// context of its own, with the values of one of its callers', so that a caller who leaves stops nobody else's work. One that all
// callers have left before it could begin does not, unless it is promised: while everything waits for what is silent, there would be ever
// more of them. A panic of the run is one of each who waits for it.
func (g *Group[K, V]) Do(ctx context.Context, key K, run func(context.Context) (V, error)) (V, error) {
	g.mu.Lock()
	last := g.next[key]
	mine := last
	if last == nil || last.started {
		mine = &flight[V]{done: make(chan struct{})}
		g.next[key] = mine
		go g.fly(context.WithoutCancel(ctx), key, mine, last, run)
	} else if g.Joined != nil {
		g.Joined()
	}
	mine.waiting++
	g.mu.Unlock()
	select {
	case <-mine.done:
		if mine.panicked != nil {
			panic(mine.panicked)
		}
		return mine.value, mine.err
	case <-ctx.Done():
		g.mu.Lock()
		mine.waiting--
		g.mu.Unlock()
		var none V
		return none, ErrLeft
	}
}

// Promised reports whether a run for key will begin that somebody waits for: he sees to it that there is another if it fails, so nobody
// else has to wait. It begins even if he leaves, but for a Close meanwhile. No more runs are promised at a time than may be under way: more would hold up whoever
// comes when what was silent speaks again.
func (g *Group[K, V]) Promised(key K) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	next := g.next[key]
	if g.closed || next == nil || next.started || next.waiting == 0 {
		return false
	}
	if !next.promised {
		if g.slots != nil && g.owed == cap(g.slots) {
			return false
		}
		next.promised = true
		g.owed++
	}
	if g.Joined != nil {
		g.Joined()
	}
	return true
}

func (g *Group[K, V]) fly(ctx context.Context, key K, mine, last *flight[V], run func(context.Context) (V, error)) {
	if last != nil {
		<-last.done
	}
	if g.slots != nil {
		g.slots <- struct{}{}
	}
	g.mu.Lock()
	mine.started = true
	g.under[mine] = time.Now()
	if mine.promised {
		g.owed--
	}
	closed, left := g.closed, mine.waiting == 0 && !mine.promised
	g.mu.Unlock()
	switch {
	case closed:
		mine.err = ErrClosed
	case left:
		mine.err = ErrLeft
	default:
		mine.land(ctx, run)
	}
	if g.slots != nil {
		<-g.slots
	}
	g.mu.Lock()
	delete(g.under, mine)
	if g.next[key] == mine {
		delete(g.next, key)
	}
	g.mu.Unlock()
	close(mine.done)
}

// land carries out the run.
func (f *flight[V]) land(ctx context.Context, run func(context.Context) (V, error)) {
	defer func() {
		if v := recover(); v != nil {
			f.panicked = beside.Caught(v)
		}
	}()
	f.value, f.err = run(ctx)
}

// Longest returns for how long the oldest run that is under way has been so; zero if there is none.
func (g *Group[K, V]) Longest() (longest time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, since := range g.under {
		longest = max(longest, time.Since(since))
	}
	return longest
}

// Close lets no further run begin, and waits for those under way, also where their callers have left, as long as ctx does.
func (g *Group[K, V]) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closed = true
	last := slices.Collect(maps.Values(g.next))
	g.mu.Unlock()
	for _, f := range last {
		select {
		case <-f.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}
