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
	sick    bool             // it failed, or does not work
}

// shrink retires what is too much: ordinals that have no Machine yet, then the victims that evaluate-autoscale named,
// then by annotation, then who is sick, then by the set's policy (B43–B46). Ties go to the lower ordinal. Ordinals out of reach are not
// counted.
func shrink(set *machine.MachineSet, l machine.Ledger, m members, victims []machine.Victim, outOfReach machine.Ordinals, want int,
	sick func(*machine.Machine) bool, why *causes,
) machine.Ledger {
	surplus := len(l.Active) - len(outOfReach) - want
	if surplus <= 0 {
		return l
	}
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
			c.sick = sick(c.machine)
		}
		all = append(all, c)
	}
	newest := newestOf(all)
	slices.SortStableFunc(all, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(class(a), class(b)),
			-cmp.Compare(score(set, a.machine, newest), score(set, b.machine, newest)),
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

// class orders by what the removal costs and by who asked for it.
func class(c candidate) int {
	switch {
	case c.machine == nil:
		return 0
	case c.victim:
		return 1
	case marked(c.machine):
		return 2
	case c.sick:
		return 3
	}
	return 4
}

// sickAfter is how long a Node that was Ready is not before its Machine counts as sick.
const sickAfter = time.Minute

// sickIn returns who does not work: whoever failed, is in flight of a MachineHealthCheck, or has a Node that was Ready and has not been for a
// minute. Who scales a set down loses that one, and not one that works beside one that its health check deletes next. Who merely joins
// is none of them: which goes of those is the policy's word.
func sickIn(s snapshot.Snapshot) func(*machine.Machine) bool {
	return func(m *machine.Machine) bool {
		if m.Status.ErrorReason != nil || m.Status.ErrorMessage != nil || m.Annotations[machine.AnnotationRemediatedBy] != "" {
			return true
		}
		ref := m.Status.NodeRef
		if ref == nil {
			return false
		}
		n := s.Node(ref.Name)
		if n == nil || n.UID != ref.UID {
			return false
		}
		c := machine.NodeCondition(n, corev1.NodeReady)
		joins := c == nil || !c.LastTransitionTime.After(n.CreationTimestamp.Add(sickAfter)) // a kubelet says first of itself that it is not
		return !joins && c.Status != corev1.ConditionTrue && !s.Now.Before(c.LastTransitionTime.Add(sickAfter))
	}
}

// unread says that nobody knows who was named to go, or "": the policy would choose another, who works, and the emptied one stay.
func unread(set *machine.MachineSet) string {
	if _, err := machine.Victims(set); err != nil {
		return fmt.Sprintf("metadata.%v: the set loses no Machine until that is mended or taken away", err)
	}
	return ""
}

func reason(set *machine.MachineSet, c candidate) string {
	switch class(c) {
	case 0:
		return "never created"
	case 1:
		return c.machine.Name + " is the autoscaler's victim"
	case 2:
		return c.machine.Name + " is marked for deletion"
	case 3:
		return c.machine.Name + " does not work"
	}
	policy := cmp.Or(set.Spec.DeletePolicy, string(machinev1beta1.RandomMachineSetDeletePolicy))
	return c.machine.Name + " by policy " + policy
}

// marked reports the delete annotation or its old alias, with any value that is not empty (B45).
func marked(m *machine.Machine) bool {
	return m.Annotations[machine.AnnotationDelete] != "" || m.Annotations[machine.AnnotationDeleteAlias] != ""
}

// ageScale is OpenShift's constant: the score of age rises to half of its way in about 69 days (B44).
const ageScale = 8_640_000.0

// score ranks a Machine by the set's policy; the highest goes first (B43, B44). Ages count from the newest Machine, so
// that the order does not depend on when it is asked for.
func score(set *machine.MachineSet, m *machine.Machine, newest time.Time) float64 {
	if m == nil {
		return 0
	}
	if m.Status.ErrorReason != nil || m.Status.ErrorMessage != nil {
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
	if m.Status.NodeRef == nil {
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
