// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// backoffBase and backoffMax bound the pause after Machines that failed before they ever ran (2a.8, R-B27).
	backoffBase = 10 * time.Second
	backoffMax  = machine.LongestPause
)

// readLedger returns the set's ledger, or why it has to be rebuilt. The error is machine.ErrNewer: nothing may be
// done to the set.
func readLedger(s snapshot.Snapshot, set *machine.MachineSet, m members) (l machine.Ledger, rebuild string, err error) {
	_, ok := set.Annotations[machine.AnnotationLedger]
	if !ok && len(m.owned)+len(m.released) == 0 {
		return machine.NewLedger(set.UID), "", nil
	}
	l, err = s.Records.Ledger(set)
	switch {
	case errors.Is(err, machine.ErrNewer):
		return l, "", err
	case !ok:
		return l, "ledger is missing: rebuild it", nil
	case err != nil:
		return l, "ledger is unreadable: rebuild it", nil //nolint:nilerr // it is told as the reason to rebuild
	case l.SetUID != set.UID:
		return l, "ledger is another set's: rebuild it", nil
	case beyond(l, set, m.owned):
		return l, "ledger went backwards: rebuild it", nil
	}
	return l, "", nil
}

// rebuild returns the ledger that says what is there: no Machine is created or deleted for it. Ordinals of Machines
// that are on their way out stay retired; whoever no longer matches is let go by the next commit, which says so.
func rebuild(s snapshot.Snapshot, set *machine.MachineSet, m members) machine.Ledger {
	l := machine.NewLedger(set.UID)
	l.Rebuilt = s.Invocation
	ordinalOf := l.Finder(set.Name) // by what is on their labels: of no ordinal anything else is known yet
	for _, x := range slices.Concat(m.owned, m.released, m.orphans) {
		if k, ok := ordinalOf(x); ok && k >= l.Next {
			l.Next = k + 1
		}
	}
	ordinalOf = l.Finder(set.Name)
	var strangers []*machine.Machine
	for _, x := range m.alive() {
		if k, ok := ordinalOf(x); ok {
			l.Active = l.Active.With(k)
		} else {
			strangers = append(strangers, x)
		}
	}
	for _, x := range m.released {
		if k, ok := ordinalOf(x); ok {
			l.Active = l.Active.With(k)
		}
	}
	adopt(&l, strangers)
	return l
}

// adopt gives Machines that were made elsewhere the next ordinals, and takes from them those that were retired. It returns
// the Machines that the ledger has no room for.
func adopt(l *machine.Ledger, all []*machine.Machine) []*machine.Machine {
	adopted, anew := map[int]machine.Member{}, map[machine.Member]bool{}
	for _, x := range all {
		anew[machine.Member{Name: x.Name, UID: x.UID}], anew[machine.Member{Name: x.Name}] = true, true
	}
	for k, a := range l.Adopted {
		if !anew[a] {
			adopted[k] = a
		}
	}
	if len(all) == 0 || taken(adopted).full() {
		return all
	}
	l.Adopted, l.Active = adopted, slices.Clip(l.Active)
	for i, room := 0, taken(adopted); i < len(all); i++ {
		x := machine.Member{Name: all[i].Name, UID: all[i].UID}
		if !room.take(x) {
			return all[i:]
		}
		adopted[l.Next] = x
		l.Active, l.Next = append(l.Active, l.Next), l.Next+1
	}
	return nil
}

// register writes down the orphans that stand at an ordinal by their name alone, before they get their owner: who found that name taken by
// a stranger, whose labels match by now, and who adopts it write the set both, so that one of them looks anew (2a.6). Those
// that the ledger has no room for are adopted all the same.
func register(set *machine.MachineSet, l machine.Ledger, m members, why *causes) machine.Ledger {
	ordinalOf, mine, room := l.Finder(set.Name), false, taken(l.Adopted)
	for _, x := range m.orphans {
		k, ok := ordinalOf(x)
		member := machine.Member{Name: x.Name, UID: x.UID}
		if _, registered := l.Adopted[k]; !ok || registered || !l.Active.Has(k) || !room.take(member) {
			continue
		}
		if !mine { // until then it is the snapshot's
			adopted := make(map[int]machine.Member, len(l.Adopted)+1)
			maps.Copy(adopted, l.Adopted)
			l.Adopted, mine = adopted, true
		}
		l.Adopted[k] = member
		why.adopt(x)
	}
	return l
}

