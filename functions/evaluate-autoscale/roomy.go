// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// A Pod may fit a Node as far as is known here, while the scheduler refuses it for ever: for what is not read, as how much room is left
// behind a StorageClass. Nothing is done for it, and nothing says so but this.

const (
	// refusedFor is how long a Pod has had room before it is told that the scheduler gives it none: by then the scheduler has looked at
	// it again, which it does after five minutes and a half at the latest, whatever happened.
	refusedFor = 6 * time.Minute
	// mostRefused bounds the Pods of which is remembered since when they have room.
	mostRefused = 100
	// hasRoom is the reason under which that is remembered.
	hasRoom = "fits"
)

// tellRefused adds the Pods that have room on a Node for so long that the scheduler has refused it to them, and remembers since when others have
// it: those that have waited for as long, as most get theirs at once.
func (sc *scan) tellRefused(add func([]*corev1.Pod, func() string)) {
	sc.roomy = map[types.UID]autoscaling.Held{}
	taken := make([]int, len(sc.placement.Shapes))
	for _, on := range sc.placement.On {
		at := sc.places[on.Node]
		if at.fresh {
			continue
		}
		from := taken[on.Shape]
		taken[on.Shape] += on.Count
		for _, p := range sc.placement.Shapes[on.Shape].Pods[from:taken[on.Shape]] {
			h, known := sc.state.Held[p.UID]
			switch {
			case !waits(p), !unschedulable(p), !known && (len(sc.roomy) >= mostRefused || sc.ageOf(p) < refusedFor):
				continue
			case !known:
				h = autoscaling.Held{Reason: digestOf(hasRoom), Since: *sc.now()}
			case !sc.Now.Before(h.Since.Add(refusedFor)):
				add([]*corev1.Pod{p}, func() string { return roomText(at.node, p) })
			}
			sc.roomy[p.UID] = h
		}
	}
}

// ageOf is for how long a Pod has been there; of one that a clock which was ahead made nobody knows (RELIABILITY G7).
func (sc *scan) ageOf(p *corev1.Pod) time.Duration {
	if machine.TooFar(p.CreationTimestamp.Time, sc.Now, 0) {
		return refusedFor
	}
	return sc.Now.Sub(p.CreationTimestamp.Time)
}

// roomText says that a Node has room for a Pod, and what the scheduler says.
func roomText(n *corev1.Node, p *corev1.Pod) string {
	text := "node " + n.Name + " has room for it as far as is known here"
	i := slices.IndexFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	if says := p.Status.Conditions[i].Message; says != "" {
		text += "; the scheduler says: " + clip(says)
	}
	return text
}

// keepRoomy remembers since when Pods have room: where this scan asked nobody, as it was.
func (sc *scan) keepRoomy(held map[types.UID]autoscaling.Held) {
	if sc.roomy != nil {
		maps.Copy(held, sc.roomy)
		return
	}
	for _, p := range sc.unbound {
		if h, known := sc.state.Held[p.UID]; known {
			held[p.UID] = h
		}
	}
}
