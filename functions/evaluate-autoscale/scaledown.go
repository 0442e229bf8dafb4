// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

const (
	maxRemovals = 10     // Nodes that may be on their way out at a time, of which
	maxDrains   = 1      // this many with Pods that have to move (SPEC C61)
	recheckTime = "5m0s" // as operators know the line (SPEC S62); here every scan looks anew
)

// candidate is a Node that could go.
type candidate struct {
	place int // in the world
	node  *corev1.Node
	group *group
	own   []*corev1.Pod // that run there, or are to, and have to leave
	pods  []*corev1.Pod // that have to find another place: these, and whoever counts on room there
	drain bool          // some Pod has to leave
	stuck string        // the reason of the first Pod that must not be moved
	use   scheduling.Utilization
	since time.Time // unneeded, as far as known
	ready bool
	sick  bool  // its health check may have it replaced soon
	first bool  // it is sick, and its time has come
	kept  bool  // by a minimum, or by a ledger that cannot be read, whoever needs it
	price int64 // while some Node is being replaced, else 0
}

// scaleDown finds the Nodes that nobody needs, keeps the time since when, and begins to remove those whose time has
// come. While the cluster cools down from something else, the times still run (SPEC C53).
func (sc *scan) scaleDown() {
	if !sc.settings.ScaleDownEnabled {
		sc.state.Unneeded = nil
		sc.softTaint(nil)
		return
	}
	sc.occupy()
	sc.beginAnew()
	r := sc.shrinkable()
	unneeded := sc.findUnneeded(r)
	timers := map[types.UID]metav1.Time{}
	for _, c := range unneeded {
		timers[c.node.UID] = metav1.NewTime(c.since)
	}
	for _, r := range sc.state.Removals {
		if since, ok := sc.state.Unneeded[r.NodeUID]; ok && r.Committed == nil {
			timers[r.NodeUID] = since
		}
	}
	sc.state.Unneeded = timers
	if len(timers) == 0 {
		sc.state.Unneeded = nil
	}
	sc.beginRemovals(unneeded, r)
	sc.repack(sc.used, slices.DeleteFunc(slices.Clone(unneeded), func(c candidate) bool { return c.kept || sc.least(c, r) != "" }))
	sc.softTaint(unneeded)
}

// dropTimer makes a Node start anew.
func (sc *scan) dropTimer(uid types.UID) {
	rest := map[types.UID]metav1.Time{}
	for k, v := range sc.state.Unneeded {
		if k != uid {
			rest[k] = v
		}
	}
	sc.state.Unneeded = rest
}

// findUnneeded returns the Nodes that could all go together, in the order in which they would: those that are sick, to which no
// Pods move, come first once they may go, then those that were unneeded before, so that times are not lost to the order, then empty ones (SPEC C54–C57). Those that minimums
// keep, or ledgers of a newer version, come last: a Node that cannot go anyway takes no place that another one needs to go.
func (sc *scan) findUnneeded(r room) (unneeded []candidate) {
	all, others := sc.candidates(r)
	destinations := append(make([]int, 0, len(others)+len(all)), others...)
	pods := make(map[int][]*corev1.Pod, len(all))
	for _, c := range slices.Backward(all) {
		if !c.sick {
			destinations = append(destinations, c.place)
		}
	}
	for _, c := range all {
		pods[c.place] = c.pods
	}
	mover := sc.promised.NewMover(pods, destinations)
	left := sc.budgets()
	unneeded = make([]candidate, 0, len(all))
	unremovable := 0
	for _, c := range all {
		if why := sc.unmovable(c, mover, left); why != "" {
			sc.because(c.node, why)
			if strings.HasPrefix(why, noPlace) {
				sc.used = append(sc.used, c)
			}
			unremovable++
			continue
		}
		left.spend(sc, sc.evicted(c))
		if c.since.IsZero() {
			c.since = sc.now().Time
		}
		unneeded = append(unneeded, c)
	}
	if changed := len(unneeded) != len(sc.state.Unneeded); changed && unremovable > 0 {
		sc.notes = append(sc.notes, plan.Log(fmt.Sprintf("Scale-down calculation: ignoring %d nodes unremovable in the last %s", unremovable, recheckTime)))
	}
	return unneeded
}

// unmovable returns why the Pods of a candidate cannot all move elsewhere; if they can, their places are taken.
func (sc *scan) unmovable(c candidate, mover *scheduling.Mover, left budgets) string {
	if c.stuck != "" {
		return c.stuck
	}
	if mover.Taken(c.place) {
		return whyOther + "pods of other nodes are to move here"
	}
	if why := left.short(sc, sc.evicted(c)); why != "" {
		return why
	}
	if why := mover.Clear(c.place, c.pods); why != "" {
		return noPlace + why
	}
	return ""
}

