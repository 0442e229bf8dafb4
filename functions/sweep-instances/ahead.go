// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"maps"
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// bounded returns s as it counts at now: nothing of it was seen later. A clock that was ahead, and was set back, must not keep an orphan,
// or an account, until that time comes again (RELIABILITY G7). s is not modified.
func bounded(s machine.SweepState, now time.Time) machine.SweepState {
	s.Accounts, s.Sightings = maps.Clone(s.Accounts), maps.Clone(s.Sightings)
	for key, a := range s.Accounts {
		if a.EmptySince != nil {
			a.EmptySince = new(machine.Past(*a.EmptySince, now))
			s.Accounts[key] = a
		}
	}
	for key, since := range s.Sightings {
		s.Sightings[key] = machine.Past(since, now)
	}
	return s
}
