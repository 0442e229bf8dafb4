// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// maxTold bounds the Pods of one scan that are told what is done for them, each by an Event of its own.
const maxTold = 100

// option is a group that can grow, with what became of the Pods.
type option struct {
	*group
	offer scheduling.Offer
	room  int     // Nodes that the group and the limits of the cluster leave for it alone
	score []int64 // by priority and by price, as far as expanders ask for them
	rank  int64   // by priority, where that decides before a price
	more  int32   // Nodes to add
	rest  int     // Nodes that the plan has for it and that are not dealt out yet
}

// scaleUp gives Pods that do not fit the Nodes that they need, of all groups at once, and reports whether it tried.
func (sc *scan) scaleUp() bool {
	if sc.unsettled && !sc.asking { // the set that is being resized cannot take its share now: the next look can
		sc.resizing = true
		return true
	}
	if sc.young = !sc.asking && sc.allYoung(); sc.young {
		sc.notes = append(sc.notes, plan.Log("Unschedulable pods are very new, waiting one iteration for more"))
		return true
	}
	sc.options = sc.growing()
	options := sc.options
	served := sc.cheapen(options, sc.plan(options))
	if len(served) > 0 && sc.shrinking() { // nor can one that is just being made smaller
		sc.unsettled, sc.resizing = true, true
		return true
	}
	if most := sc.settings.MaxNodesTotal; most > 0 && sc.planned.nodes >= most && sum(sc.placement.Left) > 0 {
		sc.tell(&sc.notes, corev1.EventTypeWarning, "MaxNodesTotalReached", fmt.Sprintf("Max total nodes in cluster reached: %d", most))
	}
	sc.withdraw()
	if sc.onTheWay > 0 {
		sc.notes = append(sc.notes, plan.Log(fmt.Sprintf("%d pods wait for nodes that were asked for earlier", sc.onTheWay)))
	}
	if slices.ContainsFunc(sc.waiting, waits) && len(sc.placement.Openings) == 0 && sum(sc.placement.Left) == 0 && len(sc.broken) == 0 {
		sc.notes = append(sc.notes, plan.Log("No unschedulable pods"))
	}
	if len(served) == 0 {
		return false
	}
	sc.resizing = true
	sc.announce(options)
	id := sc.planID(growth, planText(options))
	for _, o := range options {
		if o.more > 0 {
			sc.grow(o, id, sc.together(served[o.group]))
		}
	}
	sc.tellPods(options)
	return true
}

// plan places the Pods and decides how many Nodes each option adds for them. Groups of Pods that would be torn apart are
// left out, and the rest is planned anew; those of them that have a place beside the rest come back.
func (sc *scan) plan(options []*option) map[*group][]*corev1.Pod {
	try := sc.trying
	sc.counted = sc.countedOn()
	sc.broken = sc.incomplete()
	var out []tornGroup
	for {
		served := sc.attempt(options)
		if learnt, told := sc.judge(options); learnt {
			sc.notes = append(sc.notes, told...)
			continue
		}
		if sc.full() && !try {
			return nil
		}
		torn := sc.torn()
		if len(torn) == 0 && len(out) == 0 {
			return served
		}
		if len(torn) == 0 {
			return sc.putBack(options, out, try)
		}
		for _, t := range torn {
			if sc.leaveOut(t) {
				out = append(out, t)
			}
		}
		sc.trying = try || len(out) > 0
	}
}

// Pods that came together are helped together: while all that wait are this new, one scan is let pass (SPEC C6).
const (
	youngAge    = 2 * time.Second
	youngGPUAge = 30 * time.Second
)

// allYoung reports that Pods wait for their first place, and each of them is very new, as GPUs are for longer (SPEC C6). None is that a clock
// which was ahead made (RELIABILITY G7).
func (sc *scan) allYoung() (young bool) {
	for _, p := range sc.waiting {
		if !waits(p) {
			continue
		}
		at, age := p.CreationTimestamp.Time, youngAge
		if sc.gpus.AskedBy(p) {
			age = youngGPUAge
		}
		if !sc.Now.Before(at.Add(age)) || machine.TooFar(at, sc.Now, 0) {
			return false
		}
		young = true
	}
	return young
}

// growing returns the groups that can grow. Those that cannot say why when Pods ask (SPEC C25).
func (sc *scan) growing() (all []*option) {
	total := sc.total()
	for _, g := range sc.groups {
		if n := sc.refusal(g, total); n.reason != "" {
			sc.refusing = append(sc.refusing, answer{g, n})
			continue
		}
		one := sc.sizeOf(g.template.Node)
		count, _, _ := sc.room(total, one)
		room := int(min(int64(g.max-g.target), count))
		node := g.template
		node.Useless = sc.useless(g)
		all = append(all, &option{group: g, room: room, offer: scheduling.Offer{Name: g.id, Node: node, Limit: room, Weight: sc.weight(total, one)}})
	}
	if len(sc.waiting) > 0 {
		sc.expand(all)
	}
	return all
}

// place finds places for the waiting Pods. Those that were counted on when Nodes were asked for wait for these Nodes: they
// fitted then, whatever another packing makes of it (RELIABILITY 2d). Where it leaves one of them over, the others are
// packed beside them, or they would have the room that these were promised, and bring no Nodes.
func (sc *scan) place(options []*option) scheduling.Placement {
	offers := make([]scheduling.Offer, len(options))
	for i, o := range options {
		offers[i] = o.offer
	}
	sc.packed = sc.waiting
	if len(sc.broken) > 0 {
		out := map[*corev1.Pod]bool{}
		for _, b := range sc.broken {
			for _, x := range b.pods {
				out[x] = true
			}
		}
		sc.packed = slices.DeleteFunc(slices.Clone(sc.waiting), func(x *corev1.Pod) bool { return out[x] })
	}
	sc.onTheWay, sc.kept = 0, nil
	p := sc.fit(sc.world, sc.packed, offers)
	if !sc.displaced(p) {
		return p
	}
	return sc.placeBeside(offers)
}