// crowded says that the ledger has no room for Machines that are the set's by their labels, or "".
func crowded(set *machine.MachineSet, l machine.Ledger, m members) string {
	if !taken(l.Adopted).full() {
		return ""
	}
	if n := len(m.strangers(set, l)); n > 0 {
		return fmt.Sprintf("spec.selector: %d Machines wait to be adopted, a set remembers at most %d that it did not make: "+
			"it neither grows nor shrinks; let another set select them, or delete Machines that were adopted", n, len(l.Adopted))
	}
	return ""
}

// change is what the next write of a set's ledger does.
type change struct {
	ledger machine.Ledger
	want   int    // what spec.replicas becomes where it is left out
	why    string // empty: there is nothing to write
	told   []plan.Note
	// compared says that the Machines that are there were held against those that are wanted, so that victims which
	// are still named were not needed.
	compared bool
}

// decide returns the ledger that the set should have. While an orphan is still to be adopted nobody is chosen to go:
// the policy decides among all, and so do victims, which stay until then. Nor is anybody while victims cannot be read.
// An orphan that may not be adopted is out of the set's hands: it neither goes nor makes others go, and holds nobody up.
func decide(s snapshot.Snapshot, set *machine.MachineSet, l machine.Ledger, m members) change {
	var why causes
	want, before := wanted(set, l), l
	l, wrong := l.Bounded(s.Now)
	if wrong != "" {
		why.add(wrong)
	}
	if set.Spec.Replicas == nil {
		want = leftOut(set, l, m)
		why.add(fmt.Sprintf("spec.replicas is left out: it is %d", want))
	}
	l, released := leave(s.Now, set, forgive(set, l, m), m, &why)
	if released {
		l = hold(s.Now, set, l, m, want, &why)
	}
	l = register(set, l, m, &why)
	strangers := m.strangers(set, l)
	if len(strangers) > 0 && taken(l.Adopted).full() { // who is gone makes room, also where nothing else is to be written
		l = forget(set, l, m)
	}
	waiting := adopt(&l, strangers)
	for _, x := range strangers[:len(strangers)-len(waiting)] {
		why.adopt(x)
	}
	if unbounded(set) != "" { // nobody goes for one that is adopted
		want = max(want, len(l.Active))
	}
	refused := outOfReach(s, set, l, m)
	victims, err := machine.Victims(set)
	known := err == nil || len(l.Active)-len(refused) <= want // who goes, if anybody has to
	compared := len(refused) == len(m.orphans) && len(waiting) == 0 && known
	if compared {
		l = shrink(set, l, m, victims, refused, want, s, &why)
	}
	if len(waiting) == 0 { // else there are more than the ledger knows
		l = grow(s.Now, set, l, m, want, &why)
	}
	if _, ok := set.Annotations[machine.AnnotationVictims]; ok && compared && len(why.all) == 0 {
		why.add("drop victims that nothing has to make room for")
	}
	if len(why.all) > 0 {
		l.Rebuilt = ""
		l = forget(set, l, m)
	}
	told := why.notes(set)
	if ordinalOf := l.Finder(set.Name); len(why.all) > 0 {
		for _, x := range m.alive() {
			if k, ok := ordinalOf(x); ok && before.Retired(k) {
				told = append(told, goes(set, x, k))
			}
		}
	}
	return change{ledger: l, want: want, why: brief(why.all), told: told, compared: compared}
}