// candidates returns the Nodes that are used little enough, in the order in which they are tried, and the places of
// all other Nodes that Pods may move to, the fullest first.
func (sc *scan) candidates(r room) (all []candidate, others []int) {
	use, sick := make([]scheduling.Utilization, len(sc.places)), sc.sick()
	repacks := clusterAutoscaler(sc.Snapshot).Annotations[autoscaling.RepackAnnotation] != ""
	for i, p := range sc.places {
		if p.fresh {
			continue
		}
		if sc.retired[p.node.UID] {
			sc.because(p.node, whyOther+itselfChosen)
			continue
		}
		use[i] = sc.utilization(i)
		c := candidate{place: i, node: p.node, group: p.group, use: use[i], ready: sc.ready(p.node)}
		if why, may := sc.mayGo(c); !may {
			if why != "" {
				sc.because(c.node, why)
			}
			if !sick[p.node.UID] {
				others = append(others, i)
			}
			if repacks && c.group != nil && why != "" && sc.barred[c.node.UID] == "" {
				c.own, c.pods = sc.moves(i)
				sc.used = append(sc.used, c)
			}
			continue
		}
		c.own, c.pods = sc.moves(i)
		c.drain, c.price = sc.occupied(p.node), sc.dearness(c.group)
		c.stuck = sc.stuck(c) // while its Pods are at hand
		if since, ok := sc.state.Unneeded[p.node.UID]; ok {
			c.since = since.Time
		}
		c.kept, c.sick = sc.least(c, r) != "" || sc.newerLedger(c.group), sick[p.node.UID]
		c.first = c.sick && sc.mayGoNow(c, r)
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(truth(sc.replaced(b.node)), truth(sc.replaced(a.node))), // what it is replaced by must not go before it
			cmp.Compare(truth(a.kept), truth(b.kept)), cmp.Compare(truth(b.first), truth(a.first)), cmp.Compare(b.price, a.price), compareSince(a.since, b.since), cmp.Compare(truth(len(a.pods) > 0), truth(len(b.pods) > 0)),
			cmp.Compare(a.use.Max, b.use.Max), cmp.Compare(a.node.Name, b.node.Name))
	})
	slices.SortFunc(others, func(a, b int) int {
		return cmp.Or(cmp.Compare(use[b].Max, use[a].Max), cmp.Compare(sc.places[a].node.Name, sc.places[b].node.Name))
	})
	return all, others
}

// compareSince puts the longest known first, the unknown last.
func compareSince(a, b time.Time) int {
	if a.IsZero() || b.IsZero() {
		return cmp.Compare(truth(a.IsZero()), truth(b.IsZero()))
	}
	return a.Compare(b)
}

func truth(b bool) int {
	if b {
		return 1
	}
	return 0
}

// utilization is how much of a Node is used. Where its GPUs alone would count and it has lost them, nothing is (SPEC C55).
func (sc *scan) utilization(place int) scheduling.Utilization {
	n := sc.places[place].node
	if gpu, lost := sc.lostGPU(n); lost && !sc.starting(n) {
		return scheduling.Utilization{Resource: gpu}
	}
	left := func(p *corev1.Pod) bool {
		return p.DeletionTimestamp != nil && !sc.Now.Before(p.DeletionTimestamp.Add(pastGrace))
	}
	if !sc.settings.IgnoreDaemonSetsUtilization && !sc.leavers[n.Name] {
		return sc.promised.Utilization(place, nil, nil)
	}
	daemons := func(p *corev1.Pod) bool { return sc.settings.IgnoreDaemonSetsUtilization && scheduling.OfDaemonSet(p) }
	return sc.promised.Utilization(place, func(p *corev1.Pod) bool { return !left(p) && !daemons(p) }, daemons)
}

// mayGo reports whether a Node is looked at for scale-down at all (SPEC C54), and if not, why; a Node that is starting
// or leaving has no reason of its own.
func (sc *scan) mayGo(c candidate) (why string, may bool) {
	switch {
	case c.group == nil:
		return whyNotAutoscaled, false
	case sc.leaves(c.node), !c.ready && sc.starting(c.node):
		return "", false
	case sc.barred[c.node.UID] != "":
		return sc.barred[c.node.UID], false
	case c.use.Max > 0 && c.use.Max >= sc.threshold(c) && !sc.replaced(c.node): // with a threshold of 0 what is empty goes
		return sc.notUnderutilized(c), false
	}
	return "", true
}

// moves returns the Pods that have to leave a place if its Node goes, and all that have to find another one then.
func (sc *scan) moves(i int) (own, all []*corev1.Pod) {
	own = sc.toMove(sc.places[i].node)
	next := sc.succeeded(sc.places[i].node)
	if len(sc.reserved[i]) == 0 && len(next) == 0 {
		return own, own
	}
	return own, slices.Concat(own, next, sc.reserved[i])
}

