// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"
	"time"

	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
)

// The only instance that a Machine may have is let go (R-S3) where nobody could know of it, and nowhere else: its attempt ended a Horizon
// after its call by the API server's clock, and no list had to show the instance when it was looked for.
func TestNobodyKnowsOfWhatAClockCutShort(t *testing.T) {
	t.Parallel()
	const lag, horizon = 30 * time.Second, 54 * time.Second
	made := birth{at: Start.Add(time.Second), began: Start}
	for name, c := range map[string]struct {
		over, looked time.Duration // after Start, by the API server's clock and by the cloud's
		want         bool
	}{
		"a clock jumped":                         {over: 10 * time.Minute, looked: 30 * time.Second, want: true},
		"a clock jumped, and a list has to show": {over: 10 * time.Minute, looked: lag + time.Second},
		"nobody waited for the horizon":          {over: horizon - 2*time.Second, looked: 30 * time.Second},
		"the horizon was waited for":             {over: horizon, looked: horizon},
	} {
		p := &Play{World: World{Cloud: &cloud.Cloud{Lag: lag}}}
		p.begin()
		p.births["i-1"], p.overAt["token"] = made, Start.Add(c.over)
		q := &proc{looked: Start.Add(c.looked)}
		if got := p.cutShort(q, cloud.Event{ID: "i-1", Token: "token"}); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
		if p.cutShort(q, cloud.Event{ID: "i-1", Token: "another"}) {
			t.Errorf("%s: so is what is of an attempt that is not over", name)
		}
	}
}
