// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// silences are how far apart the rounds are of an hour in which nothing is wrong and nothing happens. What writes in every other minute
// is heard in some of them.
var silences = []time.Duration{
	time.Minute, time.Minute, 2 * time.Minute, 3 * time.Minute, 5 * time.Minute, 8 * time.Minute, 13 * time.Minute, 27 * time.Minute,
}

// unscanned is from when on the autoscaler takes the times of Nodes that nobody needs for unwatched, and begins them anew: that it writes.
const unscanned = 5 * time.Minute

// oneHourIn is in how many schedules one goes on for that hour: it takes a sixth of the time of one.
const oneHourIn = 8

// oncesIn is in how many of these rounds one object may be written: the autoscaler's state remembers why a Node stays, and later that a
// backoff is over.
const oncesIn = 2

// hour holds R-S14: what ran out may be written once more, as the sweep's sightings, a set's backoff and why a Node stays, but nothing
// again and again. Where a function waits for the budget something may happen yet.
func (p *Play) hour() {
	if p.calls%oneHourIn > 0 || p.slotsTaken("evaluate-autoscale") || p.slotsTaken("remediate") {
		return
	}
	written := map[string]int{} // by object: in how many rounds
	for _, d := range silences {
		p.clock = p.clock.Add(d)
		before := len(p.API.Writes())
		p.round(0)
		now := map[string]bool{}
		for _, w := range p.API.Writes()[before:] {
			now[w.Resource+"/"+w.Name] = true
		}
		if d >= unscanned { // a round takes time, too
			delete(now, "configmaps/"+machine.ConfigMapStatus)
		}
		for _, what := range slices.Sorted(maps.Keys(now)) {
			if written[what]++; written[what] > oncesIn {
				p.violate("R-S14", "in an hour in which nothing is wrong %s is written again and again", what)
			}
		}
		if last := p.wrong(); last != "" {
			rule, what, _ := strings.Cut(last, ": ")
			p.violate(rule, "in an hour in which nothing happens: %s", what)
		}
	}
}
