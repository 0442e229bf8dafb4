// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// maxTold bounds the Pods of one scan that are told what is done for them, each by an Event of its own.
const maxTold = 100

// option is a group that can grow, with what became of the Pods.
type option struct {
	*group
	offer scheduling.Offer
	more  int32 // Nodes to add
}

// scaleUp gives Pods that do not fit the Nodes that they need, of all groups at once, and reports whether it tried.
func (sc *scan) scaleUp() bool {
	if sc.young = sc.allYoung(); sc.young {
		sc.notes = append(sc.notes, plan.Log("Unschedulable pods are very new, waiting one iteration for more"))
		return true
	}
	sc.options = sc.growing()
	options := sc.options
	digests := sc.plan(options)
	if slices.ContainsFunc(sc.waiting, waits) && len(sc.placement.Openings) == 0 && sum(sc.placement.Left) == 0 && len(sc.broken) == 0 {
		sc.notes = append(sc.notes, plan.Log("No unschedulable pods"))
	}
	if len(digests) == 0 {
		return false
	}
	sc.resizing = true
	sc.announce(options)
	id := sc.planID("grow", planText(options))
	for _, o := range options {
		if o.more > 0 {
			sc.grow(o, id, digests[o.group])
		}
	}
	sc.state.LastScaleUp = sc.now()
	sc.tellPods(options)
	return true
}

// plan places the Pods and decides how many Nodes each option adds for them. Groups of Pods that would be torn apart are
// left out, one after the other, and the rest is planned anew.
func (sc *scan) plan(options []*option) map[*group][]string {
	sc.broken = sc.incomplete()
	for round := 0; ; round++ {
		sc.placement = sc.place(options)
		sc.helped = make([]int, len(sc.placement.Shapes))
		if sc.full() {
			return nil
		}
		notes := len(sc.notes)
		digests := sc.choose(options)
		torn := sc.torn(round < maxTornRounds)
		if len(torn) == 0 {
			return digests
		}
		if sc.broken == nil {
			sc.broken = map[string]broken{}
		}
		maps.Copy(sc.broken, torn)
		sc.notes = sc.notes[:notes]
		for _, o := range options {
			o.more = 0
		}
	}
}

// Pods that came together are helped together: while all that wait are this new, one scan is let pass (SPEC C6).
const (
	youngAge    = 2 * time.Second
	youngGPUAge = 30 * time.Second
)

// allYoung reports that Pods wait for their first place, and all of them are very new.
func (sc *scan) allYoung() bool {
	var oldest, oldestGPU time.Time
	for _, p := range sc.waiting {
		if !waits(p) {
			continue
		}
		at := p.CreationTimestamp.Time
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
		if asksGPU(p) && (oldestGPU.IsZero() || at.Before(oldestGPU)) {
			oldestGPU = at
		}
	}
	newer := func(t time.Time, age time.Duration) bool { return !t.IsZero() && sc.Now.Before(t.Add(age)) }
	return newer(oldest, youngAge) || !oldest.IsZero() && newer(oldestGPU, youngGPUAge)
}

func asksGPU(p *corev1.Pod) bool {
	for _, list := range [...][]corev1.Container{p.Spec.Containers, p.Spec.InitContainers} {
		for i := range list {
			if _, gpu := list[i].Resources.Requests[scheduling.GPU]; gpu {
				return true
			}
		}
	}
	return false
}

// growing returns the groups that can grow. Those that cannot say why when Pods ask (SPEC C25).
func (sc *scan) growing() (all []*option) {
	total := sc.total()
	for _, g := range sc.groups {
		if sc.refusal(g, total).reason != "" {
			continue
		}
		count, _, _ := sc.room(total, sizeOf(g.template.Node))
		all = append(all, &option{group: g, offer: scheduling.Offer{
			Name: g.id, Node: g.template, Limit: int(min(int64(g.max-g.target), count)),
		}})
	}
	if len(sc.waiting) > 0 {
		sc.expand(all)
	}
	return all
}

// place finds places for the waiting Pods. Those that an earlier request was made for wait for its Nodes: they fitted
// when it was made, whatever another packing makes of it (RELIABILITY 2d). Without them another packing may leave
// others of them over, so that this is asked until none is.
func (sc *scan) place(options []*option) scheduling.Placement {
	offers := make([]scheduling.Offer, len(options))
	for i, o := range options {
		offers[i] = o.offer
	}
	sc.packed = sc.waiting
	if len(sc.broken) > 0 {
		sc.packed = slices.DeleteFunc(slices.Clone(sc.waiting), func(x *corev1.Pod) bool { _, out := sc.broken[podGroupOf(x)]; return out && waits(x) })
	}
	for {
		p := sc.world.Place(sc.packed, offers)
		covered := sc.covered(p)
		if len(covered) == 0 {
			return p
		}
		sc.packed = slices.DeleteFunc(slices.Clone(sc.packed), func(x *corev1.Pod) bool { return covered[x] })
	}
}

// covered returns Pods that found no place on Nodes that exist or are to come, although open requests were made for
// such Pods when they waited already.
func (sc *scan) covered(p scheduling.Placement) map[*corev1.Pod]bool {
	covered := map[*corev1.Pod]bool{}
	for i, shape := range p.Shapes {
		left := p.Helped[i] + p.Left[i]
		if left > 0 { // by parts of a size that keep the rounds few
			left = max(left, len(shape.Pods)/4)
		}
		for _, g := range sc.groups {
			r := sc.state.Groups[g.id].Request
			if r == nil || g.upcoming == 0 || !slices.Contains(r.Pods, shape.Digest) {
				continue
			}
			for _, x := range shape.Pods {
				if left > 0 && !covered[x] && !x.CreationTimestamp.After(r.At.Time) {
					covered[x] = true
					left--
				}
			}
		}
	}
	return covered
}