// outOfReach returns the ordinals of orphans that may not be adopted: their adoption was refused in this invocation.
func outOfReach(s snapshot.Snapshot, set *machine.MachineSet, l machine.Ledger, m members) machine.Ordinals {
	var refused machine.Ordinals
	for _, x := range m.orphans {
		if o, _ := adoption(s, x); o.Result != plan.Refused {
			continue
		}
		if k, ok := l.OrdinalOf(set.Name, x); ok && l.Active.Has(k) {
			refused = refused.With(k)
		}
	}
	return refused
}

// maxReplicas bounds a set: the ledger of so many still fits into the annotations of an object, whatever was retired between
// them, and a typing error makes no Machines without end.
const maxReplicas = 20_000

// wanted returns how many Machines the set shall have; a number that no set can have changes nothing about it.
func wanted(set *machine.MachineSet, l machine.Ledger) int {
	switch n := set.Spec.Replicas; {
	case n == nil:
		return int(machine.Replicas(set))
	case *n < 0 || *n > maxReplicas:
		return len(l.Active)
	default:
		return int(*n)
	}
}

// leftOut returns what spec.replicas becomes where it is left out: as it is. As long as no ledger of the set's own says that, it is
// every Machine that the set has or is to adopt, so that none of them goes for a number that nobody wrote (R-S4); a new set has one.
func leftOut(set *machine.MachineSet, l machine.Ledger, m members) int {
	if !machine.Unsized(set) {
		return len(l.Active)
	}
	return max(1, len(l.Active)+len(m.orphans))
}

// unbounded says that spec.replicas is a number that no set can have, or "".
func unbounded(set *machine.MachineSet) string {
	if n := set.Spec.Replicas; n != nil && (*n < 0 || *n > maxReplicas) {
		return fmt.Sprintf("spec.replicas: %d is not between 0 and %d: the set keeps the Machines that it has", *n, maxReplicas)
	}
	return ""
}

// leave retires members that are being deleted, whose labels stopped matching, or that were adopted and are gone. A
// member that was created for its ordinal and is absent stays: it was not created yet, or somebody removed it; either
// way it is made again (2a.4). Of two ordinals with one Machine, by names that are alike, that one stays where it stands. Who is let go for its
// labels is written down as that (2a.6); whom the ledger has no room for is let go later. It reports whether a Machine is let go.
func leave(now time.Time, set *machine.MachineSet, l machine.Ledger, m members, why *causes) (next machine.Ledger, released bool) {
	if len(m.released) > 0 {
		if l = forget(set, l, m); l.Adopted == nil { // who was let go before makes room
			l.Adopted = map[int]machine.Member{}
		}
	}
	room := taken(l.Adopted)
	ordinalOf := l.Finder(set.Name) // by what is active now; what is retired here is asked for below
	for _, k := range l.Active {
		x := m.at(l, set, k)
		_, adopted := l.Adopted[k]
		switch {
		case x == nil && !adopted:
			continue
		case x == nil:
			why.free(k, "gone")
		case x.DeletionTimestamp != nil:
			why.free(k, x.Name+" is being deleted")
			l = countFailure(now, set, l, x)
		case slices.Contains(m.released, x):
			gone := machine.Member{Name: x.Name}
			if !adopted && !room.spare(gone) {
				continue
			}
			l.Adopted[k] = gone
			why.retire(k, x.Name+" no longer matches the selector")
			released = true
		default:
			at, ok := ordinalOf(x)
			if !ok || at == k || !l.Active.Has(at) {
				continue
			}
			why.retire(k, fmt.Sprintf("%s stands at ordinal %d", x.Name, at))
		}
		l.Active = l.Active.Without(k)
	}
	return l, released
}

// pauseAfter is how long nothing is created after so many failures in a row.
func pauseAfter(failures int) time.Duration {
	return min(backoffBase<<min(failures-1, 10), backoffMax)
}

// forgive forgets failures once a Machine that was created after the last of them has had a Node, or the template is
// another one: whatever made them fail is over. A Machine that ran before them proves nothing.
func forgive(set *machine.MachineSet, l machine.Ledger, m members) machine.Ledger {
	if l.Failures == 0 || l.NextCreateAt == nil {
		return l
	}
	over := l.FailedTemplate != "" && l.FailedTemplate != machine.TemplateOf(set)
	for _, x := range m.owned {
		over = over || x.Status.NodeRef != nil && x.CreationTimestamp.After(lastFailure(l))
	}
	if over {
		l.Failures, l.NextCreateAt, l.FailedTemplate = 0, nil, ""
	}
	return l
}