// stuck returns the reason of the first Pod that must not be moved, or that leaves and would hold the removal up.
func (sc *scan) stuck(c candidate) string {
	for _, p := range c.own {
		if why := sc.blocks(p); why != "" {
			return blockedBy(p, why)
		}
	}
	if !sc.leavers[c.node.Name] { // as nearly always
		return ""
	}
	for _, p := range sc.remaining(c.node) {
		if why := outlasts(p, sc.Now, sc.settings.MaxPodGracePeriod); why != "" {
			return blockedBy(p, why)
		}
	}
	return ""
}

// halted returns why nothing is removed in this scan, whatever is unneeded.
func (sc *scan) halted() string {
	switch cooling := sc.coolingDown(); {
	case sc.doubt:
		return whyOther + "the lists of nodes and pods lost half of what they held"
	case cooling != "":
		return whyOther + cooling
	case sc.young:
		return whyOther + "new pods wait"
	case sc.resizing:
		return whyOther + "the cluster grows"
	case sc.tooManyUnready():
		return whyOther + outage
	}
	return ""
}

// coolingDown returns what happened too lately for scale-down, and until when it waits (SPEC C53).
func (sc *scan) coolingDown() string {
	for _, x := range []struct {
		last  *metav1.Time
		delay time.Duration
		after string
	}{
		{sc.state.ScaledUp(), sc.settings.DelayAfterAdd, "scale-up"},
		{sc.state.LastScaleDown, sc.settings.DelayAfterDelete, "scale-down"},
		{sc.state.LastFailure, sc.settings.DelayAfterFailure, "failed scale-down"},
	} {
		if x.last != nil && sc.Now.Before(x.last.Add(x.delay)) {
			return "cooling down after a " + x.after + " until " + machine.Stamp(x.last.Add(x.delay))
		}
	}
	return ""
}

// outage is told when so many Nodes are not ready that no Node is removed.
const outage = "a third of the nodes are unready"

// tooManyUnready is the brake of scale-down: a third of the Nodes, and three at least, is an outage, not idleness
// (RELIABILITY 2d). It holds wherever the whole cluster is unhealthy (SPEC C3).
func (sc *scan) tooManyUnready() bool {
	n := sc.unready
	return n >= toleratedUnready && 3*n >= len(sc.Nodes)
}

// beginRemovals starts to remove Nodes that have been unneeded for long enough, as far as their groups, the cluster's
// minimums and the number of removals at a time allow (SPEC C58, C61). Empty ones come first. Nothing begins while
// scale-down is halted.
func (sc *scan) beginRemovals(unneeded []candidate, r room) {
	if sc.budget == nil {
		sc.budget = sc.readBudget()
	}
	slices.SortStableFunc(unneeded, func(a, b candidate) int { return cmp.Compare(truth(a.drain), truth(b.drain)) })
	for i, c := range unneeded {
		why := sc.held(c, r)
		if why == "" {
			sc.evenOut(unneeded[i:], r)
			c = unneeded[i]
		}
		if why == "" && !sc.begin(c) {
			why = whyOther + sc.noSlot()
			r.halted = why
		}
		if why != "" {
			sc.because(c.node, why)
			continue
		}
		r.staying = r.staying.plus(sc.sizeOf(c.node), -1)
		r.less[c.group]++
		r.removals--
		r.drains -= truth(c.drain)
	}
}

// down begins the ids of plans that remove a Node, which its taint names.
const down = "down"

// begin writes the plan to remove a Node and taints it, if the cluster's budget has a slot. Nothing is evicted here.
func (sc *scan) begin(c candidate) bool {
	r := autoscaling.Removal{
		Plan: sc.planID(down, string(c.node.UID)), Group: c.group.id, Node: c.node.Name, NodeUID: c.node.UID,
		At: *sc.now(), Fresh: true, Drain: c.drain, MaxGrace: int64(sc.settings.MaxPodGracePeriod / time.Second),
	}
	for _, m := range c.group.members {
		if m.node == c.node {
			r.Machine, r.MachineUID = m.machine.Name, m.machine.UID
		}
	}
	if !sc.budget.take(sc, r, c.group.set.Namespace) {
		return false
	}
	sc.state.Removals = append(sc.state.Removals, r)
	reason, message := "ScaleDownEmpty", fmt.Sprintf("Scale-down: removing empty node %q", c.node.Name)
	if c.drain {
		reason = "ScaleDown"
		message = fmt.Sprintf("Scale-down: removing node %s, utilization: %v, pods to reschedule: %s", c.node.Name, c.use, reschedule(c.own))
	}
	sc.tell(&sc.notes, corev1.EventTypeNormal, reason, message)
	sc.notes = append(sc.notes, plan.Normal(c.node, "ScaleDown", "marked the node as toBeDeleted/unschedulable").From(source))
	sc.taint(r, c.node)
	return true
}

// reschedule names Pods as Events list them.
func reschedule(pods []*corev1.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return strings.Join(names, ",")
}
