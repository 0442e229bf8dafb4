// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var machineA = snapshot.Request{Kind: "Machine", Namespace: "n", Name: "a"}

// A hundred requests that come while one invocation runs are answered by one more, which began after them.
func TestFlightsShareInvocations(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFlights(4)
		var runs atomic.Int32
		slow := func(context.Context) (plan.Plan, error) {
			runs.Add(1)
			time.Sleep(time.Second)
			return plan.Plan{}, nil
		}
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				if _, err := f.join(t.Context(), machineA, slow); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		all.Wait()
		if got := runs.Load(); got != 2 {
			t.Errorf("%d invocations, want 2", got)
		}
		if len(f.next) != 0 {
			t.Errorf("%d flights are remembered after landing", len(f.next))
		}
	})
}

// Whoever comes after an invocation began may know of something that it did not see: it needs another one.
func TestFlightsNeverAnswerWithAnEarlierLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFlights(4)
		began := make(chan time.Time, 2)
		run := func(context.Context) (plan.Plan, error) {
			began <- time.Now()
			time.Sleep(time.Second)
			return plan.Plan{}, nil
		}
		go func() { _, _ = f.join(t.Context(), machineA, run) }()
		time.Sleep(time.Millisecond)
		came := time.Now()
		if _, err := f.join(t.Context(), machineA, run); err != nil {
			t.Fatal(err)
		}
		<-began
		if second := <-began; second.Before(came) {
			t.Error("answered by an invocation that began before the request came")
		}
	})
}

// A request that gives up is told to come again, and the work goes on.
func TestFlightsOutliveTheirRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFlights(1)
		finished := false
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := f.join(ctx, machineA, func(ctx context.Context) (plan.Plan, error) {
			time.Sleep(10 * time.Second)
			finished = ctx.Err() == nil
			return plan.Plan{}, nil
		})
		retry, ok := errors.AsType[*events.RetryError](err)
		if !ok || !retry.Busy {
			t.Errorf("got %v, want busy", err)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if !finished {
			t.Error("the invocation was canceled with the request")
		}
	})
}
