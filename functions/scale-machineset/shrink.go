// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// candidate is an active ordinal that may have to go.
type candidate struct {
	ordinal int
	machine *machine.Machine // nil: never created
	victim  bool             // named by evaluate-autoscale
	emptied bool             // its Node is being emptied by an autoscaler
	sick    bool             // it failed, or does not work
	kept    bool             // people want it as it is
	bare    bool             // nothing is on record as made for it, and by the policy such a one goes first
}

// shrink retires what is too much: ordinals that have no Machine yet, then the victims that evaluate-autoscale named,
// then by annotation, then whose Node is being emptied, then who is sick, then by the set's policy, and who is paused last (B43–B46). Ties go to the lower ordinal. Ordinals
// out of reach are not counted.
func shrink(set *machine.MachineSet, l machine.Ledger, m members, victims []machine.Victim, outOfReach machine.Ordinals, want int,
	s snapshot.Snapshot, why *causes,
) machine.Ledger {
	surplus := len(l.Active) - len(outOfReach) - want
	if surplus <= 0 {
		return l
	}
	all := candidates(s, set, l, m, victims, outOfReach)
	newest := newestOf(all)
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(a.class(), b.class()),
			-cmp.Compare(score(set, a, newest), score(set, b, newest)),
			cmp.Compare(a.ordinal, b.ordinal))
	})
	gone := map[int]bool{}
	for _, c := range all[:surplus] {
		gone[c.ordinal] = true
		if c.machine == nil {
			why.free(c.ordinal, reason(set, c))
		} else {
			why.retire(c.ordinal, reason(set, c))
		}
	}
	l.Active = slices.DeleteFunc(slices.Clone(l.Active), func(k int) bool { return gone[k] })
	return l
}

// candidates returns who of the ledger may have to go: everybody within reach.
func candidates(s snapshot.Snapshot, set *machine.MachineSet, l machine.Ledger, m members, victims []machine.Victim, outOfReach machine.Ordinals) []candidate {
	named := map[string]machine.Victim{}
	for _, v := range victims {
		named[v.Name] = v
	}
	var all []candidate
	for _, k := range l.Active {
		if outOfReach.Has(k) {
			continue
		}
		c := candidate{ordinal: k, machine: m.at(l, set, k)}
		if c.machine != nil {
			v, ok := named[c.machine.Name]
			c.victim = ok && v.Is(c.machine)
			c.sick, c.kept = sick(s, c.machine), kept(s, c.machine)
			c.bare = bare(set, c.machine) && !c.kept
			c.emptied = emptied(s, c.machine) && !c.kept
		}
		all = append(all, c)
	}
	return all
}

// class is why a candidate goes before others, by what its removal costs and by who asked for it: the lower goes first.
type class int

const (
	neverCreated class = iota
	victim
	markedForDeletion
	nothingOnRecord
	beingEmptied
	doesNotWork
	byPolicy
	leftAlone
)

func (c candidate) class() class {
	switch {
	case c.machine == nil:
		return neverCreated
	case c.victim:
		return victim
	case marked(c.machine):
		return markedForDeletion
	case machine.IsPaused(c.machine): // it would only be asked to go
		return leftAlone
	case c.bare:
		return nothingOnRecord
	case c.emptied:
		return beingEmptied
	case c.sick:
		return doesNotWork
	}
	return byPolicy
}

// bare reports that nothing is lost with m, in a set in which who has no Node goes first (B43).
func bare(set *machine.MachineSet, m *machine.Machine) bool {
	return policyOf(set) == string(machinev1beta1.RandomMachineSetDeletePolicy) && m.Status.NodeRef == nil && m.Spec.ProviderID == nil && !failed(m)
}

func policyOf(set *machine.MachineSet) string {
	return cmp.Or(set.Spec.DeletePolicy, string(machinev1beta1.RandomMachineSetDeletePolicy))
}

func failed(m *machine.Machine) bool {
	return m.Status.ErrorReason != nil || m.Status.ErrorMessage != nil
}

// emptied reports that an autoscaler is about to remove m's Node: who scales the set down meanwhile loses that one, and not a full one beside it.
func emptied(s snapshot.Snapshot, m *machine.Machine) bool {
	n := nodeOf(s, m)
	return n != nil && slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Key == machine.TaintToBeDeleted })
}

