// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// neighborName begins as the names of the first set's Machines do.
const neighborName = setName + "-b"

// neighbor is a second MachineSet, which people leave alone, whatever they do to the first: no check selects it, and nothing scales it, but
// the autoscaler where it is Scaled.
type neighbor struct {
	uid     types.UID
	made    int                // Machines that were created for it
	ordered int                // replicas that were ever asked for beside those that there were, and Machines that people had go
	most    int                // replicas that it ever wanted
	choice  int                // by what the autoscaler chooses between the sets
	ever    map[int]bool       // ordinals that were active in some committed ledger
	rebuilt bool               // its ledger was, and may have forgotten an ordinal
	lost    map[types.UID]bool // its Machines whose instance the cloud lost, which nobody replaces
	lent    map[string]bool    // names of its Machines that people moved to the other set, which has them go as it likes
}

func (n neighbor) clone() neighbor {
	n.lost, n.ever, n.lent = maps.Clone(n.lost), maps.Clone(n.ever), maps.Clone(n.lent)
	return n
}

// neighborUp puts it there.
func (p *Play) neighborUp() {
	if p.Neighbor == 0 {
		return
	}
	set := p.setNamed(p.secondSet(), int32(p.Neighbor))
	if set.Namespace = p.secondSpace(); p.Apart {
		p.moveIn()
	}
	if p.Broad {
		set.Spec.Selector.MatchLabels = map[string]string{machine.LabelCluster: "sim"}
	}
	p.put(set)
	p.beside = neighbor{uid: p.second().UID, lost: map[types.UID]bool{}, ever: map[int]bool{}, lent: map[string]bool{}, ordered: p.Neighbor, most: p.Neighbor}
	p.tracef("beside it %s/%s wants %d", p.secondSpace(), p.secondSet(), p.Neighbor)
}

func (p *Play) second() *machine.MachineSet {
	return memory.Get[*machine.MachineSet](p.API, p.secondSpace(), p.secondSet())
}

// neighbors reports whether a Machine is the second set's.
func (p *Play) neighbors(m *machine.Machine) bool {
	return p.Neighbor > 0 && m != nil && ownerOf(m) == p.beside.uid
}

// first returns the Machines that are not the neighbor's.
func (p *Play) first() []*machine.Machine {
	all := p.machines()
	if p.Neighbor == 0 {
		return all
	}
	return slices.DeleteFunc(slices.Clone(all), p.neighbors)
}

// bereaved reports whether a Machine is the neighbor's and has no instance that it could have: the cloud lost it, or it was missing for
// long enough by a clock that jumped, or by storage that was restored, or it was Failed when it came. It stays as it is, but where the set
// is Scaled: there people replace it.
func (p *Play) bereaved(m *machine.Machine) bool {
	return p.neighbors(m) && !p.Scaled && (p.beside.lost[m.UID] || (p.reset || p.restored || p.Moves) && machine.Phase(m) == machine.PhaseFailed)
}

// ofBereaved reports the same of the Machine of a Node.
func (p *Play) ofBereaved(n *corev1.Node) bool {
	return p.Neighbor > 0 && slices.ContainsFunc(p.machines(), func(m *machine.Machine) bool { return p.bereaved(m) && hasNode(m, n) })
}

// bereave remembers that the cloud lost an instance.
func (p *Play) bereave(i provider.Instance) {
	if m := p.owner(i.UID); p.neighbors(m) {
		p.beside.lost[m.UID] = true
	}
}

// watchNeighbor holds that nobody does anything to the neighbor, its Machines and their Nodes but what makes them as people want them. It
// reports whether a write is of what the first set's checks are not about.
func (p *Play) watchNeighbor(q *proc, a plan.Action, old plan.Object) bool {
	if p.Neighbor == 0 {
		return false
	}
	switch a := a.(type) {
	case plan.Create:
		m, is := a.Object.(*machine.Machine)
		if !is || !p.neighbors(m) {
			return false
		}
		p.watchNeighborMade(q, m)
		return true
	case plan.Update:
		return p.watchNeighborUpdate(q, old, a.New)
	case plan.Delete:
		m, is := old.(*machine.Machine)
		if !is || !p.neighbors(m) || a.Object.GetUID() != m.UID || p.moved(m) && p.Functions[q.fn].Name != "scale-machineset" {
			return false
		}
		if !p.forgotten(m) || p.Functions[q.fn].Name != "scale-machineset" {
			p.violate("R-S6", "%s deletes %s of the neighbor", q, m.Name)
		}
		return true
	case plan.Evict:
		if m := p.neighborOn(memory.Get[*corev1.Node](p.API, "", a.Pod.Spec.NodeName)); m != nil && m.DeletionTimestamp == nil && !p.moved(m) && !p.Scaled {
			p.violate("R-S8", "%s evicts %s from the neighbor's Node %s", q, a.Pod.Name, a.Pod.Spec.NodeName)
		}
	case plan.UpdateStatus, plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
	}
	return false
}

