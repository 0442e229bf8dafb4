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

// However many come one after the other while it is slow, of one key one run is under way.
func TestOneRunOfAKeyAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := New[string, int](0)
		var all sync.WaitGroup
		var under atomic.Int32
		for range 10 {
			all.Go(func() {
				_, _ = f.Do(t.Context(), "a", func(context.Context) (int, error) {
					if n := under.Add(1); n > 1 {
						t.Errorf("%d runs at a time", n)
					}
					time.Sleep(time.Second)
					under.Add(-1)
					return 0, nil
				})
			})
			time.Sleep(300 * time.Millisecond)
		}
		all.Wait()
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

// What nobody waits for any more does not begin: while all places are taken by what is silent, callers come and leave, and their work
// would keep those who come later waiting.
func TestWhatNobodyWaitsForDoesNotBegin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := New[int, int](1)
		began := map[int]time.Duration{}
		start := time.Now()
		run := func(key int) func(context.Context) (int, error) {
			return func(context.Context) (int, error) {
				began[key] = time.Since(start)
				time.Sleep(10 * time.Second)
				return key, nil
			}
		}
		var callers sync.WaitGroup
		call := func(key int, patience time.Duration) {
			callers.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				_, _ = f.Do(ctx, key, run(key))
			})
			synctest.Wait()
		}
		call(0, time.Minute)
		for key := range 10 {
			call(1+key, time.Second)
		}
		time.Sleep(2 * time.Second)
		call(1, time.Minute) // which somebody asks for again
		call(11, time.Minute)
		callers.Wait()
		if len(began) != 3 || began[1] > 20*time.Second || began[11] > 20*time.Second {
			t.Errorf("what began, and when: %v, want 0, 1 and 11", began)
		}
		if len(f.next) != 0 {
			t.Errorf("%d flights are remembered after landing", len(f.next))
		}
	})
}

// Who closes waits for what is under way, whose callers may have left, and lets nothing begin that waited its turn.
func TestCloseWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := New[string, int](4)
		runs, ended := 0, 0
		run := func(context.Context) (int, error) {
			runs++
			time.Sleep(10 * time.Second)
			ended++
			return 0, nil
		}
		ctx, leave := context.WithCancel(t.Context())
		var callers sync.WaitGroup
		callers.Go(func() { _, _ = f.Do(ctx, "a", run) })
		synctest.Wait()
		leave()
		var err error
		callers.Go(func() { _, err = f.Do(t.Context(), "a", run) }) // it waits for the first to end
		synctest.Wait()
		short, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if e := f.Close(short); !errors.Is(e, context.DeadlineExceeded) {
			t.Errorf("close that had a second: %v", e)
		}
		if e := f.Close(t.Context()); e != nil || ended != 1 {
			t.Errorf("close: %v, %d runs have ended", e, ended)
		}
		callers.Wait()
		if _, late := f.Do(t.Context(), "b", run); !errors.Is(err, ErrClosed) || !errors.Is(late, ErrClosed) || runs != 1 {
			t.Errorf("%d runs; who waited: %v, who came late: %v", runs, err, late)
		}
	})
}

// Who is promised a run need not wait: it begins after he came, also if everybody leaves meanwhile, and somebody who waits is told how it
// ended. Where nobody does, or where it has begun, nothing is promised.
func TestPromisedRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := New[string, int](0)
		joined, runs := 0, 0
		f.Joined = func() { joined++ }
		var callers sync.WaitGroup
		call := func(ctx context.Context) {
			callers.Go(func() {
				_, _ = f.Do(ctx, "a", func(context.Context) (int, error) {
					time.Sleep(time.Second)
					runs++
					return 0, nil
				})
			})
			synctest.Wait()
		}
		promised := func(when string, want bool) {
			t.Helper()
			if got := f.Promised("a"); got != want {
				t.Errorf("%s: promised %v", when, got)
			}
		}
		promised("nobody came", false)
		call(t.Context())
		promised("the run has begun", false)
		ctx, leave := context.WithCancel(t.Context())
		call(ctx)
		promised("somebody waits for the next", true)
		leave()
		synctest.Wait()
		promised("he has left", false)
		callers.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if runs != 2 || joined != 1 {
			t.Errorf("%d runs, want that which was promised too; %d joined", runs, joined)
		}
		promised("all has ended", false)
		call(t.Context())
		call(t.Context())
		closed := make(chan error)
		go func() { closed <- f.Close(t.Context()) }()
		synctest.Wait()
		promised("it is closed, and somebody waits still", false)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		callers.Wait()
	})
}

// Of many keys, all of whose callers leave while everything waits for what is silent, no more runs are promised than may be under way at
// a time: whoever comes when it speaks again waits for one round more, not for ever so many.
func TestPromisesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const parallel, keys = 2, 100
		f := New[int, int](parallel)
		speaks, promised := make(chan struct{}), 0
		var runs atomic.Int32
		for round := 1; round <= 2; round++ {
			ctx, leave := context.WithCancel(t.Context())
			for key := range keys {
				go func() {
					_, _ = f.Do(ctx, key, func(context.Context) (int, error) {
						runs.Add(1)
						<-speaks
						return 0, nil
					})
				}()
				synctest.Wait()
				for range 2 { // of a run that is promised, whoever comes is told
					if f.Promised(key) {
						promised++
					}
				}
			}
			leave()
			synctest.Wait()
			for range 2 * parallel {
				speaks <- struct{}{}
			}
			synctest.Wait()
			if n := int(runs.Load()); promised != round*2*parallel || n != round*2*parallel {
				t.Errorf("%d were promised a run, want two for each of %d; %d runs, want as many more that had begun", promised, round*parallel, n)
			}
		}
	})
}
