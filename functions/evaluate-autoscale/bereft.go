// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// bereft says of a group which Machine had a Node that is gone and is awaited like one that never came, or "". A kubelet does not register
// again by itself, and what Pods wait for is told nowhere else that is theirs: nobody asked for Nodes for them.
func (sc *scan) bereft(g *group) string {
	request := sc.state.Groups[g.id].Request
	if g.upcoming == 0 || request == nil {
		return ""
	}
	name, n, first := "", 0, time.Time{}
	for _, m := range g.members {
		if m.leaving || m.may || m.machine.Status.NodeRef == nil || sc.isLost(g, m.machine) {
			continue
		}
		n++
		if at := m.machine.CreationTimestamp.Time; first.IsZero() || at.Before(first) {
			name, first = m.machine.Name, at
		}
	}
	if n == 0 {
		return ""
	}
	if request.At.Time.Before(first) { // then none of the group is awaited any more
		first = request.At.Time
	}
	more := ""
	if n > 1 {
		more = fmt.Sprintf(" and %d more", n-1)
	}
	return fmt.Sprintf("it waits for a node of %s: the node of machine %s%s is gone, and another is awaited until %s",
		g.set.Name, name, more, machine.Stamp(first.Add(g.own.MaxNodeProvisionTime)))
}

// awaitedFor says what Pods wait for that nobody asked for: a Node in the place of one that is gone, or one of a set that is no group; or "".
func (sc *scan) awaitedFor(g *group) string {
	if sc.byID[g.id] == nil {
		return sc.foreseen(g)
	}
	return sc.bereft(g)
}

// bereaved tells the Pods that have a place on Nodes that are to come of groups of which a Node is gone, or of sets that are no groups.
func (sc *scan) bereaved(tell func(pods []*corev1.Pod, why func() string)) {
	texts, pods := map[*group]string{}, map[*group][]*corev1.Pod{}
	for _, g := range slices.Concat(sc.groups, sc.strangers) {
		if text := sc.awaitedFor(g); text != "" {
			texts[g] = text
		}
	}
	if len(texts) == 0 {
		return
	}
	taken := sc.taken()
	for i, at := range sc.places {
		if at.fresh && texts[at.group] != "" {
			waiting, _ := divided(taken[i], waits)
			pods[at.group] = append(pods[at.group], waiting...)
		}
	}
	for _, g := range slices.Concat(sc.groups, sc.strangers) {
		tell(pods[g], func() string { return texts[g] })
	}
}
