// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"path"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// watchLedger holds R-S4, R-S5 and R-S17 for one commit.
func (p *Play) watchLedger(q *proc, old, now *machine.MachineSet) {
	before, next, ok := p.committed(q, old, now)
	if !ok {
		return
	}
	for _, k := range next.Active {
		p.ever[k] = true
	}
	clear(p.rebuilt) // whoever carries this ledger out carries out what was decided since
	if next.Rebuilt != "" {
		p.rebuilt[q.id] = true
		p.rebuilds++
		for k := range next.Next { // it allocates none, and knows only of those that it saw
			p.retired[k] = p.retired[k] || !next.Active.Has(k)
		}
		return
	}
	grown := 0
	for _, k := range next.Active {
		_, adopted := next.Adopted[k]
		switch {
		case before.Active.Has(k):
		case k < before.Next:
			p.violate("R-S17", "%s: the retired ordinal %d returns", q, k)
		case !adopted:
			grown++
		}
	}
	want := int(*old.Spec.Replicas)
	switch {
	case next.Next < before.Next:
		p.violate("R-S17", "%s: next goes back from %d to %d", q, before.Next, next.Next)
	case grown > 0 && len(next.Active) > want:
		p.violate("R-S4", "%s: %d ordinals are active, %d are wanted", q, len(next.Active), want)
	}
	chosen := p.watchRetired(q, old, before, next, grown)
	p.watchVictims(q, old, before, next, chosen)
}

// committed returns the ledger that a write commits, and the one before it, which is empty if nobody can read it or it is another set's. It is
// not ok if the write commits none, or one that nobody can read (2a.1).
func (p *Play) committed(q *proc, old, now *machine.MachineSet) (before, next machine.Ledger, ok bool) {
	if now.Annotations[machine.AnnotationLedger] == old.Annotations[machine.AnnotationLedger] {
		return before, next, false
	}
	p.watchVersion(q, machine.AnnotationLedger, old)
	next, err := ledgerOf(now)
	if err != nil {
		p.violate("2a.1", "%s commits a ledger that nobody can read: %v", q, err)
		return before, next, false
	}
	if before, err = ledgerOf(old); err != nil || before.SetUID != old.UID {
		before = machine.NewLedger(old.UID)
	}
	return before, next, true
}

// watchRetired holds that a Machine is retired because people, Kubernetes or another function have it go, or because it is one too
// many: of those as many go as are (R-S5, R-S6). It returns those.
func (p *Play) watchRetired(q *proc, set *machine.MachineSet, before, next machine.Ledger, grown int) (chosen []*machine.Machine) {
	goes := func(k int) bool { // who is adopted may go at once
		return !next.Active.Has(k) && (before.Active.Has(k) || before.Next <= k && k < next.Next)
	}
	for k := range next.Next {
		p.retired[k] = p.retired[k] || goes(k)
	}
	for _, m := range p.machines() {
		k, was := ordinalIn(before, m)
		at, is := ordinalIn(next, m)
		since, put := p.back[m.UID]
		if is && at >= before.Next && !put { // who was to go and is adopted again was chosen in vain; people's putting in is counted
			delete(p.chosen, m.UID)
		}
		switch {
		case is && next.Active.Has(at), (!was || !goes(k)) && (!is || !goes(at)):
		case ownerOf(m) == "" && (was || next.Adopted[at].UID != m.UID): // nobody's Machine has the name
		case q.sawGo(m): // the former one, and no write of the set told that it was made anew: one more is made for it
			p.ordered++
		case m.DeletionTimestamp != nil, m.Labels[machine.LabelMachineSet] != setName, put && q.id <= since, ownerOf(m) != "" && ownerOf(m) != set.UID:
		default:
			chosen, p.chosen[m.UID] = append(chosen, m), true
		}
	}
	if have, want := len(next.Active)-grown, int(*set.Spec.Replicas); len(chosen) > 0 && have < want {
		p.violate("R-S5", "%s: %d go, %s first, of whom %d were not too many", q, len(chosen), chosen[0].Name, min(len(chosen), want-have))
	}
	return chosen
}

// watchNumber holds that no more Machines are made than replicas were asked for, people put in, and others made go (R-S4).
func (p *Play) watchNumber(q *proc, m *machine.Machine) {
	set := p.set()
	if set == nil || p.tampered {
		return
	}
	l, err := ledgerOf(set)
	if k, ok := ordinalIn(l, m); err != nil || !ok || !l.Active.Has(k) { // it came late, and goes again
		return
	}
	n, all := 0, p.machines()
	for _, x := range all {
		if x.Name == m.Name {
			p.made[x.UID] = true
		}
	}
	for uid := range p.made {
		stays := func(x *machine.Machine) bool {
			return x.UID == uid && x.DeletionTimestamp == nil && ownerOf(x) == set.UID && x.Labels[machine.LabelMachineSet] == setName
		}
		if p.chosen[uid] || slices.ContainsFunc(all, stays) {
			n++
		}
	}
	if n > p.ordered+p.added {
		p.violate("R-S4", "%s creates %s: %d were made, %d replicas were asked for, %d put in", q, m.Name, n, p.ordered, p.added)
	}
}

// watchVictims holds that nobody else is chosen to go while a victim stays (R-S5). Who is out of the set, or on the way out, leaves
// room as a victim does.
func (p *Play) watchVictims(q *proc, set *machine.MachineSet, before, next machine.Ledger, chosen []*machine.Machine) {
	victims, err := machine.Victims(set)
	if err != nil || len(victims) == 0 {
		return
	}
	victim := func(m *machine.Machine) bool {
		return slices.ContainsFunc(victims, func(v machine.Victim) bool { return v.Is(m) })
	}
	spared := func(m *machine.Machine) bool {
		k, ok := p.ordinalOf(before, m)
		return ok && before.Active.Has(k) && next.Active.Has(k) && m.DeletionTimestamp == nil && ownerOf(m) == set.UID && victim(m)
	}
	other := slices.IndexFunc(chosen, func(m *machine.Machine) bool { return !victim(m) })
	all := p.machines()
	if i := slices.IndexFunc(all, spared); i >= 0 && other >= 0 {
		p.violate("R-S5", "%s: %s goes instead of the victim %s", q, chosen[other].Name, all[i].Name)
	}
}