// fit packs Pods into a world, and counts the work.
func (sc *scan) fit(world *scheduling.World, pods []*corev1.Pod, offers []scheduling.Offer) scheduling.Placement {
	place := world.Place
	if sc.trying {
		place = world.Try
	}
	p := place(pods, offers)
	sc.work += p.Work + stepsOfPod*len(sc.waiting)
	return p
}

// choose decides how many Nodes each option adds: what the limits leave of what the packing opened, balanced between
// similar groups, those last that have the most to choose from. Balance leaves every group the room, and the cluster the
// limits, that the rest of the plan needs. It returns the Pods that each group's Nodes are for, and whether the limits cut the plan short.
func (sc *scan) choose(options []*option) (served map[*group][]*corev1.Pod, cut bool) {
	served = map[*group][]*corev1.Pod{}
	openings, total, cut := sc.afforded(options)
	type choice struct {
		scheduling.Opening
		among []*option
	}
	var choices []choice
	alike := make([][]int, len(options)) // by offer, once one is opened
	for _, opening := range openings {
		if alike[opening.Offer] == nil {
			alike[opening.Offer] = sc.similar(options, opening.Offer)
		}
		choices = append(choices, choice{opening, sc.taking(options, alike[opening.Offer], opening)})
	}
	slices.SortStableFunc(choices, func(a, b choice) int { return cmp.Compare(len(a.among), len(b.among)) })
	for _, opening := range choices {
		best := options[opening.Offer]
		for range opening.Count {
			best.rest--
			others := total.plus(sc.sizeOf(best.template.Node), -1)
			o := smallest(best, opening.among, func(o *option) bool {
				count, _, _ := sc.room(others, sc.sizeOf(o.template.Node))
				return count > 0
			})
			total = others.plus(sc.sizeOf(o.template.Node), 1)
			o.more++
			for _, h := range opening.Holds {
				served[o.group] = append(served[o.group], sc.serve(h.Item, h.Count)...)
			}
		}
	}
	sc.planned = total
	return served, cut
}

// afforded returns what the packing opened, the first of it first, as far as the cluster's limits leave room for it; what
// the cluster is then; and whether they cut it short.
func (sc *scan) afforded(options []*option) (openings []scheduling.Opening, total size, cut bool) {
	for _, o := range options {
		o.rest = 0
	}
	openings, total = sc.openings(options), sc.total()
	for i := range openings {
		o := options[openings[i].Offer]
		one := sc.sizeOf(o.template.Node)
		if count, _, _ := sc.room(total, one); count < int64(openings[i].Count) {
			openings[i].Count, cut = int(count), true
		}
		o.rest += openings[i].Count
		total = total.plus(one, int64(openings[i].Count))
	}
	return openings, total, cut
}

// openings returns what the packing opened, those first that come first where there may be fewer: of those for Pods that are as important,
// what a priority of groups puts first (SPEC B113).
func (sc *scan) openings(options []*option) []scheduling.Opening {
	highest := func(x scheduling.Opening) int32 {
		rank := int32(math.MinInt32)
		for _, h := range x.Holds {
			rank = max(rank, corev1helpers.PodPriority(sc.placement.Shapes[h.Item].Pods[0]))
		}
		return rank
	}
	all := slices.Clone(sc.placement.Openings)
	slices.SortStableFunc(all, func(a, b scheduling.Opening) int {
		return cmp.Or(cmp.Compare(highest(b), highest(a)), cmp.Compare(options[a.Offer].rank, options[b.Offer].rank))
	})
	return all
}

// serve notes that so many more Pods of a shape get new Nodes, and returns them. The first time it returns the ones that
// fit elsewhere as well: the plan counts on their places, too.
func (sc *scan) serve(shape, count int) []*corev1.Pod {
	from := sc.placement.Fit[shape] + sc.helped[shape]
	to := from + count
	if sc.helped[shape] == 0 {
		from = 0
	}
	sc.helped[shape] += count
	return sc.placement.Shapes[shape].Pods[from:to]
}

// grow commits the new size of a group, with the request for its Nodes and the Pods that are counted on.
func (sc *scan) grow(o *option, id string, served []*corev1.Pod) {
	sc.tell(&sc.notes, corev1.EventTypeNormal, "ScaledUpGroup",
		fmt.Sprintf("Scale-up: setting group %s size to %d instead of %d (max: %d)", o.id, o.target+o.more, o.target, o.max))
	sc.change(o.group, func(n *autoscaling.NodeGroup) {
		n.Request = &autoscaling.Request{At: *sc.now()}
		n.Waves = append(slices.Clone(n.Waves), sc.wave(o.target+o.more, served))
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
	if !sc.ranked && !sc.saves {
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
	switch {
	case price <= bound:
		return "Scale-up: in what the expanders count, no other new nodes for these pods come cheaper"
	case bound <= 0:
		return "Scale-up: how much cheaper other new nodes for these pods could be is not known"
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

// smallest returns the option whose group will have the fewest Machines: the one that the packing chose, or another one that
// may grow, beyond what the packing still has for it.
func smallest(chosen *option, options []*option, may func(*option) bool) *option {
	best := chosen
	for _, o := range options {
		if o == chosen || int(o.more)+o.rest >= o.offer.Limit {
			continue
		}
		if cmp.Or(cmp.Compare(o.target+o.more, best.target+best.more), cmp.Compare(o.id, best.id)) < 0 && may(o) {
			best = o
		}
	}
	return best
}
