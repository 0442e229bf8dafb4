// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// A template may promise what no new Node keeps: somebody labeled one Node by hand, a zone is drawn by lot, an agent
// brings what it is made from. Then a Node comes for Pods that it cannot hold, goes because nobody needs it, and the next
// one comes. Whoever compares what came with what was promised notices, and lets the set be for these Pods (SPEC C9).

const (
	firstUseless   = time.Hour // doubled each time: a Node that helps nobody is paid for until it is idle for long enough
	longestUseless = 24 * time.Hour
	uselessMemory  = 24 * time.Hour // after that
	maxUseless     = 20             // shapes of one group
)

// arrival is a wave whose Nodes are there.
type arrival struct {
	group *group
	wave  autoscaling.Wave
}

// useless returns the shapes that a group brings no Nodes for at present.
func (sc *scan) useless(g *group) map[string]bool {
	var all map[string]bool
	for _, u := range sc.state.Groups[g.id].Useless {
		if sc.Now.Before(u.Until.Time) {
			if all == nil {
				all = map[string]bool{}
			}
			all[u.Shape] = true
		}
	}
	return all
}

// forgetUseless forgets what is long past, or was said of other Machines than the set makes now.
func (sc *scan) forgetUseless(g *group) {
	if len(sc.state.Groups[g.id].Useless) == 0 {
		return
	}
	of := scheduling.MadeOf(g.set)
	sc.changeUseless(g, func(all []autoscaling.Useless) []autoscaling.Useless {
		return slices.DeleteFunc(all, func(u autoscaling.Useless) bool { return u.Of != of || !sc.Now.Before(u.Until.Add(uselessMemory)) })
	})
}

func (sc *scan) changeUseless(g *group, f func([]autoscaling.Useless) []autoscaling.Useless) {
	sc.change(g, func(n *autoscaling.NodeGroup) {
		n.Useless = f(slices.Clone(n.Useless))
		slices.SortFunc(n.Useless, func(a, b autoscaling.Useless) int { return cmp.Compare(a.Shape, b.Shape) })
		if len(n.Useless) == 0 {
			n.Useless = nil
		}
	})
}

// judge looks at the Nodes that came since the last scan, and at those that were found useless and may have changed
// meanwhile. What came is remembered although it may be what the template is made from by now: once it has gone, with the Pods that came to
// it, not all of that is known any more. If it learnt something, the options know it, the notes tell it, and the plan is to be made anew.
func (sc *scan) judge(options []*option) (learnt bool, notes []plan.Note) {
	arrived := sc.arrived
	sc.arrived = nil
	for _, g := range sc.groups { // also of those that cannot grow further at present
		if !g.known || len(arrived) == 0 && len(sc.state.Groups[g.id].Useless) == 0 {
			continue
		}
		for i, shape := range sc.placement.Shapes {
			if sc.placement.Helped[i]+sc.placement.Left[i] == 0 {
				continue
			}
			if sc.redeemed(g, i) {
				learnt = true
				continue
			}
			n := cameFor(sc, arrived, g, shape)
			if n == nil || sc.placement.KeptOut(i, g.template) { // as by the Pod that came to it instead: that is not the Node's fault
				continue
			}
			if why := sc.placement.WhyNot(i, sc.like(g, n)); why != "" {
				learnt = true
				u := sc.foundUseless(g, shape.Digest, n, why)
				sc.tell(&notes, corev1.EventTypeWarning, "NodeDidNotHelp", fmt.Sprintf(
					"Node %s of group %s came for pods like %s/%s and cannot hold them: %s; the group brings no other one for them until %s",
					n.Name, g.id, shape.Pods[0].Namespace, shape.Pods[0].Name, why, machine.Stamp(u.Until.Time)))
			}
		}
	}
	for _, o := range options {
		o.offer.Node.Useless = sc.useless(o.group)
	}
	return learnt, notes
}

