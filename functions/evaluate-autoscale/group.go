// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"errors"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// group is a MachineSet that is resized, with its Machines.
type group struct {
	id       string // MachineSet/namespace/name (SPEC S60)
	set      *machine.MachineSet
	min, max int32
	members  []member
	template scheduling.Node
	known    bool // there is a template
	own      autoscaling.Options
	gpus     string // the type of those that its Nodes have, if any, as far as the set says it

	target   int32 // wanted Machines: what was decided, carried out or not
	ready    int32 // Nodes that take Pods, or would if nobody had cordoned them
	settling int32 // of these, Nodes that are ready for so short a time that their Pods may not have come yet
	starting int32 // Nodes that are not ready yet
	unready  int32 // Nodes that are not ready any more
	failed   int32 // Machines that will never have a Node
	fallen   int32 // those of them that had one
	gone     int32 // those of them of which the cloud says that their instance is gone
	late     int32 // Machines without a Node for longer than it may take
	upcoming int32 // Nodes that Pods may wait for
}

// member is one Machine of a group.
type member struct {
	machine *machine.Machine
	node    *corev1.Node // nil: none yet, or nobody can say which
	may     bool         // some Node may be its, whether anybody linked it or not
	leaving bool         // nobody wants it any more: it is not part of the target
}

// came reports that the Machine has, or had, a Node, or may have one.
func (m member) came() bool { return m.may || m.machine.Status.NodeRef != nil }

// anyGroup reports whether there is a set that may be resized.
func anyGroup(s snapshot.Snapshot) bool {
	return slices.ContainsFunc(s.MachineSets, func(set *machine.MachineSet) bool {
		_, _, ok := boundsOf(s, set)
		return ok
	})
}

// boundsOf reads a set's bounds. Without a MachineAutoscaler of its own, with bounds that allow nothing, or where automation may not
// resize it at all, a set is never resized (SPEC S31, C16, B7).
func boundsOf(s snapshot.Snapshot, set *machine.MachineSet) (least, most int32, ok bool) {
	least, okLeast := number(set.Annotations[machine.AnnotationMinSize])
	most, okMost := number(set.Annotations[machine.AnnotationMaxSize])
	ok = okLeast && okMost && most > 0 && least <= most
	return least, most, ok && machine.MayResize(set) && ownerOf(s, set) != nil
}

func number(text string) (int32, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && n >= 0
}

func idOf(set *machine.MachineSet) string { return "MachineSet/" + set.Namespace + "/" + set.Name }

// groupsOf returns the groups, and the sets that are none, each sorted by id, without what depends on the state, and the Machines of no set.
func groupsOf(s snapshot.Snapshot, found map[*machine.Machine]machine.Candidates) (groups, others []*group, alone []member) {
	byUID := map[types.UID]*group{}
	for _, set := range s.MachineSets {
		least, most, ok := boundsOf(s, set)
		g := &group{id: idOf(set), set: set, min: least, max: most, target: machine.Replicas(set), gpus: scheduling.Accelerator(set)}
		byUID[set.UID] = g
		if ok {
			groups = append(groups, g)
		} else {
			others = append(others, g)
		}
	}
	for _, m := range s.Machines {
		var g *group
		if owner := metav1.GetControllerOfNoCopy(m); owner != nil {
			g = byUID[owner.UID]
		}
		c := found[m]
		x := member{machine: m, node: c.Only(), may: len(c.Nodes) > 0}
		if g == nil || g.set.Namespace != m.Namespace { // an owner is of the Machine's own namespace, whatever a copy in another says
			alone = append(alone, x)
			continue
		}
		g.members = append(g.members, x)
	}
	for _, list := range [][]*group{groups, others} {
		slices.SortFunc(list, func(a, b *group) int { return cmp.Compare(a.id, b.id) })
	}
	return groups, others, alone
}

// has reports whether a Machine belongs to the group.
func (g *group) has(uid types.UID) bool {
	return slices.ContainsFunc(g.members, func(m member) bool { return m.machine.UID == uid })
}

