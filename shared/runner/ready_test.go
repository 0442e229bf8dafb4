// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster"
)

// probed is an API server that takes a while to say whether it is there.
type probed struct {
	cluster.Cluster
	asked atomic.Int32
	err   error
}

func (s *probed) Ready(ctx context.Context) error {
	s.asked.Add(1)
	select {
	case <-time.After(100 * time.Millisecond):
		return s.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Whoever reaches Serving's gateway may ask a function whether it is ready. However many do, the API server is asked by one of them at a
// time, and once a second as long as it answers: what it lets the function's account ask is not theirs.
func TestManyWhoAskForReadinessAreOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := &probed{}
		s := NewServer(testRunner(label(wantLabel), api), nil)
		begin := time.Now()
		var g sync.WaitGroup
		for range 1000 {
			g.Go(func() {
				if ok, err := s.Ready(t.Context()); !ok || err != nil {
					t.Errorf("%v, %v", ok, err)
				}
			})
		}
		g.Wait()
		if n, took := api.asked.Load(), time.Since(begin); n != 1 || took != 100*time.Millisecond {
			t.Errorf("the API server was asked %d times, for %v", n, took)
		}
		time.Sleep(2 * time.Second)
		api.err = errors.New("away")
		if ok, err := s.Ready(t.Context()); ok || err == nil {
			t.Errorf("two seconds later: %v, %v", ok, err)
		}
		api.err = nil
		if ok, err := s.Ready(t.Context()); !ok || err != nil || api.asked.Load() != 3 {
			t.Errorf("once it is back: %v, %v, asked %d times", ok, err, api.asked.Load())
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(2 * time.Second)
		if ok, err := s.Ready(ctx); ok || err == nil {
			t.Errorf("who left: %v, %v", ok, err)
		}
	})
}

// What the API server says about the function's account is the log's, once a minute at most, and nobody's who may ask whether it is ready.
func TestWhyNotReadyIsForTheLog(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		why := `machines is forbidden: User "system:serviceaccount:machine-functions:link-node" cannot list`
		var log bytes.Buffer
		r := testRunner(label(wantLabel), &probed{err: errors.New(why)})
		r.Log = slog.New(slog.NewTextHandler(&log, nil))
		s := NewServer(r, nil)
		asked := func(lines int, when string) {
			t.Helper()
			ok, err := s.Ready(t.Context())
			if ok || err == nil || strings.Contains(err.Error(), "forbidden") {
				t.Errorf("%s: %v, %v", when, ok, err)
			}
			if n := strings.Count(log.String(), "cannot list"); n != lines {
				t.Errorf("%s: the log tells it %d times, want %d:\n%s", when, n, lines, &log)
			}
		}
		asked(1, "at first")
		asked(1, "at once again")
		time.Sleep(time.Minute)
		asked(2, "a minute later")
	})
}
