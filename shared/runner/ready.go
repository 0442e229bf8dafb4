// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"time"
)

const (
	// readyFor is how long the API server is thought to answer after it did.
	readyFor = time.Second
	// unreadyTold is how long the log tells no more why it does not.
	unreadyTold = time.Minute
)

// errNotReady is all that is told to who asks: what the API server says of the function's account is for the log.
var errNotReady = errors.New("the API server does not let the function work: its log says why")

// readiness is whether the API server answers, for everybody who asks.
type readiness struct {
	turn chan struct{} // held while it is asked; guards what follows
	good time.Time     // when it answered last
	told time.Time     // when the log told last why it did not
}

func newReadiness() readiness { return readiness{turn: make(chan struct{}, 1)} }

// Ready reports whether the function can be invoked: when it can reach the API server. Anybody who reaches the function may ask, so they
// ask one after the other, and need not where one has just had a good answer.
func (s *Server) Ready(ctx context.Context) (bool, error) {
	select {
	case s.ready.turn <- struct{}{}:
		defer func() { <-s.ready.turn }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	if time.Since(s.ready.good) < readyFor {
		return true, nil
	}
	if err := s.Runner.Cluster.Ready(ctx); err != nil {
		if time.Since(s.ready.told).Abs() >= unreadyTold {
			s.ready.told = time.Now()
			s.Runner.Log.Warn("not ready", keyError, brief(err))
		}
		return false, errNotReady
	}
	s.ready.good = time.Now()
	return true, nil
}