// sickAfter is how long a Node that was Ready is not before its Machine counts as sick: who merely boots anew is back by then, and health
// checks usually wait for as long. joinsFor is how long a kubelet that has registered may say first that it is not.
const (
	sickAfter = 5 * time.Minute
	joinsFor  = time.Minute
)

// sick reports that m does not work: it failed, is in flight of a MachineHealthCheck, or has a Node that was Ready and has not been for
// five minutes. Who scales a set down loses that one, and not one that works beside one that its health check deletes next. Who merely
// joins is none of them, nor whose host people power-cycle, nor whom they keep, sick as it is: which goes of those is the policy's word.
func sick(s snapshot.Snapshot, m *machine.Machine) bool {
	_, wished := m.Annotations[machine.AnnotationExternalRepair]
	switch claimed := m.Annotations[machine.AnnotationRemediatedBy] != ""; {
	case kept(s, m):
		return false
	case claimed || failed(m):
		return true
	case wished || machine.Restarting(m):
		return false
	}
	n := nodeOf(s, m)
	if n == nil {
		return false
	}
	c := machine.NodeCondition(n, corev1.NodeReady)
	joins := c == nil || !c.LastTransitionTime.After(n.CreationTimestamp.Add(joinsFor))
	return !joins && c.Status != corev1.ConditionTrue && !s.Now.Before(c.LastTransitionTime.Add(sickAfter))
}

// kept reports that people want to look at m, or to keep it, sick as it is: for no longer than others wait for that.
func kept(s snapshot.Snapshot, m *machine.Machine) bool {
	return machine.Kept(m, machine.SickSince(m, nodeOf(s, m)), s.Now)
}

// unread says that nobody knows who was named to go, or "": the policy would choose another, who works, and the emptied one stay.
func unread(set *machine.MachineSet) string {
	if _, err := machine.Victims(set); err != nil {
		return fmt.Sprintf("metadata.%v: the set loses no Machine until that is mended or taken away", err)
	}
	return ""
}

func reason(set *machine.MachineSet, c candidate) string {
	switch c.class() {
	case neverCreated:
		return "never created"
	case victim:
		return c.machine.Name + " is the autoscaler's victim"
	case markedForDeletion:
		return c.machine.Name + " is marked for deletion"
	case beingEmptied:
		return c.machine.Name + " is being emptied by the autoscaler"
	case doesNotWork:
		return c.machine.Name + " does not work"
	case nothingOnRecord, byPolicy, leftAlone:
	}
	return c.machine.Name + " by policy " + policyOf(set)
}

// marked reports the delete annotation or its old alias, with any value that is not empty (B45).
func marked(m *machine.Machine) bool {
	return m.Annotations[machine.AnnotationDelete] != "" || m.Annotations[machine.AnnotationDeleteAlias] != ""
}

// ageScale is OpenShift's constant: the score of age rises to half of its way in about 69 days (B44).
const ageScale = 8_640_000.0

// score ranks a Machine by the set's policy; the highest goes first (B43, B44). Ages count from the newest Machine, so
// that the order does not depend on when it is asked for.
func score(set *machine.MachineSet, c candidate, newest time.Time) float64 {
	m := c.machine
	if m == nil {
		return 0
	}
	if failed(m) && !c.kept {
		return 100
	}
	age := newest.Sub(m.CreationTimestamp.Time).Seconds()
	oldest := 50 * (1 - math.Exp(-age/ageScale))
	switch set.Spec.DeletePolicy {
	case string(machinev1beta1.OldestMachineSetDeletePolicy):
		return oldest
	case string(machinev1beta1.NewestMachineSetDeletePolicy):
		return 100 - oldest - 1
	}
	if m.Status.NodeRef == nil && !c.kept {
		return 40
	}
	return 20
}

func newestOf(cs []candidate) time.Time {
	var t time.Time
	for _, c := range cs {
		if c.machine != nil && c.machine.CreationTimestamp.After(t) {
			t = c.machine.CreationTimestamp.Time
		}
	}
	return t
}
