// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"testing"
	"time"
)

func TestRepackingHasToPay(t *testing.T) {
	t.Parallel()
	r, err := ParseRepacking("migration=0.01 payback=10h")
	if err != nil || r != (Repacking{Migration: 0.01, Payback: 10 * time.Hour}) {
		t.Fatalf("%+v, error %v", r, err)
	}
	for _, tt := range []struct {
		saving float64
		pods   int
		want   bool
	}{{0.1, 99, true}, {0.1, 101, false}, {0, 0, false}, {-0.1, 0, false}, {0.001, 0, true}} {
		if got := r.Worth(tt.saving, tt.pods); got != tt.want {
			t.Errorf("saving %v for %d pods: %v", tt.saving, tt.pods, got)
		}
	}
	if r, err := ParseRepacking("migration=1"); err != nil || r.Payback != 24*time.Hour {
		t.Errorf("%+v, error %v", r, err)
	}
	for _, text := range []string{"", "on", "migration=-1", "migration=x", "migration=1 payback=1s", "payback=1h", "migration=1 migration=2", "migration=1e6", "migration=1 cost=2", "migration=1 payback=59s", "migration=NaN", "migration=1 payback=8761h"} {
		if r, err := ParseRepacking(text); err == nil {
			t.Errorf("%q: %+v", text, r)
		}
	}
}
