// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"context"
	"encoding/json"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	// patience is how long one call waits for a start that is under way: most are over sooner, and then no new call is needed.
	patience = 4 * time.Second
	// lookAgain is how long it looks away at most.
	lookAgain = 500 * time.Millisecond
	// longestStart is how long a start is waited for before that is told, and each toldEvery again: a daemon asks a hypervisor for some 30 s.
	longestStart, toldEvery = 10 * time.Minute, 5 * time.Minute
)

// await waits for a while for the start of m that is under way, and returns what m is then.
func (l *daemon) await(ctx context.Context, m domain) (domain, error) {
	end := time.Now().Add(patience)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, lookAgain) {
		now, there, err := l.read(m.Ref)
		switch {
		case err != nil:
			return now, err
		case !there:
			return now, provider.Errorf(provider.Unknown, "domain %s was removed while it was started", m.Ref.Name)
		case !now.Starting || hurried(ctx) || time.Now().Add(wait).After(end):
			return now, nil
		}
		select {
		case <-ctx.Done():
			return now, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// starting is the progress of a start that is under way, since when it was seen to be. What is recorded of anything else says nothing of that.
func starting(r provider.Ref) (p progress) {
	if err := json.Unmarshal(r.Progress, &p); err != nil || p.Step != stepStart {
		return progress{Step: stepStart}
	}
	return p
}

// waits is what a creation looks like whose start is under way, and tells what lasts. That is no refusal, after however many the attempt would be
// over: the next one would wait for the same. Who noted since when may have had another clock.
func waits(r provider.Ref, m domain) (provider.Instance, error) {
	p := starting(r)
	since := time.Since(time.Unix(p.Since, 0))
	if p.Since == 0 || since < 0 {
		p.Since, since = time.Now().Unix(), 0
	}
	if since < longestStart {
		return provider.Incomplete(r, p)
	}
	return provider.Halted(r, p, true, provider.ErrorAfter(provider.Throttled, toldEvery,
		"create %s: domain %s has been starting for more than ten minutes: what its host waits for, such as a share that does not answer, its log says; virsh destroy %s ends it", r.Name, m.Ref.Name, m.Ref.Name))
}