func lastFailure(l machine.Ledger) time.Time { return l.NextCreateAt.Add(-pauseAfter(l.Failures)) }

// countFailure makes the next creation wait if x failed before it ever had a Node.
func countFailure(now time.Time, set *machine.MachineSet, l machine.Ledger, x *machine.Machine) machine.Ledger {
	if x.Status.NodeRef != nil || x.Status.ErrorMessage == nil || sameRow(l, x) {
		return l
	}
	return failedAgain(now, set, l)
}

// sameRow reports whether what became of x is counted already. Those that were created before the last failure failed with that one,
// in whatever number and order they are removed, or are found to be another's: a row is longer only by one that was tried again.
func sameRow(l machine.Ledger, x *machine.Machine) bool {
	return l.Failures > 0 && l.NextCreateAt != nil && x.CreationTimestamp.Time.Before(lastFailure(l))
}

// failedAgain makes the next creation wait, for longer each time.
func failedAgain(now time.Time, set *machine.MachineSet, l machine.Ledger) machine.Ledger {
	l.Failures++
	l.NextCreateAt, l.FailedTemplate = new(metav1.NewTime(now.Add(pauseAfter(l.Failures)))), machine.TemplateOf(set)
	return l
}

// paused returns why a set has fewer Machines than it wants, if failures, or labels that many of them lost, have made it pause, or "".
func paused(now time.Time, set *machine.MachineSet, l machine.Ledger) string {
	if len(l.Active) >= wanted(set, l) || l.NextCreateAt == nil || !now.Before(l.NextCreateAt.Time) {
		return ""
	}
	if l.Failures == 0 {
		return "metadata.labels: more than half of the Machines lost those that the set selects by, and are nobody's: the next is created after " +
			machine.Stamp(l.NextCreateAt.Time) + "; whoever has them again by then is adopted"
	}
	return fmt.Sprintf("%d Machines in a row failed before they had a Node, or became another's: the next is created after %s",
		l.Failures, machine.Stamp(l.NextCreateAt.Time))
}

// grow allocates ordinals up to want, unless failures demand a pause. An ordinal whose name another has is passed over:
// names of five characters repeat in large sets, and one Machine cannot count twice.
func grow(now time.Time, set *machine.MachineSet, l machine.Ledger, m members, want int, why *causes) machine.Ledger {
	if len(l.Active) >= want || l.NextCreateAt != nil && now.Before(l.NextCreateAt.Time) {
		return l
	}
	taken := map[string]bool{}
	for name := range m.byName {
		taken[name] = true
	}
	for _, k := range l.Active {
		taken[l.Name(set.Name, k)] = true
	}
	before := len(l.Active)
	l.Active = slices.Clip(l.Active)
	for ; len(l.Active) < want; l.Next++ {
		if name := machine.Name(set.Name, set.UID, l.Next); !taken[name] {
			l.Active, taken[name] = append(l.Active, l.Next), true
		}
	}
	why.add(fmt.Sprintf("allocate %d to have %d", want-before, want))
	return l
}

// commit writes the ledger. With what was compared it consumes the victims: those that it did not take are dropped (B46).
func commit(set *machine.MachineSet, c change) plan.Sequence {
	next := set.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	next.Annotations[machine.AnnotationLedger] = c.ledger.String()
	if next.Spec.Replicas == nil { // kubectl scale and the column DESIRED know no set without a number
		next.Spec.Replicas = new(int32(c.want)) //nolint:gosec // at most what a ledger holds
	}
	if c.compared {
		delete(next.Annotations, machine.AnnotationVictims)
	}
	return plan.Sequence{Do: []plan.Action{plan.Update{Old: set, New: next, Why: c.why}}, Notes: c.told}
}
