// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// shortFor is less than the minute for which lists that lost most of what they held are not believed (RELIABILITY G8).
	shortFor = 50 * time.Second
	// fewestShort is how many have to be missing at least: of fewer nobody can tell that something is wrong with a list.
	fewestShort = 5
	// leftNodes are those that a short list of Nodes has still.
	leftNodes = 2
)

// shortList is a while in which the API server's lists of one kind lack most of what there is, and seem well (R-B23). What was begun before
// goes on, as does who asks for an object by its name.
type shortList struct {
	kind  plan.Kind // "": there was none
	since time.Time
	until time.Time // by a clock that nobody sets
}

// shorten begins such a while, one in a schedule, where Machines have something to lose by it, and the autoscaler has seen enough before to
// see through it.
func (p *Play) shorten(kind plan.Kind) {
	seen, running := p.seenLists(), 0
	for _, m := range p.first() {
		if machine.Phase(m) == machine.PhaseRunning {
			running++
		}
	}
	if p.short.kind != "" || seen.Pods < fewestShort || seen.Doubt != nil || running < 2 {
		return
	}
	p.short = shortList{kind: kind, since: p.clock, until: p.elsewhere().Add(shortFor)}
	p.tracef("the API server's lists lack most of kind %s for %v", kind, shortFor)
}

// seenLists is what the autoscaler's record says of the lists that it last believed.
func (p *Play) seenLists() autoscaling.Seen {
	cm := memory.Get[*corev1.ConfigMap](p.API, machine.Namespace, machine.ConfigMapStatus)
	if cm == nil {
		return autoscaling.Seen{}
	}
	return stateOf(cm).Seen
}

// stateOf is the autoscaler's record; one that nobody can read is empty.
func stateOf(cm *corev1.ConfigMap) autoscaling.State {
	s, err := autoscaling.ParseState(cm.Data[autoscaling.StateKey])
	if err != nil {
		return autoscaling.State{}
	}
	return s
}

// cutDown takes away what q is not shown of a list: q is of a function that has a brake for that.
func (p *Play) cutDown(q *proc, of snapshot.Query, seen snapshot.Snapshot) snapshot.Snapshot {
	name := p.Functions[q.fn].Name
	if p.short.kind != of.Kind || of.Name != "" || name != "evaluate-autoscale" && name != "remediate" {
		return seen
	}
	q.short = !p.calm && p.elsewhere().Before(p.short.until)
	if !q.short {
		return seen
	}
	next := seen.Clone()
	switch of.Kind {
	case "Pod":
		next.Pods = nil
	case "Node":
		next.Nodes = next.Nodes[:min(leftNodes, len(next.Nodes))]
	default:
	}
	return next
}

// watchShort holds that nobody's removal is begun, or decided, by a list of Pods that just lost all of them (R-S12, R-B23). Where lists
// were in doubt before, the minute is over earlier; where times are not what they were, nobody knows when it is. Of Nodes there are too few
// here for the autoscaler to doubt a list of them; what a check does by one is held elsewhere (causedByCheck).
func (p *Play) watchShort(q *proc, a plan.Action) {
	u, is := a.(plan.Update)
	if !is || !q.short || p.short.kind != "Pod" || p.reset || p.restored {
		return
	}
	old, was := u.Old.(*corev1.ConfigMap)
	now, is := u.New.(*corev1.ConfigMap)
	if !was || !is || now.Name != machine.ConfigMapStatus {
		return
	}
	before := stateOf(old)
	if d := before.Seen.Doubt; d != nil && d.Time.Before(p.short.since.Add(-time.Second)) {
		return
	}
	begun := leavers(before)
	for what := range leavers(stateOf(now)) {
		if !begun[what] {
			p.violate("R-S12", "%s decides to %s by a list that lost all Pods", q, what)
		}
	}
}

// leavers are what a record of the autoscaler has go.
func leavers(s autoscaling.State) map[string]bool {
	all := map[string]bool{}
	for _, r := range s.Removals {
		all["empty "+r.Node] = true
		if r.Committed != nil {
			all["remove "+r.Node] = true
		}
	}
	for id, g := range s.Groups {
		if r := g.Resize; r != nil && len(r.Lost) > 0 {
			all["give up Machines of "+id] = true
		}
	}
	return all
}