// dying returns the Nodes whose Machines are being deleted, whoever resizes their sets.
func dying(s snapshot.Snapshot, found map[*machine.Machine]machine.Candidates) map[*corev1.Node]bool {
	all := map[*corev1.Node]bool{}
	for _, m := range s.Machines {
		if m.DeletionTimestamp == nil {
			continue
		}
		for _, n := range found[m].Nodes {
			all[n] = true
		}
	}
	return all
}

// count adds up what the group has. Whoever leaves is counted nowhere: neither in the target nor here.
func (sc *scan) count(g *group) {
	for _, m := range g.members {
		switch {
		case m.leaving:
		case m.node != nil && sc.ready(m.node):
			g.ready++
			g.settling += int32(truth(!scheduling.Settled(m.node, sc.Now)))
		case m.node != nil && sc.starting(m.node):
			g.starting++
		case m.node != nil:
			g.unready++
		case machine.Phase(m.machine) == machine.PhaseFailed:
			g.failed++
			g.fallen += int32(truth(m.came()))
			g.gone += int32(truth(machine.LostAt(m.machine) != nil))
		case sc.late(g, m.machine):
			g.late++
		}
	}
}

// awaited returns how many Nodes of the target are still to come (SPEC C44). Nodes that are starting are among them.
func (g *group) awaited() int32 {
	return max(0, g.target-g.ready-g.unready-g.failed-g.late)
}

// surplus reports that there are more Machines than wanted: somebody lowered the target, and nobody has chosen yet.
func (g *group) surplus() bool { return g.staying() > g.target }

// staying counts the Machines that are not on the way out.
func (g *group) staying() (n int32) {
	for _, m := range g.members {
		n += int32(truth(!m.leaving))
	}
	return n
}

// undecided reports that somebody lowered the target, and nobody has chosen yet who goes: beside a surplus, where the ledger still has
// Machines made for more ordinals than are wanted. Should one of these come, another goes for it, by the set's policy. Of a ledger that a
// newer version wrote nobody knows, nor of victims that cannot be read, which hold the set (2a.3): who named another would write over them.
func (sc *scan) undecided(g *group) bool {
	_, unread := machine.Victims(g.set)
	return sc.newerLedger(g) || g.surplus() || unread != nil || sc.allotted(g) > g.target
}

// newerLedger reports that a newer version wrote the ledger of a group, which says who belongs to it: nobody of it is removed (G9).
func (sc *scan) newerLedger(g *group) bool {
	_, err := sc.Records.Ledger(g.set)
	return errors.Is(err, machine.ErrNewer)
}

// allotted counts the ordinals that the ledger has Machines made for, but for those whose Machine is on its way out, or an orphan: for that
// nobody goes before it is adopted, which may be refused for ever. One whose Machine is another controller's counts: it is retired
// first of all. Without a ledger of the set's own they are the Machines that stay: scale-machineset will make one of them.
func (sc *scan) allotted(g *group) int32 {
	l, err := sc.Records.Ledger(g.set)
	if err != nil || l.SetUID != g.set.UID {
		return g.staying()
	}
	n := len(l.Active)
	for _, m := range g.members {
		if m.leaving { // few, and where they stand may have to be searched for
			k, ok := l.OrdinalOf(g.set.Name, m.machine)
			n -= truth(ok && l.Active.Has(k))
		}
	}
	if n > int(g.staying()) { // else each is a member's
		for _, k := range l.Active {
			n -= truth(sc.orphaned(g, l, k))
		}
	}
	return int32(n)
}

// orphaned reports whether the Machine at ordinal k is there, alive, and has no controller.
func (sc *scan) orphaned(g *group, l machine.Ledger, k int) bool {
	m := sc.Machine(g.set.Namespace, l.Name(g.set.Name, k))
	a, adopted := l.Adopted[k]
	return m != nil && m.DeletionTimestamp == nil && metav1.GetControllerOfNoCopy(m) == nil && (!adopted || a.UID == m.UID)
}
