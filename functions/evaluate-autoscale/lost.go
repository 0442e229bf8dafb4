// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// revert begins the ids of plans that lower a target by what did not come.
const revert = "revert"

// mostGivenUp bounds how many of a group go at once: a set names each of them in an annotation, and all annotations have 256 KiB.
const mostGivenUp = 500

// giveUp lowers the targets of groups by what will not come (SPEC C47–C50): Machines that failed, or have had no Node
// for longer than it may take, go by name; Machines that were never made are no longer waited for. No group falls below
// its minimum, no Machine goes that had a Node unless the cloud says that its instance is gone, nor before the ledger has what the set
// grew by, and the cluster's budget bounds how many go. Of the control plane what is gone has to be replaced (R-S10). A list of Nodes that
// is not believed proves nothing.
func (sc *scan) giveUp() {
	if sc.doubt {
		return
	}
	for _, g := range sc.groups {
		if pendingResize(g, sc.state.Groups[g.id]) || g.target <= g.min || sc.undecided(g) || sc.unwritable(g) != "" {
			continue
		}
		room := min(int(g.target-g.min), mostGivenUp)
		var victims []autoscaling.Lost
		if sc.allotted(g) >= g.target { // else a lower target takes what the set grew by, whoever is named
			victims = sc.lost(g, room)
		}
		less := len(victims)
		if r := sc.state.Groups[g.id].Request; r != nil && r.TimedOut && !machine.MakesControlPlane(g.set) {
			never, unmade := sc.unmade(g)
			never = max(0, min(room-less, never))
			less += never
			victims = append(victims, unmade[:min(never, len(unmade))]...)
		}
		if less == 0 {
			continue
		}
		sc.notes = append(sc.notes, plan.Log(fmt.Sprintf("Decreasing size of %s from %d to %d: %d nodes did not come", g.id, g.target, int(g.target)-less, less)))
		sc.commitResize(g, autoscaling.Resize{Plan: sc.planID(revert, g.id), To: g.target - int32(less), Lost: victims})
		sc.markLeaving(g)
		sc.recount(g)
	}
}

// lost returns as many Machines as may go, of those that will not bring a Node; those that people want to look at stay, and those that
// another API (SPEC B7) or a MachineHealthCheck has in hand. Where the cluster's budget has no slot for one, that is told. One that has no
// instance disrupts nobody: it takes no slot, and no more of these are on their way out than the budget allows at once, of all sets, which is told
// as well.
func (sc *scan) lost(g *group, room int) (victims []autoscaling.Lost) {
	if sc.budget == nil {
		sc.budget = sc.readBudget()
	}
	held, full, empty := false, false, -1
	for _, m := range g.members {
		preserved, replaced := machine.Kept(m.machine, sc.goesAt(g, m.machine), sc.Now), machine.OfControlPlane(m.machine, m.node)
		if len(victims) == room || m.leaving || m.awaits() || healed(m.machine, sc.Now) || preserved || machine.IsPaused(m.machine) || replaced || !sc.isLost(g, m.machine) {
			continue
		}
		r := autoscaling.Removal{Machine: m.machine.Name, MachineUID: m.machine.UID}
		switch {
		case m.empty():
			if empty < 0 { // most sets have none
				empty = sc.emptyLeaving()
			}
			if sc.budget.err != nil || empty >= sc.budget.limits.AtOnce {
				held, full = sc.budget.err != nil || held, true
				continue
			}
			empty++
		case !sc.budget.take(sc, r, g.set.Namespace):
			held = true
			continue
		}
		victims = append(victims, autoscaling.Lost{Machine: r.Machine, UID: r.MachineUID})
	}
	if held {
		sc.noSlot()
	} else if full {
		sc.notes = append(sc.notes, plan.Log(fmt.Sprintf("No more machines of %s that did not come are given up while as many without an instance are on their way out "+
			"as configmap/%s allows scale-down at once: %d", g.id, machine.ConfigMapDisrupt, sc.budget.limits.AtOnce)))
	}
	slices.SortFunc(victims, func(a, b autoscaling.Lost) int { return cmp.Compare(a.Machine, b.Machine) })
	return victims
}

// empty reports that a Machine never had an instance, nor a Node, as far as is on record: nothing runs on it.
func (m member) empty() bool { return !m.came() && machine.ProviderID(m.machine) == "" }