// like is a Node of a group as it is to those that are to come: empty. A Pod of a DaemonSet that did not come to it takes its room there,
// and is nobody's company.
func (sc *scan) like(g *group, n *corev1.Node) scheduling.Node {
	like := sc.templates().Like(g.set, scheduling.Node{Node: n, Pods: sc.running[n.Name]})
	for i, p := range like.Pods {
		selector := labels.SelectorFromSet(p.Labels)
		came := func(x *corev1.Pod) bool { return x.Namespace == p.Namespace && selector.Matches(labels.Set(x.Labels)) }
		if len(p.Labels) > 0 && !slices.ContainsFunc(sc.running[n.Name], came) {
			absent := *p
			absent.Labels = nil
			like.Pods[i] = &absent
		}
	}
	return like
}

// cameFor returns the youngest Node of a group that came in a wave for some of a shape's Pods; nil if none did.
func cameFor(sc *scan, arrived []arrival, g *group, shape scheduling.Shape) (youngest *corev1.Node) {
	for _, a := range arrived {
		marks := autoscaling.Marks{}
		if a.group != g {
			continue
		}
		marks.AddText(a.wave.Pods)
		if !slices.ContainsFunc(shape.Pods, marks.Has) {
			continue
		}
		for _, m := range g.members {
			came := m.node != nil && !m.leaving && !m.node.CreationTimestamp.Time.Before(a.wave.At.Time) && sc.ready(m.node) && scheduling.Settled(m.node, sc.Now)
			if came && (youngest == nil || youngest.CreationTimestamp.Time.Before(m.node.CreationTimestamp.Time)) {
				youngest = m.node
			}
		}
	}
	return youngest
}

// foundUseless remembers that a Node came for Pods of a shape and cannot hold them.
func (sc *scan) foundUseless(g *group, shape string, n *corev1.Node, why string) autoscaling.Useless {
	u := autoscaling.Useless{Shape: shape, Of: scheduling.MadeOf(g.set), Node: n.Name, NodeUID: n.UID, Reason: clip(why), Times: 1}
	sc.changeUseless(g, func(all []autoscaling.Useless) []autoscaling.Useless {
		if i := slices.IndexFunc(all, func(x autoscaling.Useless) bool { return x.Shape == shape }); i >= 0 {
			u.Times = all[i].Times + 1
			all = slices.Delete(all, i, i+1)
		}
		if len(all) >= maxUseless {
			oldest := slices.MinFunc(all, func(a, b autoscaling.Useless) int { return a.Until.Compare(b.Until.Time) })
			all = slices.DeleteFunc(all, func(x autoscaling.Useless) bool { return x.Shape == oldest.Shape })
		}
		u.Until = *sc.now()
		u.Until.Time = u.Until.Add(min(firstUseless<<min(u.Times-1, 8), longestUseless))
		return append(all, u)
	})
	return u
}

// redeemed forgets that a Node was found useless for a shape, if it could hold such Pods now: what it lacked came late.
func (sc *scan) redeemed(g *group, shape int) bool {
	digest := sc.placement.Shapes[shape].Digest
	i := slices.IndexFunc(sc.state.Groups[g.id].Useless, func(u autoscaling.Useless) bool { return u.Shape == digest })
	if i < 0 {
		return false
	}
	n := sc.nodes[sc.state.Groups[g.id].Useless[i].NodeUID]
	if n == nil || sc.placement.WhyNot(shape, sc.like(g, n)) != "" {
		return false
	}
	sc.changeUseless(g, func(all []autoscaling.Useless) []autoscaling.Useless { return slices.Delete(all, i, i+1) })
	return true
}

// uselessText says until when a group brings no Nodes for Pods of a shape, and what was wrong with the last one.
func (sc *scan) uselessText(g *group, digest string) string {
	for _, u := range sc.state.Groups[g.id].Useless {
		if u.Shape == digest {
			return "until " + machine.Stamp(u.Until.Time) + ", node " + u.Node + ": " + u.Reason
		}
	}
	return ""
}
