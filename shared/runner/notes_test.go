// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"
	"time"
)

// What was done is done again once d has passed, also where the clock that says so was set back by hours.
func TestOnceWhereTheClockIsSetBack(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	var o once[string]
	for i, c := range []struct {
		after time.Duration
		want  bool
	}{{0, true}, {4 * time.Second, false}, {5 * time.Second, true}, {3 * time.Second, false}, {-3 * time.Hour, true}, {-3*time.Hour + time.Second, false}} {
		if got := o.fresh("k", at.Add(c.after), 5*time.Second); got != c.want {
			t.Errorf("%d: %v after the first it is fresh: %v, want %v", i, c.after, got, c.want)
		}
	}
}

// What is old is forgotten, and looked for once in a while: where it were for each, tens of thousands would take their square.
func TestOnceOfMany(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	var o once[int]
	for k, c := range []struct {
		after time.Duration
		kept  int
	}{
		{0, 1},
		{toldFor / 2, 2},
		{toldFor, 2},         // the first is forgotten
		{toldFor * 7 / 4, 3}, // the second is old, and not looked for yet
		{toldFor * 2, 2},
	} {
		if !o.fresh(k, at.Add(c.after), toldFor) || len(o.last) != c.kept {
			t.Errorf("%d: after %v %d are remembered, want %d", k, c.after, len(o.last), c.kept)
		}
	}
}
