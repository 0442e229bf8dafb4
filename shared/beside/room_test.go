// SPDX-License-Identifier: Apache-2.0

package beside

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// As many run at a time as there is room for, and always one: where there were none, whoever waits would wait for ever.
func TestGroupsAreBounded(t *testing.T) {
	t.Parallel()
	for limit, want := range map[int]int32{0: 1, 1: 1, 3: 3} {
		for name, of := range map[string]func(context.Context) *Group{
			"made so": func(context.Context) *Group { return New(limit) },
			"set so": func(ctx context.Context) *Group {
				g, _ := WithContext(ctx)
				g.SetLimit(limit)
				return g
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				g := of(t.Context())
				var under, most atomic.Int32
				for range 10 {
					g.Go(func() error {
						most.Store(max(most.Load(), under.Add(1)))
						time.Sleep(time.Second)
						under.Add(-1)
						return nil
					})
					synctest.Wait()
				}
				if err := g.Wait(); err != nil || most.Load() != want {
					t.Errorf("%s, room for %d: %d at a time, error %v; want %d", name, limit, most.Load(), err, want)
				}
			})
		}
	}
}
