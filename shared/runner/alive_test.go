// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	runtime "knative.dev/func-go/http"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A process with an invocation that never returns is ended by its liveness, and no other one is, however many wait behind what is slow: its
// object, or the tick, would have no turn for ever (RELIABILITY 2g).
func TestProcessWithAnInvocationThatNeverReturnsIsNotAlive(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(testRunner(label(wantLabel), world(t, 1).As("label")), nil)
		var alive runtime.LivenessReporter = s
		is := func(want bool, when string) {
			t.Helper()
			if ok, err := alive.Alive(t.Context()); ok != want || (err == nil) != want {
				t.Errorf("%s: alive %t, error %v", when, ok, err)
			}
		}
		is(true, "idle")
		end := make(chan struct{})
		for range 3 { // one is under way, one waits, one has joined it
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			go func() {
				_, _ = s.flights.Do(ctx, snapshot.Request{}, func(context.Context) (plan.Plan, error) {
					<-end
					return plan.Plan{}, nil
				})
			}()
			synctest.Wait()
		}
		time.Sleep(stuck - time.Second)
		is(true, "slow")
		time.Sleep(time.Second)
		is(false, "stuck")
		close(end)
		synctest.Wait()
		is(true, "ended")
	})
}
