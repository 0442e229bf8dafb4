// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestBoundedIntent(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	in := func(d time.Duration) *metav1.Time { return new(metav1.NewTime(now.Add(d))) }
	for name, c := range map[string]struct {
		is, want Intent
		says     string
	}{
		"a claim of a clock that is a little ahead": {is: Intent{Until: in(90 * time.Second), Holder: "h"}, want: Intent{Until: in(90 * time.Second), Holder: "h"}},
		"a claim of tomorrow": {
			is: Intent{Until: in(24 * time.Hour), Holder: "h"}, want: Intent{Until: in(time.Minute), Holder: "h"}, says: "until 2026-01-02T00:00:00Z",
		},
		"the longest backoff": {
			is: Intent{NotBefore: in(LongestPause + Skew), Generation: 3}, want: Intent{NotBefore: in(LongestPause + Skew), Generation: 3},
		},
		"a backoff of tomorrow": {is: Intent{NotBefore: in(24 * time.Hour), Generation: 3}, want: Intent{}, says: "notBefore 2026-01-02T00:00:00Z"},
		"calls of tomorrow": {
			is: Intent{StartedAt: *in(24 * time.Hour), Unanswered: in(25 * time.Hour)}, want: Intent{StartedAt: *in(0), Unanswered: in(0)},
			says: "startedAt 2026-01-02T00:00:00Z, unanswered 2026-01-02T01:00:00Z",
		},
		"calls of a clock that is a little ahead": {
			is: Intent{StartedAt: *in(Skew), Unanswered: in(Skew)}, want: Intent{StartedAt: *in(Skew), Unanswered: in(Skew)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, wrong := c.is.Bounded(now)
			if got.String() != c.want.String() || (wrong == "") != (c.says == "") || !strings.Contains(wrong, c.says) {
				t.Errorf("got %v %q, want %v %q", got, wrong, c.want, c.says)
			}
			if again, wrong := got.Bounded(now); wrong != "" || again.String() != got.String() {
				t.Errorf("bounded again: %v %q", again, wrong)
			}
		})
	}
	if _, wrong := (*Intent)(nil).Bounded(now); wrong != "" {
		t.Errorf("no intent: %q", wrong)
	}
}