// neighborOn returns the neighbor's Machine that has a Node.
func (p *Play) neighborOn(n *corev1.Node) *machine.Machine {
	for _, m := range p.machines() {
		if p.neighbors(m) && isNodeOf(m, n) {
			return m
		}
	}
	return nil
}

// secondAt reports whether m stands at an ordinal of the neighbor.
func (p *Play) secondAt(l machine.Ledger, k int, m *machine.Machine) bool {
	if a, adopted := l.Adopted[k]; adopted {
		return a.UID == m.UID
	}
	return p.secondName(k) == m.Name
}

// secondOn returns who stands at an ordinal of the neighbor.
func (p *Play) secondOn(l machine.Ledger, k int) (all []*machine.Machine) {
	for _, m := range p.machines() {
		if p.secondAt(l, k, m) {
			all = append(all, m)
		}
	}
	return all
}

// wasSecond reports whether an ordinal of m's name was ever active in the neighbor's ledger.
func (p *Play) wasSecond(m *machine.Machine) bool {
	for k := range p.beside.ever {
		if p.secondName(k) == m.Name {
			return true
		}
	}
	return false
}

// moved reports whether people ever put a Machine into a set that it was not in, or may have, since its selector is of all.
func (p *Play) moved(m *machine.Machine) bool {
	_, put := p.back[m.UID]
	return put || p.Broad
}

// move has people put a Machine into the other set by its labels, in half of the cases without its owner, whose say would be in the way.
func (p *Play) move() {
	all := slices.DeleteFunc(slices.Clone(p.machines()), func(m *machine.Machine) bool { return isMaster(m) || m.DeletionTimestamp != nil })
	i := p.pick(KindWhich, len(all))
	if i >= len(all) {
		return
	}
	m, to, freed := all[i], neighborName, p.pick(KindWhich, 2) == 1
	if m.Labels[machine.LabelMachineSet] == neighborName {
		to = setName
		p.added++
		p.beside.lent[m.Name] = true
	}
	p.back[m.UID] = p.born
	p.tracef("people move %s to %s, its owner is taken away: %v", m.Name, to, freed)
	p.change(m, func(o *machine.Machine) {
		if metav1.SetMetaDataLabel(&o.ObjectMeta, machine.LabelMachineSet, to); freed {
			o.OwnerReferences = nil
		}
	})
}

// forgotten reports whether the neighbor's ledger does not hold m: who rebuilt it had not seen m, or m was one too many after people moved
// some, or the autoscaler has it go.
func (p *Play) forgotten(m *machine.Machine) bool {
	l, err := ledgerOf(p.second())
	return (p.beside.rebuilt || p.Moves || p.Scaled) && err == nil && !slices.ContainsFunc(l.Active, func(k int) bool { return p.secondAt(l, k, m) })
}

// secondName is what the neighbor's Machine of an ordinal is called.
func (p *Play) secondName(k int) string { return nameIn(p.secondSet(), p.beside.uid, k) }

func (p *Play) watchNeighborMade(q *proc, m *machine.Machine) {
	l, err := ledgerOf(p.second())
	there := 0
	for _, o := range p.machines() {
		if p.neighbors(o) && (o.DeletionTimestamp == nil || !p.Scaled) && !p.forgotten(o) {
			there++
		}
	}
	at := slices.IndexFunc(l.Active, func(k int) bool { return p.secondName(k) == m.Name })
	if p.Scaled && at < 0 && err == nil && p.wasSecond(m) { // it came late, and goes again
		return
	}
	p.beside.made++
	switch {
	case p.Moves: // who comes late finds an ordinal that was given up for those that came
	case err != nil || at < 0 && !p.beside.rebuilt:
		p.violate("R-S4", "%s creates %s, which the neighbor's ledger does not hold", q, m.Name)
	case p.restored || p.beside.rebuilt: // what storage, or a ledger, does not tell of is made anew, or was made
	case p.beside.made > p.beside.ordered, there > p.beside.most:
		p.violate("R-S4", "%s creates %s: %d were made of the neighbor, which wants %d", q, m.Name, p.beside.made, p.beside.ordered)
	}
}

