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

// Tens of thousands are remembered without looking at all the others for each, and forgotten when they are old.
func TestOnceOfMany(t *testing.T) {
	t.Parallel()
	const many = 20_000
	at := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	var o once[int]
	began := time.Now()
	for k := range many {
		if !o.fresh(k, at, toldFor) {
			t.Fatalf("%d is not fresh", k)
		}
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("%d took %v", many, took)
	}
	for k := range 3 {
		at = at.Add(toldFor)
		o.fresh(many+k, at, toldFor)
	}
	if len(o.last) > 2 {
		t.Errorf("%d are remembered", len(o.last))
	}
}
