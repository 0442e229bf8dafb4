// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
)

// Pods that are worth nothing one by one: all of them get a place, or no Node is added for any (SPEC C31, W12, D38).
const (
	// groupAnnotation on Pods names their group within the namespace; the labels of coscheduling do as well.
	groupAnnotation = "machine.openshift.io/pod-group"
	// sizeAnnotation says how many Pods the group has to have, running ones included, before anything is done for it.
	sizeAnnotation = "machine.openshift.io/pod-group-size"
)

var (
	groupLabels = []string{"scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io"}
	sizeLabel   = "pod-group.scheduling.sigs.k8s.io/min-available"
)

// podGroupOf returns the group that a Pod belongs to; the empty text if it stands for itself.
func podGroupOf(p *corev1.Pod) string {
	name := p.Annotations[groupAnnotation]
	for _, key := range groupLabels {
		name = cmp.Or(name, p.Labels[key])
	}
	if name == "" {
		return ""
	}
	return p.Namespace + "/" + name
}

// broken is a group that cannot have a place for all its Pods.
type broken struct {
	pods []*corev1.Pod
	why  string
}

// incomplete returns the groups of which fewer Pods wait or have a place than they say, with those of them that wait. Of
// a group that does not say it, none may be behind a scheduling gate.
func (sc *scan) incomplete() map[string]broken {
	wants, waiting := map[string]int{}, map[string][]*corev1.Pod{}
	for _, p := range sc.waiting {
		if g := podGroupOf(p); g != "" && waits(p) {
			waiting[g] = append(waiting[g], p)
			if n, err := strconv.Atoi(cmp.Or(p.Annotations[sizeAnnotation], p.Labels[sizeLabel])); err == nil {
				wants[g] = max(wants[g], n)
			}
		}
	}
	if len(waiting) == 0 {
		return nil
	}
	placed, behind := sc.others(waiting)
	all := map[string]broken{}
	sc.spares = map[string]int{}
	for g, pods := range waiting {
		n, sized := wants[g]
		has := placed[g] + len(pods)
		if sized {
			sc.spares[g] = has - n
		}
		switch {
		case sized && has < n:
			all[g] = broken{pods, fmt.Sprintf("pod group %s has %d of %d pods", g, has, n)}
		case !sized && behind[g] > 0:
			all[g] = broken{pods, fmt.Sprintf("pod group %s has %d pods behind a scheduling gate", g, behind[g])}
		}
	}
	return all
}

// others counts the Pods of groups that have a place, and those that are behind a scheduling gate.
func (sc *scan) others(waiting map[string][]*corev1.Pod) (placed, behind map[string]int) {
	placed, behind = map[string]int{}, map[string]int{}
	for _, p := range sc.Pods {
		g := podGroupOf(p)
		switch {
		case waiting[g] == nil || finished(p) || p.DeletionTimestamp != nil:
		case gated(p):
			behind[g]++
		case sc.placeOf(p) != "":
			placed[g]++
		}
	}
	return placed, behind
}

// maxTornRounds bounds how often groups are left out one by one; then all that are torn are.
const maxTornRounds = 10

// torn returns the groups some of whose Pods the placement, as far as the limits let it come true, leaves without a
// place, unless those that have one are as many as the group says that it has to have. With one, it is the last of them by name alone, so that the others may have the room that it took.
func (sc *scan) torn(one bool) map[string]broken {
	left := map[string]int{}
	for i, shape := range sc.placement.Shapes {
		short := len(shape.Pods) - sc.placement.Fit[i] - sc.helped[i]
		for _, p := range slices.Backward(shape.Pods) {
			if short <= 0 {
				break
			}
			if g := podGroupOf(p); g != "" && waits(p) {
				left[g]++
				short--
			}
		}
	}
	maps.DeleteFunc(left, func(g string, n int) bool { return n <= sc.spares[g] })
	if one && len(left) > 1 {
		last := slices.Max(slices.Collect(maps.Keys(left)))
		left = map[string]int{last: left[last]}
	}
	all := map[string]broken{}
	for name, n := range left {
		b := broken{}
		for _, p := range sc.packed {
			if podGroupOf(p) == name && waits(p) {
				b.pods = append(b.pods, p)
			}
		}
		b.why = fmt.Sprintf("pod group %s: %d of %d pods have no place", name, n, len(b.pods))
		all[name] = b
	}
	return all
}

// answer is what the Pods of the group are told.
func (b broken) answer() string { return "1 " + reasonAll + " (" + b.why + ")" }