// absent counts the replicas of a set that stand for no Machine which could be taken in the place of another: ordinals that
// were never allocated, and those whose Machine is on its way out, or was taken out of the set.
func (p *Play) absent(set *machine.MachineSet) (n int) {
	l, err := ledgerOf(set)
	if err != nil {
		return 0
	}
	n = int(*set.Spec.Replicas) - len(l.Active)
	for _, m := range p.machines() {
		k, ok := p.ordinalOf(l, m)
		if ok && l.Active.Has(k) && (m.DeletionTimestamp != nil || ownerOf(m) != set.UID) {
			n++
		}
	}
	return n
}

// mostFor returns how many replicas are enough for the Pods that q has read, be it one: a replica for each, and one for each Machine that it
// read as one that serves nobody. Its Node is not Ready; or there is none, although it had the autoscaler's time to become one, or is
// Failed (SPEC C49), or is awaited by a request that timed out (C47). For one that goes its set makes another without being asked: nobody
// waits for that one either, where the request is of before, and none but it is left that could stand for the minimum.
func (p *Play) mostFor(q *proc) int {
	n := max(q.pods, 1)
	for _, m := range q.read {
		if p.useless(q, m) {
			n++
		}
	}
	stays := func(m *machine.Machine) bool {
		return m.DeletionTimestamp == nil && !isMaster(m) && (p.Scaled || !p.neighbors(m))
	}
	if p.timedOut(q) && !slices.ContainsFunc(q.read, stays) {
		n++
	}
	return n
}

// timedOut reports whether a request is open that timed out, as q read it, or as it is on record: what q writes may close it.
func (p *Play) timedOut(q *proc) bool { return q.overdue || p.outwaited() }

// useless reports whether q read a Machine as one that serves nobody.
func (p *Play) useless(q *proc, m *machine.Machine) bool {
	if m.DeletionTimestamp != nil || isMaster(m) || p.neighbors(m) && !p.Scaled {
		return false
	}
	if node := p.nodeOf(q, m); node != nil {
		return !machine.NodeReady(node)
	}
	return p.timedOut(q) || machine.Phase(m) == machine.PhaseFailed || p.clock.Sub(m.CreationTimestamp.Time) >= 15*time.Minute
}

// nodeOf is the Node of a Machine, as q read it.
func (p *Play) nodeOf(q *proc, m *machine.Machine) *corev1.Node {
	if m.Status.NodeRef == nil {
		return nil
	}
	return p.node(q.nodes, m.Status.NodeRef.Name)
}

// watchPlans remembers of each change of replicas that goes on record what is enough by what its maker has read: who finds it there
// carries it out, whatever that one has read.
func (p *Play) watchPlans(q *proc, o plan.Object) {
	cm, is := o.(*corev1.ConfigMap)
	if !is || cm.Name != machine.ConfigMapStatus {
		return
	}
	s, err := autoscaling.ParseState(cm.Data[autoscaling.StateKey])
	if err != nil {
		return
	}
	for id, g := range s.Groups {
		set := path.Base(id)
		if r := g.Resize; r != nil && p.enough[planOf(set, r.Plan)] == 0 {
			p.remember(q, planOf(set, r.Plan), s, set)
		}
	}
}

// planOf names what a plan changes of a set: one plan may be of two.
func planOf(set, plan string) string { return set + "/" + plan }

// watchReplicas holds what the autoscaler may do to a set (R-S4, R-S5, R-S17).
func (p *Play) watchReplicas(q *proc, old, now *machine.MachineSet) {
	from, to := int(*old.Spec.Replicas), int(*now.Spec.Replicas)
	if from == to {
		return
	}
	if name := p.Functions[q.fn].Name; name != "evaluate-autoscale" {
		p.violate("writers", "%s changes replicas", name)
	}
	if old.UID == p.beside.uid {
		p.beside.grows(from, to)
	} else {
		p.wanted(int32(to))
	}
	id := planOf(now.Name, now.Annotations[machine.AnnotationLastPlan])
	if p.plans[id] && !p.tampered {
		p.violate("R-S17", "%s: plan %q returns", q, id)
	}
	p.plans[id] = true
	victims, err := machine.Victims(now)
	most, beside := p.enough[id], p.besides[id]
	switch {
	case machine.Unserved(old) != "":
		p.violate("R-S4", "%s gives %d replicas to %s, a set that nobody makes Machines for", q, to, old.Name)
	case to > from && to > mostOf(old):
		p.violate("R-S4", "%s: %d replicas, at most %d are allowed", q, to, mostOf(old))
	case to > from && p.masters()+beside+to > p.mostNodes():
		p.violate("R-S4", "%s: %d replicas and %d masters, at most %d nodes are allowed", q, beside+to, p.masters(), p.mostNodes())
	case to > from && to > 1 && beside+to > most: // one is the minimum, whatever others have
		p.violate("R-S4", "%s: %d replicas where %d are enough for the pods", q, beside+to, most)
	case to < from && (err != nil || len(victims)+p.absent(old) < from-to):
		p.violate("R-S5", "%s: %d less with %d victims", q, from-to, len(victims))
	case to < 1:
		p.violate("R-S4", "%s: %d replicas are less than the minimum", q, to)
	}
}