func (p *Play) watchNeighborUpdate(q *proc, old, now plan.Object) bool {
	switch o := old.(type) {
	case *machine.MachineSet:
		if n, is := now.(*machine.MachineSet); is && o.UID == p.beside.uid {
			p.watchNeighborSet(q, o, n)
			return true
		}
	case *machine.Machine:
		if n, is := now.(*machine.Machine); is && ownerOf(o) != ownerOf(n) && !p.belongs(o, n) {
			p.violate("R-S6", "%s changes whose %s is, from %q to %q", q, o.Name, ownerOf(o), ownerOf(n))
		}
	case *machine.MachineHealthCheck:
		if n, is := now.(*machine.MachineHealthCheck); is {
			p.watchNeighborFlies(q, n)
		}
	case *corev1.Node:
		n, is := now.(*corev1.Node)
		m := p.neighborOn(o)
		if is && m != nil && m.DeletionTimestamp == nil && !p.moved(m) && !p.Scaled && (n.Spec.Unschedulable && !o.Spec.Unschedulable || len(n.Spec.Taints) > len(o.Spec.Taints)) {
			p.violate("R-S11", "%s cordons or taints %s, the Node of %s of the neighbor", q, o.Name, m.Name)
		}
	}
	return false
}

// belongs reports whether a Machine's labels say that it has the owner it gets, or not the one it loses.
func (p *Play) belongs(old, now *machine.Machine) bool {
	of := func(m *machine.Machine) string {
		if p.neighbors(m) {
			return neighborName
		}
		return setName
	}
	label := old.Labels[machine.LabelMachineSet]
	if old.Namespace == elsewhere { // where labels say the same
		label = neighborName
	}
	if ownerOf(now) != "" {
		return of(now) == label || p.Broad && p.neighbors(now)
	}
	return of(old) != label && !(p.Broad && p.neighbors(old))
}

// staysAt reports whether who stands at an ordinal of the neighbor is to stay there, or nobody was made for it yet, unless people moved
// somebody since q began. Whom they moved to the other set has the name until it is gone, and q may have read it as another's.
func (p *Play) staysAt(q *proc, l machine.Ledger, k int) bool {
	_, stays := l.Adopted[k]
	stays = !stays && !p.beside.lent[p.secondName(k)]
	for _, m := range p.machines() {
		if p.secondAt(l, k, m) {
			since, put := p.back[m.UID]
			stays = m.DeletionTimestamp == nil && p.neighbors(m) && (p.Broad || m.Labels[machine.LabelMachineSet] == p.secondSet()) && !(put && q.id <= since)
		}
	}
	return stays
}

// watchNeighborFlies holds that a check has nothing in flight that it does not select.
func (p *Play) watchNeighborFlies(q *proc, h *machine.MachineHealthCheck) {
	flying := flights(h)
	for _, m := range p.machines() {
		if p.neighbors(m) && flying[m.UID] && !p.moved(m) {
			p.violate("R-S10", "%s has %s of the neighbor in flight", q, m.Name)
		}
	}
}

// watchNeighborSet holds that its replicas are as people want them, that no ordinal of it retires, and that it has no more than those.
func (p *Play) watchNeighborSet(q *proc, old, now *machine.MachineSet) {
	was, is := *old.Spec.Replicas, *now.Spec.Replicas
	switch {
	case p.Scaled:
		p.watchReplicas(q, old, now)
	case is != was:
		p.violate("R-S4", "%s changes the neighbor's replicas from %d to %d", q, was, is)
	}
	before, next, ok := p.committed(q, old, now)
	if !ok {
		return
	}
	for _, k := range next.Active {
		p.beside.ever[k] = true
	}
	p.beside.rebuilt = p.beside.rebuilt || next.Rebuilt != "" && next.Rebuilt != before.Rebuilt && before.Next > 0
	if next.Rebuilt != "" {
		return
	}
	grown, stay := 0, 0
	for _, k := range next.Active {
		if _, adopted := next.Adopted[k]; before.Active.Has(k) || adopted {
			stay++
		} else {
			grown++
		}
	}
	var chosen []*machine.Machine
	for _, k := range before.Active {
		goes := !next.Active.Has(k) && p.staysAt(q, before, k)
		if goes && p.Scaled {
			chosen = append(chosen, p.secondOn(before, k)...)
		}
		if goes && stay < int(was) {
			p.violate("R-S5", "%s retires ordinal %d of the neighbor", q, k)
		}
	}
	if len(next.Active) > int(was) && grown > 0 {
		p.violate("R-S4", "%s: the neighbor has %d active ordinals, it wants %d", q, len(next.Active), was)
	}
	p.watchVictims(q, old, before, next, chosen)
}
