// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// Reasons why a group does not grow, in the words of SPEC C25, C34.
const (
	reasonBackoff  = "in backoff after failed scale-up"
	reasonMax      = "max node group size reached"
	reasonNotReady = "not ready for scale-up"
	reasonNodes    = "max total nodes in cluster reached"
	reasonAll      = "not all pods would fit and scale-up is using all-or-nothing strategy"
)

// no is one group's answer to Pods that ask for Nodes: why not, with the number that stands against it (SPEC W3).
// Without a reason it is no answer.
type no struct{ reason, limit string }

// explain tells Pods that nothing is done for them, with the reason of every group (SPEC C34); those that are worth nothing
// one by one, with what their group of Pods lacks (W12). It says so only in a scan that does not grow anything.
func (sc *scan) explain() {
	refusals := sc.refusals()
	sc.explainHeadroom(refusals)
	var first, more []unhelped
	add := func(pods []*corev1.Pod, why func() string) {
		for i, p := range pods {
			if i == 0 {
				first = append(first, unhelped{p, why})
			} else {
				more = append(more, unhelped{p, why})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(sc.broken)) {
		add(sc.broken[name].pods, sc.broken[name].answer)
	}
	for i, shape := range sc.placement.Shapes {
		from := len(shape.Pods) - sc.placement.Left[i] - sc.placement.Helped[i]
		left := slices.DeleteFunc(slices.Clone(shape.Pods[from:]), func(p *corev1.Pod) bool { return !waits(p) })
		text := ""
		add(left, func() string {
			if text == "" {
				text = counted(sc.answers(i, refusals))
			}
			return text
		})
	}
	sc.bereaved(add)
	sc.tellRefused(add)
	for _, u := range sc.inTurn(first, more) {
		sc.notes = append(sc.notes, plan.Normal(u.pod, "NotTriggerScaleUp", "pod didn't trigger scale-up: "+u.why()).From(source))
	}
}

// unhelped is a Pod that nothing is done for.
type unhelped struct {
	pod *corev1.Pod
	why func() string
}

// turn is how long the same Pods are told, of more than can be told at a time; then it is the next ones' turn.
const turn = time.Minute

// inTurn returns the Pods that this scan tells: of every kind and group one, as far as half of what may be told reaches, then others.
// Whoever is left out has its turn in one of the next minutes, which ones nobody has to remember.
func (sc *scan) inTurn(first, more []unhelped) (all []unhelped) {
	heads := min(len(first), max(maxTold/2, maxTold-len(more)))
	minute := sc.Now.Unix() / int64(turn/time.Second)
	take := func(list []unhelped, n int) {
		for i := range min(n, len(list)) {
			all = append(all, list[(minute*int64(n)+int64(i))%int64(len(list))])
		}
	}
	take(first, heads)
	take(more, maxTold-heads)
	return all
}

// answer is what one group says.
type answer struct {
	group *group
	no
}

// refusals are the answers of the groups that cannot grow, whoever asks.
func (sc *scan) refusals() (all []answer) {
	total := sc.total()
	for _, g := range sc.groups {
		if n := sc.refusal(g, total); n.reason != "" {
			all = append(all, answer{g, n})
		}
	}
	return all
}

// answersOfPlan returns what all groups say to a Pod of a shape that a plan leaves without a place, before it is carried out: those
// that it has Nodes for can have no more.
func (sc *scan) answersOfPlan() func(shape int) string {
	told := map[int]string{}
	return func(shape int) string {
		if told[shape] == "" {
			all := sc.refusedTo(shape, sc.refusing)
			for k, o := range sc.options {
				n := sc.unfit(shape, o.group, sc.placement.Why(shape, k))
				if n.reason == "" {
					n = o.maxed(o.more)
				}
				if n.reason == "" {
					n = sc.limited(o.group, sc.planned)
				}
				n.reason = cmp.Or(n.reason, reasonAmong)
				all = append(all, answer{o.group, n})
			}
			told[shape] = counted(all)
		}
		return told[shape]
	}
}

// answers are what all groups say to the Pods of a shape.
func (sc *scan) answers(shape int, refusals []answer) []answer {
	all := sc.refusedTo(shape, refusals)
	for k, o := range sc.options {
		if slices.ContainsFunc(refusals, func(a answer) bool { return a.group == o.group }) {
			continue // it grew in this scan, and cannot any further
		}
		n := sc.unfit(shape, o.group, sc.placement.Why(shape, k))
		switch {
		case n.reason == "" && sc.full():
			n = no{reasonNodes, "max " + strconv.FormatInt(sc.settings.MaxNodesTotal, 10)}
		case n.reason == "": // an empty Node would take it, its place among the others forbids it
			n.reason = sc.refusedAmong(shape, k)
		}
		all = append(all, answer{o.group, n})
	}
	return all
}

// refusedTo returns what groups that cannot grow say to the Pods of a shape. What none of their Nodes would hold, however many there may be,
// is told that first: who raises a maximum for it, or waits for the end of a backoff, does so in vain. Pods elsewhere come and go.
func (sc *scan) refusedTo(shape int, refusals []answer) []answer {
	all := slices.Clone(refusals)
	for i, a := range all {
		g := a.group
		if !g.known || sc.placement.KeptOut(shape, g.template) {
			continue
		}
		if why := sc.placement.WhyNot(shape, g.template); why != "" {
			all[i].no = sc.unfit(shape, g, why)
		}
	}
	return all
}

// unfit is the reason why an empty new Node of a group takes no Pod of a shape, with what stands against it.
func (sc *scan) unfit(shape int, g *group, why string) no {
	n := no{reason: why}
	resource, short := strings.CutPrefix(n.reason, "Insufficient ")
	switch {
	case n.reason == scheduling.ReasonUseless:
		n.limit = sc.uselessText(g, sc.placement.Shapes[shape].Digest)
	case short:
		n.limit = lacking(corev1.ResourceName(resource), sc.placement.Shapes[shape].Pods[0], g.template)
	}
	return n
}

// lacking says how much of a resource a Pod wants, and how much a new Node has beside what runs on every Node.
func lacking(name corev1.ResourceName, p *corev1.Pod, n scheduling.Node) string {
	wants, has := scheduling.Requests(p)[name], n.Status.Allocatable[name].DeepCopy()
	for _, daemon := range n.Pods {
		has.Sub(scheduling.Requests(daemon)[name])
	}
	if has.Sign() < 0 {
		has = resource.Quantity{}
	}
	return fmt.Sprintf("wants %s, a new node has %s", wants.String(), has.String())
}

// refusal returns why a group cannot grow by even one Node.
func (sc *scan) refusal(g *group, total size) no {
	n := sc.state.Groups[g.id]
	switch {
	case !sc.healthyNow():
		return no{reasonNotReady, fmt.Sprintf("the cluster is unhealthy, %d of %d nodes are unready", sc.unready, len(sc.Nodes))}
	case sc.backedOff(g):
		return no{reasonBackoff, backoffText(n)}
	case g.target >= g.max:
		return g.maxed(0)
	case g.ill():
		return no{reasonNotReady, fmt.Sprintf("%d of %d nodes are unready", g.unready+g.fallen, g.target)}
	case !g.known:
		return no{reasonNotReady, "the size of its nodes is not known"}
	case g.surplus(): // what it is about to lose is not known yet (SPEC C46)
		return no{reasonNotReady, fmt.Sprintf("it is shrinking to %d", g.target)}
	case sc.newerLedger(g) && inVain(n): // whom it lacks nobody knows, so that nothing of it is ever taken back
		return no{reasonNotReady, newerVersion + ", and what it was asked for did not come"}
	}
	limited := sc.limited(g, total)
	if limited.reason == "" && pendingResize(g, n) && !sc.asking {
		return beingResized(*n.Resize)
	}
	if why := sc.unwritable(g); limited.reason == "" && why != "" {
		return no{reasonNotReady, why}
	}
	return limited
}

func beingResized(r autoscaling.Resize) no {
	return no{reasonNotReady, fmt.Sprintf("it is being resized to %d", r.To)}
}

// shrinkTime is how long others wait for a set to be made smaller. Where that has no answer, the next scan waits no more.
const shrinkTime = 5 * time.Second

// shrinking reports that a group does not grow for no other reason than that it was decided a moment ago to make it smaller. Once that is
// carried out the next look follows at once, and has its Nodes to choose from.
func (sc *scan) shrinking() bool {
	return slices.ContainsFunc(sc.refusing, func(a answer) bool {
		r := sc.state.Groups[a.group.id].Resize
		return r != nil && a.no == beingResized(*r) && sc.Now.Before(r.At.Add(shrinkTime))
	})
}

// inVain reports that what a group was asked for did not come: a Machine was not made in time, or one that was brought no Node, as far as
// that is remembered.
func inVain(n autoscaling.NodeGroup) bool {
	return n.Request != nil && n.Request.TimedOut || n.LastFailure != nil && len(n.FailedUIDs) > 0
}

// maxed is the answer of a group that may have no Node beside so many more than it has. Machines that have none, and are not given up, hold
// places all the same: that is told, as it may be for ever.
func (g *group) maxed(more int32) no {
	if g.target+more < g.max {
		return no{}
	}
	limit := fmt.Sprintf("%d of %d", g.target+more, g.max)
	if n := g.failed + g.late; n > 0 {
		limit += fmt.Sprintf(", %d of them without a node", n)
	}
	if g.gone > 0 {
		limit += fmt.Sprintf(", %d without an instance", g.gone)
	}
	return no{reasonMax, limit}
}

// limited is the answer of a group that limits of a cluster of a size leave no Node.
func (sc *scan) limited(g *group, total size) no {
	one := sc.sizeOf(g.template.Node)
	_, nodes, resources := sc.room(total, one)
	switch {
	case nodes:
		return no{reasonNodes, fmt.Sprintf("%d of %d", total.nodes, sc.settings.MaxNodesTotal)}
	case len(resources) > 0:
		return no{quota(resources), sc.overQuota(total, one)}
	}
	return no{}
}

// backoffText says until when a group is left alone, with the reason: it does not change while that is so.
func backoffText(n autoscaling.NodeGroup) string {
	return "until " + machine.Stamp(n.BackoffUntil.Time) + ": " + clip(n.Reason)
}

// counted renders reasons with how many groups gave each, the most frequent first, and what stands against each group.
func counted(all []answer) string {
	if len(all) == 0 {
		return "no node group can be resized"
	}
	byReason := map[string][]answer{}
	for _, a := range all {
		byReason[a.reason] = append(byReason[a.reason], a)
	}
	keys := slices.SortedFunc(maps.Keys(byReason), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(byReason[b]), len(byReason[a])), cmp.Compare(a, b))
	})
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = fmt.Sprintf("%d %s%s", len(byReason[k]), k, limitsOf(byReason[k]))
	}
	return strings.Join(parts, ", ")
}

// maxNamed bounds the groups that one reason names: an Event has room for a thousand characters.
const maxNamed = 3

// limitsOf names the groups of one reason with what stands against each; groups with the same limit share it.
func limitsOf(all []answer) string {
	byLimit := map[string][]string{}
	var limits []string
	for _, a := range all {
		if a.limit == "" {
			continue
		}
		if byLimit[a.limit] == nil {
			limits = append(limits, a.limit)
		}
		byLimit[a.limit] = append(byLimit[a.limit], a.group.set.Name)
	}
	if len(limits) == 0 {
		return ""
	}
	var parts []string
	for _, l := range limits[:min(len(limits), maxNamed)] {
		names := byLimit[l]
		if len(names) > maxNamed {
			names = append(slices.Clone(names[:maxNamed]), fmt.Sprintf("%d more", len(names)-maxNamed))
		}
		parts = append(parts, strings.Join(names, " ")+": "+l)
	}
	if len(limits) > maxNamed {
		parts = append(parts, "…")
	}
	return " (" + strings.Join(parts, "; ") + ")"
}

// clip bounds a text that somebody else wrote.
func clip(text string) string {
	const longest = 200
	return strings.ToValidUTF8(text[:min(len(text), longest)], "")
}