// choose decides how many Nodes each option adds: what the packing opened, within the cluster's limits, balanced
// between similar groups. It returns the digests of the Pods' shapes that each group's Nodes are for.
func (sc *scan) choose(options []*option) map[*group][]string {
	digests := map[*group]map[string]bool{}
	total := sc.total()
	for _, opening := range sc.placement.Openings {
		best := options[opening.Offer]
		candidates := sc.similar(options, best, opening)
		for range opening.Count {
			o := smallest(candidates)
			if o == nil {
				break
			}
			one := sizeOf(o.template.Node)
			if count, _, _ := sc.room(total, one); count < 1 {
				break
			}
			total = total.plus(one, 1)
			o.more++
			if digests[o.group] == nil {
				digests[o.group] = map[string]bool{}
			}
			for _, h := range opening.Holds {
				sc.helped[h.Item] += h.Count
				digests[o.group][sc.placement.Shapes[h.Item].Digest] = true
			}
		}
	}
	if most := sc.settings.MaxNodesTotal; most > 0 && total.nodes >= most && sum(sc.placement.Left) > 0 {
		sc.tell(&sc.notes, corev1.EventTypeWarning, "MaxNodesTotalReached", fmt.Sprintf("Max total nodes in cluster reached: %d", most))
	}
	out := map[*group][]string{}
	for g, set := range digests {
		out[g] = slices.Sorted(maps.Keys(set))
	}
	return out
}

// grow commits the new size of a group, with the request for its Nodes.
func (sc *scan) grow(o *option, id string, digests []string) {
	sc.tell(&sc.notes, corev1.EventTypeNormal, "ScaledUpGroup",
		fmt.Sprintf("Scale-up: setting group %s size to %d instead of %d (max: %d)", o.id, o.target+o.more, o.target, o.max))
	sc.change(o.group, func(n *autoscaling.NodeGroup) {
		r := autoscaling.Request{At: *sc.now(), Pods: digests}
		if n.Request != nil {
			r.Pods = slices.Compact(slices.Sorted(slices.Values(slices.Concat(digests, n.Request.Pods))))
		}
		n.Request = &r
	})
	sc.resize(o.group, id, o.target+o.more)
}

// announce logs the decision in the words that operators look for (SPEC S59).
func (sc *scan) announce(options []*option) {
	needed := map[int]int{}
	for _, x := range sc.placement.Openings {
		needed[x.Offer] += x.Count
	}
	for _, i := range slices.Sorted(maps.Keys(needed)) {
		sc.notes = append(sc.notes,
			plan.Log("Best option to resize: "+options[i].id),
			plan.Log(fmt.Sprintf("Estimated %d nodes needed in %s", needed[i], options[i].id)))
	}
	sc.notes = append(sc.notes, plan.Log("Final scale-up plan: "+planText(options)))
	if !sc.ranked {
		sc.notes = append(sc.notes, plan.Log(distance(sc.placement)))
	}
	for _, o := range options {
		if o.more > 0 {
			sc.notes = append(sc.notes, plan.Log(fmt.Sprintf("Scale-up: setting group %s size to %d", o.id, o.target+o.more)))
		}
	}
}

// distance says how good the packing is that the plan follows from: how much cheaper another one could be at most.
func distance(p scheduling.Placement) string {
	price, bound := p.Price(), p.Bound()
	if bound <= 0 || price <= bound {
		return "Scale-up: in what the expanders count, no other new nodes for these pods come cheaper"
	}
	return fmt.Sprintf("Scale-up: in what the expanders count, the new nodes are at most %.1f%% above the proven least", 100*(float64(price)/float64(bound)-1))
}

// planText renders the new sizes: [{MachineSet/ns/name 2->3 (max: 3)}].
func planText(options []*option) string {
	var all []string
	for _, o := range options {
		if o.more > 0 {
			all = append(all, fmt.Sprintf("{%s %d->%d (max: %d)}", o.id, o.target, o.target+o.more, o.max))
		}
	}
	return "[" + strings.Join(all, " ") + "]"
}

// tellPods tells Pods that something is done for them, once it is (SPEC C33).
func (sc *scan) tellPods(options []*option) {
	var moves []string
	for _, o := range options {
		if o.more > 0 {
			moves = append(moves, fmt.Sprintf("{%s %d->%d (max: %d)}", o.id, o.target-o.more, o.target, o.max))
		}
	}
	message := "pod triggered scale-up: [" + strings.Join(moves, " ") + "]"
	told := 0
	for i, shape := range sc.placement.Shapes {
		from := sc.placement.Fit[i]
		for _, p := range shape.Pods[from : from+sc.helped[i]] {
			if !waits(p) {
				continue
			}
			if told++; told > maxTold {
				return
			}
			sc.told = append(sc.told, plan.Normal(p, "TriggeredScaleUp", message).From(source))
		}
	}
}

// waits reports that a Pod waits for its first place, unlike those that are about to lose theirs.
func waits(p *corev1.Pod) bool { return p.Spec.NodeName == "" && !stands(p) }

func sum(all []int) (total int) {
	for _, n := range all {
		total += n
	}
	return total
}

// smallest returns the option whose group will have the fewest Machines, among those that can still grow.
func smallest(options []*option) *option {
	var best *option
	for _, o := range options {
		if int(o.more) >= o.offer.Limit {
			continue
		}
		if best == nil || cmp.Or(cmp.Compare(o.target+o.more, best.target+best.more), cmp.Compare(o.id, best.id)) < 0 {
			best = o
		}
	}
	return best
}
