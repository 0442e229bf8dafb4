// SPDX-License-Identifier: Apache-2.0

package throttle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

// What is kept is given back once: when the driver is closed, by the last call that is under way then, and after that by each that comes later.
func TestStayEndsWithItsLastCall(t *testing.T) {
	t.Parallel()
	left, refusal := 0, errors.New("no")
	s := throttle.Stay{Within: time.Minute, Leave: func(ctx context.Context) error {
		left++
		if ctx.Err() != nil {
			t.Errorf("there is no time to leave: %v", ctx.Err())
		}
		return refusal
	}}
	s.Enter(t.Context())()
	ctx, cancel := context.WithCancel(t.Context())
	one, other := s.Enter(ctx), s.Enter(ctx)
	if err := s.Close(t.Context()); err != nil || left != 0 {
		t.Errorf("Close amidst calls = %v, left %d times", err, left)
	}
	cancel()
	if one(); left != 0 {
		t.Error("it ends before the last call")
	}
	if other(); left != 1 {
		t.Errorf("left %d times", left)
	}
	if s.Enter(t.Context())(); left != 2 {
		t.Errorf("left %d times after a further call", left)
	}
	if err := s.Close(t.Context()); !errors.Is(err, refusal) || left != 3 {
		t.Errorf("Close = %v, left %d times", err, left)
	}
}
