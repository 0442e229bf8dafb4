// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A removal that Nova accepted and nobody carried out, because the service on the instance's host was gone, is told when it
// takes too long, and asked for again; until then it is asked for once (R-L2, E19).
func TestRemovalThatNovaForgotIsAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		l := newLife(t, f, "")
		in := l.up(t)
		f.forgets = 1
		begin, told := time.Now(), error(nil)
		for range 40 {
			err := l.Delete(t.Context(), l.ref)
			if provider.CodeOf(err) == provider.NotFound {
				break
			}
			if err != nil && told == nil {
				told = err
				if waited := time.Since(begin); waited < stuckAfter || waited > stuckAfter+time.Minute {
					t.Errorf("told after %v", waited)
				}
			}
			found, err := l.Find(t.Context(), l.ref)
			if err != nil {
				t.Fatal(err)
			}
			for _, have := range found {
				if again := time.Since(begin) >= stuckAfter && told == nil; have.Going() == again {
					t.Errorf("after %v it goes by itself: %v", time.Since(begin), have.Going())
				}
			}
			time.Sleep(30 * time.Second)
		}
		if told == nil || !strings.Contains(told.Error(), in.ID) || !strings.Contains(told.Error(), "deleting since") {
			t.Errorf("told: %v", told)
		}
		asked := slices.DeleteFunc(slices.Clone(f.calls), func(call string) bool { return !strings.HasPrefix(call, "DELETE /compute") })
		if len(asked) != 2 {
			t.Errorf("asked for %d times", len(asked))
		}
		wantNothing(t, f, "in the end")
	})
}
