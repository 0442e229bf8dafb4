// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
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
	sc.spares, sc.lacks, sc.members = map[string]int{}, map[string]string{}, map[string]int{}
	for g, pods := range waiting {
		sc.members[g] = len(pods)
		n, sized := wants[g]
		has := placed[g] + len(pods)
		if sized {
			sc.spares[g] = has - n
		}
		switch {
		case sized && has < n:
			sc.lacks[g] = fmt.Sprintf("pod group %s has %d of %d pods", g, has, n)
		case !sized && behind[g] > 0:
			sc.lacks[g] = fmt.Sprintf("pod group %s has %d pods behind a scheduling gate", g, behind[g])
		default:
			continue
		}
		if pods = slices.DeleteFunc(pods, sc.counted.Has); len(pods) > 0 { // for the others Nodes are on their way
			all[g] = broken{pods, sc.lacks[g]}
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

// tornGroup is a group of Pods that a placement tears apart.
type tornGroup struct {
	name  string
	rank  int32  // the highest priority of its Pods
	limit string // what every set answers to one of them that has no place
	broken
}

// gap is what a group of Pods lacks in a placement.
type gap struct{ pods, shape int } // shape is that of one of them

// torn returns the groups some of whose Pods the placement, as far as the limits let it come true, leaves without a
// place, or that were left out of it, unless those that have one are as many as the group says that it has to have; and those
// that are incomplete and no longer have what they were counted on for. Of each it has the Pods that are still to be left out.
func (sc *scan) torn() (all []tornGroup) {
	left, at := sc.missing(), map[string]int{}
	if len(left)+len(sc.lacks) == 0 {
		return nil
	}
	for _, p := range sc.packed {
		name := podGroupOf(p)
		if left[name].pods == 0 && sc.lacks[name] == "" || !waits(p) || sc.assured(p) { // who is assured has a place, whoever else has none
			continue
		}
		i, is := at[name]
		if !is {
			i = len(all)
			at[name], all = i, append(all, tornGroup{name: name, rank: math.MinInt32})
		}
		all[i].pods = append(all[i].pods, p)
		all[i].rank = max(all[i].rank, corev1helpers.PodPriority(p))
	}
	answers := sc.answersOfPlan()
	for i := range all {
		t := &all[i]
		if t.why = cmp.Or(sc.lacks[t.name], sc.broken[t.name].why); t.why != "" {
			t.limit = t.why
		} else {
			t.limit = answers(left[t.name].shape)
			t.why = fmt.Sprintf("pod group %s: %d of %d pods have no place: %s", t.name, left[t.name].pods, sc.members[t.name], t.limit)
		}
	}
	return all
}

// missing returns how many Pods of each group have no place in the placement, where the group cannot do without them. Where
// like Pods that stand for themselves wait as well, these come first: each is of use alone, and nothing keeps the scheduler from
// giving one the Node that a group was to have, which would be torn then. A group that is not to wait for them has a higher priority.
func (sc *scan) missing() map[string]gap {
	left := map[string]gap{}
	for i, shape := range sc.placement.Shapes {
		short := len(shape.Pods) - sc.placement.Fit[i] - sc.helped[i]
		for _, p := range slices.Backward(shape.Pods) {
			if short <= 0 {
				break
			}
			if g := podGroupOf(p); g != "" && waits(p) && !sc.assured(p) {
				left[g] = gap{left[g].pods + 1, i}
				short--
			}
		}
	}
	for g, b := range sc.broken {
		left[g] = gap{left[g].pods + len(b.pods), left[g].shape}
	}
	maps.DeleteFunc(left, func(g string, n gap) bool { return n.pods <= sc.spares[g] })
	return left
}

// together returns Pods that new Nodes are for, with those of their groups that fit elsewhere: these Nodes are worth nothing
// without the places of the others.
func (sc *scan) together(served []*corev1.Pod) []*corev1.Pod {
	groups := map[string]bool{}
	for _, p := range served {
		groups[podGroupOf(p)] = true
	}
	delete(groups, "")
	if len(groups) == 0 {
		return served
	}
	all := slices.Clone(served)
	for i, shape := range sc.placement.Shapes {
		for _, p := range shape.Pods[:sc.placement.Fit[i]] {
			if groups[podGroupOf(p)] {
				all = append(all, p)
			}
		}
	}
	return all
}

// leaveOut leaves Pods of a group out of the packing, and reports whether they are the first of it.
func (sc *scan) leaveOut(t tornGroup) (first bool) {
	if sc.broken == nil {
		sc.broken = map[string]broken{}
	}
	b, is := sc.broken[t.name]
	known := make(map[*corev1.Pod]bool, len(b.pods))
	for _, p := range b.pods {
		known[p] = true
	}
	more := slices.DeleteFunc(slices.Clone(t.pods), func(p *corev1.Pod) bool { return known[p] })
	sc.broken[t.name] = broken{slices.Concat(b.pods, more), cmp.Or(b.why, t.why)}
	return !is
}

// answer is what the Pods of the group are told.
func (b broken) answer() string { return "1 " + reasonAll + " (" + b.why + ")" }
