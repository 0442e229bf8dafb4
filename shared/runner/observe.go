// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// observe builds a fresh snapshot: it asks the function what it reads until that asks nothing new. Nothing of an
// earlier round is kept but the outcomes, and where a cloud is slow what it said ([invocation.known]).
func (i *invocation) observe(ctx context.Context) (snapshot.Snapshot, error) {
	s := snapshot.Snapshot{Before: i.last, Request: i.request, Invocation: i.id, Outcomes: i.outcomes, Records: i.records}
	if i.survives {
		s.Survive, s.Poison, i.poison = i.poisoned, map[plan.Ref]bool{}, nil
	}
	i.accounts, i.opened = map[string]account{}, map[lead]*opening{}
	i.pretended.found = map[snapshot.Query]map[string]string{}
	i.reading, i.before, i.asked = 0, i.asked, nil
	for range maxReads {
		missing := s.Missing(i.Function.Reads(s))
		if missing.Empty() {
			return s, nil
		}
		if len(missing.Objects) > 0 {
			began := time.Now()
			seen, err := i.Cluster.Observe(ctx, s, missing.Objects)
			if err != nil {
				return s, err
			}
			i.reading += time.Since(began)
			if err := i.checkClock(seen.Now); err != nil {
				return s, err
			}
			i.now = seen.Now
			s = seen
			i.cover(&s)
		}
		if len(missing.Lookups)+len(missing.Accounts) > 0 {
			if i.Clouds == nil {
				return s, fmt.Errorf("%s asks for clouds, but has none", i.Function.Name)
			}
			if err := i.look(ctx, &s, missing); err != nil {
				return s, err
			}
		}
	}
	if rest := s.Missing(i.Function.Reads(s)); !rest.Empty() {
		return s, fmt.Errorf("%s still asks after %d readings: %+v", i.Function.Name, maxReads, rest)
	}
	return s, nil
}

// checkClock refuses to decide by timers that mean nothing (RELIABILITY G7).
func (i *invocation) checkClock(server time.Time) error {
	if i.Clock == nil {
		return nil
	}
	if skew := i.Clock().Sub(server); skew.Abs() > machine.Skew {
		return fmt.Errorf("local clock is %v off the API server's", skew.Round(time.Second))
	}
	return nil
}
