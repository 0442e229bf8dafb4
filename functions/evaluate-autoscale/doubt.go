// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"time"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
)

const (
	doubtTime    = time.Minute // how long a list that lost half of it is not believed (RELIABILITY G8)
	fewestMissed = 5
)

// doubtful reports that the lists of Nodes or Pods lost so much at once that they are not believed before a second
// look, a minute later, shows the same: those that go on losing are in doubt anew (RELIABILITY G8, R-B23).
func (sc *scan) doubtful() bool {
	seen := &sc.state.Seen
	lost := func(now, before int) bool { return 2*now < before && before-now >= fewestMissed }
	grown := func(now, before int) bool { return 4*now > 5*before && now-before >= fewestMissed }
	nodes, pods := len(sc.Nodes), len(sc.Pods)
	switch {
	case !lost(nodes, seen.Nodes) && !lost(pods, seen.Pods):
		seen.Doubt, seen.Left = nil, nil
		if grown(nodes, seen.Nodes) || grown(pods, seen.Pods) {
			seen.Nodes, seen.Pods = max(nodes, seen.Nodes), max(pods, seen.Pods)
		}
	case seen.Doubt == nil, seen.Left != nil && (lost(nodes, seen.Left.Nodes) || lost(pods, seen.Left.Pods)):
		seen.Doubt, seen.Left = sc.now(), &autoscaling.Left{Nodes: nodes, Pods: pods}
	case !sc.Now.Before(seen.Doubt.Add(doubtTime)):
		*seen = autoscaling.Seen{Nodes: nodes, Pods: pods}
	}
	return seen.Doubt != nil
}
