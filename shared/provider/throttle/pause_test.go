// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What a cloud asks for holds of the calls that wait for their turn too, not only of those that come later.
func TestWhoWaitsForATurnWaitsForAPauseToo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, begin := New(1, 1), time.Now()
		if err := l.Turn(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(500*time.Millisecond, func() { l.Pause(5 * time.Second) })
		var g sync.WaitGroup
		g.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			err := l.Turn(ctx)
			if e, ok := errors.AsType[*provider.Error](err); !ok || e.Code != provider.Throttled || time.Since(begin) > 2*time.Second {
				t.Errorf("Turn of who cannot wait as long = %v after %v, want Throttled at once when it would have come", err, time.Since(begin))
			}
		})
		if err := l.Turn(t.Context()); err != nil || time.Since(begin) < 5500*time.Millisecond {
			t.Errorf("Turn = %v after %v, want none before the pause ends after 5.5 s", err, time.Since(begin))
		}
		g.Wait()
	})
}

// What was held up by a pause does not come all at once when it ends.
func TestCallsAreSpreadAfterAPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls, atOnce = 20, 2
		l, begin := New(10, atOnce), time.Now()
		l.Pause(5 * time.Second)
		var (
			mu sync.Mutex
			at = map[time.Duration]int{}
			g  sync.WaitGroup
		)
		for range calls {
			g.Go(func() {
				if err := l.Turn(t.Context()); err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				at[time.Since(begin)]++
			})
		}
		g.Wait()
		if took, want := time.Since(begin), 5*time.Second+(calls-atOnce)*100*time.Millisecond; took != want || at[5*time.Second] != atOnce {
			t.Errorf("%d calls, %d at once and 10 a second, after a pause of 5 s: over after %v, want %v; by time %v", calls, atOnce, took, want, at)
		}
	})
}

// Whoever asks for it, no pause is for ever.
func TestNoPauseIsForEver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l, begin := New(10, 1), time.Now()
		l.Pause(1000 * time.Hour)
		if err := l.Turn(t.Context()); err != nil || time.Since(begin) != longest {
			t.Errorf("Turn = %v after %v, want %v", err, time.Since(begin), longest)
		}
	})
}