// emptyLeaving counts the Machines without an instance that are on their way out, for as long as a slot of the budget would count: since they
// are being deleted, or else since they were given up. Whoever deletes them may be refused that for good.
func (sc *scan) emptyLeaving() (n int) {
	for _, g := range sc.groups {
		r := sc.state.Groups[g.id].Resize
		lately := sc.lately(r)
		for _, m := range g.members {
			if !m.leaving || !m.empty() {
				continue
			}
			if gone := m.machine.DeletionTimestamp; gone != nil {
				n += truth(sc.Now.Before(gone.Add(machine.SlotFor)))
				continue
			}
			n += truth(lately && slices.ContainsFunc(r.Lost, func(x autoscaling.Lost) bool { return x.UID == m.machine.UID }))
		}
	}
	return n
}

// lately reports that a change gave Machines up for which slots of the budget would count still.
func (sc *scan) lately(r *autoscaling.Resize) bool {
	return r != nil && len(existed(*r)) > 0 && sc.Now.Before(r.At.Add(machine.SlotFor))
}

// isLost reports that a Machine without a Node failed, or had none for longer than it may take.
func (sc *scan) isLost(g *group, m *machine.Machine) bool {
	return machine.Phase(m) == machine.PhaseFailed || sc.late(g, m)
}

// late reports whether a Machine exists for longer than it may take to get its Node.
func (sc *scan) late(g *group, m *machine.Machine) bool { return !sc.Now.Before(sc.lateAt(g, m)) }

// goesAt returns when a Machine without a Node is to go: once its instance is gone, else when it is late.
func (sc *scan) goesAt(g *group, m *machine.Machine) time.Time {
	if at := machine.LostAt(m); at != nil {
		return at.Time
	}
	return sc.lateAt(g, m)
}

// awaits reports that a Node may be the Machine's, or come back: it had one, and the cloud does not say that its instance is gone. That is
// final: no Node comes of it, and without a MachineHealthCheck nobody else takes the Machine off the target.
func (m member) awaits() bool { return m.may || m.came() && machine.LostAt(m.machine) == nil }

// healed reports that a MachineHealthCheck had a Node's Machine in flight before it was given up: the check replaces it, and the target stays.
// One that hands it over, or cannot take it away, has nobody replace it after all: as long after its latest step as it has a slot it counts.
func healed(m *machine.Machine, now time.Time) bool {
	claim := m.Annotations[machine.AnnotationRemediatedBy]
	if m.Status.NodeRef == nil || claim == "" {
		return false
	}
	at, err := time.Parse(time.RFC3339, claim[strings.LastIndex(claim, " ")+1:])
	return err != nil || now.Before(at.Add(machine.SlotFor))
}

func (sc *scan) lateAt(g *group, m *machine.Machine) time.Time {
	return m.CreationTimestamp.Add(g.own.MaxNodeProvisionTime)
}

// unmade counts the Machines of the target that do not exist or are on their way out, and names those that scale-machineset may
// be about to make, or to make anew: should one come before the target is lower, it goes, and not another by the set's policy.
// The others cannot come: what allocates them writes the set, too. An orphan is made, whether it may be adopted or not.
func (sc *scan) unmade(g *group) (n int, about []autoscaling.Lost) {
	n = int(g.target)
	made := map[string]bool{}
	for _, m := range g.members {
		n -= truth(!m.leaving)
		made[m.machine.Name] = !m.leaving
	}
	l, err := sc.Records.Ledger(g.set)
	if err != nil || l.SetUID != g.set.UID {
		return 0, nil // scale-machineset will make another
	}
	for _, k := range slices.Backward(l.Active) {
		if name := l.Name(g.set.Name, k); !made[name] && !sc.orphaned(g, l, k) {
			about = append(about, autoscaling.Lost{Machine: name})
		}
	}
	return min(n, len(about)+max(0, int(g.target)-len(l.Active))), about
}

// existed returns the Machines of r that were there when it was decided.
func existed(r autoscaling.Resize) []autoscaling.Lost {
	return slices.DeleteFunc(slices.Clone(r.Lost), func(x autoscaling.Lost) bool { return x.UID == "" })
}

// reverted tells what became of a target that was lowered by what did not come.
func (sc *scan) reverted(g *group, r autoscaling.Resize) (notes []plan.Note) {
	for _, v := range existed(r) {
		sc.tell(&notes, corev1.EventTypeNormal, "DeleteUnregistered", "Removed unregistered node "+v.Machine+" of group "+g.id)
	}
	return notes
}

// notReverted tells that it could not be.
func (sc *scan) notReverted(g *group, r autoscaling.Resize, why string) {
	for _, v := range existed(r) {
		sc.tell(&sc.notes, corev1.EventTypeWarning, "DeleteUnregisteredFailed", fmt.Sprintf("Failed to remove node %s of group %s: %s", v.Machine, g.id, why))
	}
	sc.tell(&sc.notes, corev1.EventTypeWarning, "FailedToRevertScaleUp", fmt.Sprintf("Failed to decrease size of group %s to %d: %s", g.id, r.To, why))
}
