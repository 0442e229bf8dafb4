// SPDX-License-Identifier: Apache-2.0

package beside

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A panic of one is one of whoever waits, when all have ended, with the stack of where it happened; also through a group in a group.
func TestPanicIsOfWhoeverWaits(t *testing.T) {
	t.Parallel()
	var others int
	wait := func() (p *Panic) {
		defer func() { p = Caught(recover()) }()
		outer := New(0)
		outer.Go(func() error {
			inner, ctx := WithContext(context.WithoutCancel(t.Context()))
			inner.Go(func() error { poisoned(); return nil })
			inner.Go(func() error {
				<-ctx.Done()
				others++
				return ctx.Err()
			})
			return inner.Wait()
		})
		return Caught(outer.Wait())
	}
	if p := wait(); p.Value != "poison" || !strings.Contains(p.Stack, "beside.poisoned") || !strings.HasPrefix(p.String(), "poison\n") || others != 1 {
		t.Errorf("%v, others ended: %d", p, others)
	}
}

// Several may panic: none of them waits for another, and whoever waits for all of them is told of the first.
func TestEveryPanicEnds(t *testing.T) {
	t.Parallel()
	g := New(1)
	wait := func(f func() error) (p *Panic) {
		defer func() { p = Caught(recover()) }()
		g.Go(f)
		return Caught(g.Wait())
	}
	first := wait(func() error { poisoned(); return nil })
	if !g.mu.TryLock() {
		t.Fatal("the next one that panics waits for ever")
	}
	g.mu.Unlock()
	if next := wait(func() error { panic("more") }); first.Value != "poison" || next != first {
		t.Errorf("first %v, then %v", first, next)
	}
}

func poisoned() { panic("poison") }

func TestFirstErrorIsReturned(t *testing.T) {
	t.Parallel()
	want := errors.New("no route")
	g, ctx := WithContext(t.Context())
	g.Go(func() error { return want })
	g.Go(func() error { <-ctx.Done(); return ctx.Err() })
	if err := g.Wait(); !errors.Is(err, want) {
		t.Error(err)
	}
}
