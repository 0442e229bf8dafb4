// SPDX-License-Identifier: Apache-2.0

package flights

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/beside"
)

// A run that panics takes nobody along but those who wait for it: the process goes on, and so does the next run of its key, in the place
// that it had.
func TestPanicOfARunIsOfWhoeverWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := New[string, int](1)
		call := func(run func() int) (caught *beside.Panic) {
			defer func() {
				if v := recover(); v != nil {
					caught = beside.Caught(v)
				}
			}()
			if n, err := f.Do(t.Context(), "a", func(context.Context) (int, error) { return run(), nil }); n != 1 || err != nil {
				t.Errorf("%d, %v", n, err)
			}
			return nil
		}
		left := make(chan *beside.Panic, 3)
		for range 3 { // one, and two who share the next
			go func() { left <- call(poisoned) }()
			synctest.Wait()
		}
		for range cap(left) {
			if p := <-left; p == nil || p.Value != "poison" || !strings.Contains(p.Stack, "flights.poisoned") {
				t.Errorf("who waits is told %v", p)
			}
		}
		if p := call(func() int { return 1 }); p != nil || f.Longest() != 0 || len(f.next) != 0 {
			t.Errorf("the next: %v; under way for %v, %d are remembered", p, f.Longest(), len(f.next))
		}
	})
}

func poisoned() int {
	time.Sleep(time.Second)
	panic("poison")
}
