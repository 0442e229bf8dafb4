// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// Bounds of what is remembered about Pods that Nodes were asked for: the ConfigMap holds a megabyte, a Pod takes six bytes.
const (
	maxWaves  = 50 // of one group; the two oldest become one
	maxMarked = 50_000
)

// wave is what is remembered about Nodes that are asked for now: once they are there, the set has so many Machines, and
// these Pods have a place.
func (sc *scan) wave(to int32, served []*corev1.Pod) autoscaling.Wave {
	marks := make(autoscaling.Marks, min(len(served), maxMarked))
	for _, p := range served {
		if len(sc.counted)+len(marks) < maxMarked && !sc.counted.Has(p) {
			marks.Add(p)
		}
	}
	return autoscaling.Wave{At: *sc.now(), To: to, Pods: marks.String()}
}

// followWaves forgets the waves that are no longer on their way: their Nodes came and have settled, are not wanted any
// more, or took too long. A group that is backed off, or whose request timed out, has none: its Pods look for another.
func (sc *scan) followWaves(g *group) {
	n := sc.state.Groups[g.id]
	if len(n.Waves) == 0 {
		return
	}
	here := g.target - g.awaited() - g.settling
	lost := sc.backedOff(g) || n.Request != nil && n.Request.TimedOut
	var waves []autoscaling.Wave
	for _, w := range n.Waves {
		switch {
		case lost || w.To > g.target || !sc.Now.Before(w.At.Add(g.own.MaxNodeProvisionTime)):
		case w.To <= here:
			sc.arrived = append(sc.arrived, arrival{g, w})
		default:
			waves = append(waves, w)
		}
	}
	if len(waves) > maxWaves {
		marks := autoscaling.Marks{}
		marks.AddText(waves[0].Pods)
		marks.AddText(waves[1].Pods)
		waves = waves[1:]
		waves[0].Pods = marks.String()
	}
	sc.change(g, func(n *autoscaling.NodeGroup) { n.Waves = waves })
}

// countedOn returns the Pods that waves on their way are for.
func (sc *scan) countedOn() autoscaling.Marks {
	marks := autoscaling.Marks{}
	for _, g := range sc.groups {
		for _, w := range sc.state.Groups[g.id].Waves {
			marks.AddText(w.Pods)
		}
	}
	return marks
}

// covered returns Pods that found no place on Nodes that exist or are to come, although they were counted on when Nodes
// were asked for that are on their way. Of the Pods of a shape they come first: those that nobody counted on yet never
// take their places. One after the other would be many rounds, so that later ones take more of them at once.
func (sc *scan) covered(p scheduling.Placement, round int) map[*corev1.Pod]bool {
	if len(sc.counted) == 0 {
		return nil
	}
	covered := map[*corev1.Pod]bool{}
	for i, shape := range p.Shapes {
		first := sc.countedFirst(shape.Pods)
		if short := first - p.Fit[i]; short > 0 {
			for _, x := range shape.Pods[first-min(first, max(short, 1<<min(round, 16))) : first] {
				covered[x] = true
			}
		}
	}
	return covered
}

// countedFirst brings the Pods that were counted on to the front, and returns how many they are.
func (sc *scan) countedFirst(pods []*corev1.Pod) (first int) {
	var rest []*corev1.Pod
	for _, p := range pods {
		if sc.counted.Has(p) {
			pods[first] = p
			first++
		} else {
			rest = append(rest, p)
		}
	}
	copy(pods[first:], rest)
	return first
}
