// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// progress names what an attempt has made so far.
type progress struct {
	Address  string `json:"address,omitempty"`
	Card     string `json:"card,omitempty"`
	Instance string `json:"instance,omitempty"` // Azure's own id of it
	Waits    string `json:"waits,omitempty"`    // for what
	Since    int64  `json:"since,omitempty"`    // when that began, in seconds
}

const (
	// lookAgain is how long one call waits for what takes a while: the next call costs a claim, and its end, on the Machine.
	lookAgain = 4 * time.Second
	// margin is what a call needs after that.
	margin = 3 * time.Second
	// patience is how long Azure may be at one thing before that is told, and each toldEvery again. Most takes a minute, a system that does
	// not report twenty.
	patience, toldEvery = 30 * time.Minute, 5 * time.Minute
)

// patiently makes a step, and once more if it had to wait. What it waits for is on record, and told once that takes long. That is no refusal,
// after however many the attempt would be over: Azure is at it, and an instance that it is making may be a Node. Who noted since when may have had
// another clock.
func (d *driver) patiently(
	ctx context.Context, r provider.Ref, p *progress, step func() (provider.Instance, string, error),
) (provider.Instance, error) {
	for again := false; ; again = true {
		in, waits, err := step()
		if waits == "" || err != nil {
			return in, err
		}
		since := time.Since(time.Unix(p.Since, 0))
		if p.Waits != waits || since < 0 {
			p.Waits, p.Since, since = waits, time.Now().Unix(), 0
		}
		if since > patience {
			const says = "create %s: waiting %s takes more than %v: see what Azure's activity log says of it"
			return provider.Halted(r, p, true, provider.ErrorAfter(provider.Throttled, toldEvery, says, r.Name, waits, patience))
		}
		if again || !d.sleep(ctx) {
			return provider.Incomplete(r, p)
		}
	}
}

// waited reports whether an attempt has waited for one thing for so long.
func (p *progress) waited(what string, d time.Duration) bool {
	return p.Waits == what && time.Since(time.Unix(p.Since, 0)) >= d
}

// sleep waits for a while and reports whether it did, and there is time for more.
func (d *driver) sleep(ctx context.Context) bool {
	if end, ok := ctx.Deadline(); ok && time.Until(end) < d.pause+margin {
		return false
	}
	timer := time.NewTimer(d.pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
