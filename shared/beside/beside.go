// SPDX-License-Identifier: Apache-2.0

// Package beside carries out things side by side. A panic of one is one of whoever waits for them: a goroutine that nobody waits for
// would take the process with it.
package beside

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"golang.org/x/sync/errgroup"
)

var errPanic = errors.New("panic")

// Group is an [errgroup.Group] whose Wait panics if one of its goroutines did.
type Group struct {
	group *errgroup.Group
	mu    sync.Mutex
	first *Panic
}

// New returns a Group of at most n goroutines at a time.
func New(n int) *Group {
	g := &Group{group: &errgroup.Group{}}
	g.SetLimit(n)
	return g
}

// WithContext returns a Group, and a context that ends with its first failure, or panic.
func WithContext(ctx context.Context) (*Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	return &Group{group: group}, ctx
}

// SetLimit lets at most n goroutines run at a time.
func (g *Group) SetLimit(n int) { g.group.SetLimit(max(1, n)) }

// Go begins f when there is room.
func (g *Group) Go(f func() error) {
	g.group.Go(func() (err error) {
		defer func() {
			if v := recover(); v != nil {
				g.mu.Lock()
				defer g.mu.Unlock()
				g.first, err = cmp.Or(g.first, Caught(v)), errPanic
			}
		}()
		return f()
	})
}

// Wait returns the first error when all have ended. It panics with a [*Panic] if one of them did.
func (g *Group) Wait() error {
	err := g.group.Wait()
	if g.first != nil {
		panic(g.first)
	}
	return err
}

// Panic is one that happened in another goroutine.
type Panic struct {
	Value any
	Stack string // of where it happened
}

// String has all of it: it is what the process ends with if nobody recovers.
func (p *Panic) String() string { return fmt.Sprintf("%v\n%s", p.Value, p.Stack) }

// Caught returns what was recovered just now, with the stack of where it happened.
func Caught(v any) *Panic {
	if p, ok := v.(*Panic); ok {
		return p
	}
	return &Panic{v, string(debug.Stack())}
}
