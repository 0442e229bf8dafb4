// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"time"
)

// readyFor is how long the API server is thought to answer after it did.
const readyFor = time.Second

// readiness is whether the API server answers, for everybody who asks.
type readiness struct {
	turn chan struct{} // held while it is asked; guards what follows
	good time.Time     // when it answered last
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
	err := s.Runner.Cluster.Ready(ctx)
	if err == nil {
		s.ready.good = time.Now()
	}
	return err == nil, err
}
