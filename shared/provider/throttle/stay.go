// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"context"
	"sync"
	"time"
)

// Stay is what a [provider.Closer] keeps at its cloud, such as a session: it is given back as soon as the driver is closed and no call is
// under way. The two fields are set before anybody calls.
type Stay struct {
	Leave  func(context.Context) error // gives it back; who calls after it begins anew
	Within time.Duration               // how long that may take after the last call

	mu     sync.Mutex
	calls  int // that are under way
	closed bool
}

// Enter begins a call, and returns what ends it. Once the driver is closed the last one gives back what was kept, whatever became of ctx.
func (s *Stay) Enter(ctx context.Context) (end func()) {
	s.count(1, false)
	return func() {
		if !s.count(-1, false) {
			return
		}
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.Within)
		defer cancel()
		_ = s.Leave(ctx) // the cloud ends it when nobody has used it for long
	}
}

// Close gives back what was kept, or lets the last call that is under way do so.
func (s *Stay) Close(ctx context.Context) error {
	if !s.count(0, true) {
		return nil
	}
	return s.Leave(ctx)
}

// count changes how many calls are under way, and reports whether nobody needs what is kept any more.
func (s *Stay) count(by int, closes bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls += by
	s.closed = s.closed || closes
	return s.closed && s.calls == 0
}
