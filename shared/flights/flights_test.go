// SPDX-License-Identifier: Apache-2.0

package flights

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A hundred calls that come while one run is under way are answered by one more, which began after them.
func TestShareInvocations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := New[string, int](4)
		var runs atomic.Int32
		slow := func(context.Context) (int, error) {
			runs.Add(1)
			time.Sleep(time.Second)
			return 0, nil
		}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, err := f.Do(t.Context(), "a", slow); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if got := runs.Load(); got != 2 {
			t.Errorf("%d runs, want 2", got)
		}
		if len(f.next) != 0 {
			t.Errorf("%d flights are remembered after landing", len(f.next))
		}
	})
}

// Whoever comes after a run began may know of something that it did not see: it needs another one.
func TestNeverAnswerWithAnEarlierLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := New[string, int](4)
		began := make(chan time.Time, 2)
		run := func(context.Context) (int, error) {
			began <- time.Now()
			time.Sleep(time.Second)
			return 0, nil
		}
		go func() { _, _ = f.Do(t.Context(), "a", run) }()
		time.Sleep(time.Millisecond)
		came := time.Now()
		if _, err := f.Do(t.Context(), "a", run); err != nil {
			t.Fatal(err)
		}
		<-began
		if second := <-began; second.Before(came) {
			t.Error("answered by a run that began before the call came")
		}
	})
}

// A call that gives up is told so, and the work goes on.
func TestRunsOutliveTheirCallers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := New[string, int](1)
		finished := false
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := f.Do(ctx, "a", func(ctx context.Context) (int, error) {
			time.Sleep(10 * time.Second)
			finished = ctx.Err() == nil
			return 0, nil
		})
		if !errors.Is(err, ErrLeft) {
			t.Errorf("got %v, want %v", err, ErrLeft)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !finished {
			t.Error("the run was canceled with the call")
		}
	})
}
