// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// maxCreates bounds the creations of one invocation; each of them wakes the next.
const maxCreates = 20

// execute carries out the committed ledger: every active ordinal has its Machine, every other Machine goes. Each step
// may be repeated by anybody.
func execute(s snapshot.Snapshot, set *machine.MachineSet, l machine.Ledger, m members) []plan.Sequence {
	var all []plan.Sequence
	do := func(a plan.Action) { all = append(all, plan.Sequence{Do: []plan.Action{a}}) }
	ordinalOf, told := l.Finder(set.Name), committed(s, set)
	for _, x := range m.released {
		if k, ok := ordinalOf(x); ok && l.Active.Has(k) { // the ledger is to say first that it is let go
			continue
		}
		do(plan.Update{Old: x, New: withoutOwner(x, set), Why: "labels no longer match " + set.Name})
	}
	for _, x := range m.orphans {
		k, ok := ordinalOf(x)
		if !ok || !l.Active.Has(k) {
			continue
		}
		a := plan.Update{Old: x, New: owned(x.DeepCopy(), set, k), Why: "adopted by " + set.Name}
		if o, _ := adoption(s, x); o.Result == plan.Refused {
			all = append(all, plan.Sequence{Notes: []plan.Note{plan.Warning(set, "ReconcileError", fmt.Sprintf("adopt machine %s: %s", x.Name, o.Message))}})
			continue
		}
		do(a)
	}
	for _, x := range m.alive() {
		k, ok := ordinalOf(x)
		switch {
		case ok && l.Retired(k):
			all = append(all, remove(s, set, x, k, told))
		case ok && mislabeled(x, k):
			do(plan.Update{Old: x, New: labeled(x.DeepCopy(), k), Why: fmt.Sprintf("it stands at ordinal %d", k)})
		}
	}
	if len(l.Active)-len(outOfReach(s, set, l, m)) > wanted(set, l) {
		return all // an orphan comes first: then the ordinals without a Machine are those that go
	}
	return append(all, creations(s, set, l, m)...)
}

// remove deletes x, whose ordinal k is retired, as it was read, or tells that it stays. Where this invocation wrote the ledger, that it goes is told
// with that: who chose it names it, as [decide] does who stood there before.
func remove(s snapshot.Snapshot, set *machine.MachineSet, x *machine.Machine, k int, told bool) plan.Sequence {
	a := plan.Delete{Object: x, IfUnchanged: true, Why: fmt.Sprintf("ordinal %d is retired", k)}
	if why, refused := s.Refused(a); refused {
		stays := fmt.Sprintf("ordinal %d of %s is retired, but it cannot be deleted: %s", k, set.Name, why)
		return plan.Sequence{Notes: []plan.Note{
			plan.Warning(set, "ReconcileError", fmt.Sprintf("delete machine %s: %s", x.Name, why)),
			plan.Warning(x, "FailedDelete", stays),
		}}
	}
	seq := plan.Sequence{Do: []plan.Action{a}}
	if !told {
		seq.Notes = []plan.Note{goes(set, x, k)}
	}
	return seq
}

// goes tells that x goes, as of one that a backup brought back.
func goes(set *machine.MachineSet, x *machine.Machine, k int) plan.Note {
	return plan.Normal(x, eventRetire, fmt.Sprintf("ordinal %d of %s is retired, and nothing stands there again", k, set.Name))
}

// committed reports whether this invocation wrote the set's ledger.
func committed(s snapshot.Snapshot, set *machine.MachineSet) bool {
	for key := range s.Outcomes { // it is named by the version that it had before
		if strings.HasPrefix(string(key), "update "+plan.NameOf(set)+"@") {
			return true
		}
	}
	return false
}

// adoption returns what became of the adoption of x in this invocation, if it was tried.
func adoption(s snapshot.Snapshot, x *machine.Machine) (plan.Outcome, bool) {
	return s.Outcome(plan.Update{Old: x})
}

// creations starts slowly: one Machine, then two, then four, so that a cluster that refuses them is asked once. A name
// that is taken by a foreign object burns the ordinal, and counts as a failure; if that is gone by now, or what was made,
// the next look makes the Machine.
func creations(s snapshot.Snapshot, set *machine.MachineSet, l machine.Ledger, m members) []plan.Sequence {
	var missing []plan.Action
	created := 0
	for _, k := range l.Active {
		if m.at(l, set, k) != nil {
			if _, ok := s.Outcomes[plan.Key("create "+plan.Name("Machine", set.Namespace, l.Name(set.Name, k)))]; ok {
				created++
			}
			continue
		}
		a := plan.Create{Object: inCluster(newMachine(set, l, k), s.InfrastructureName()), Why: fmt.Sprintf("ordinal %d of %s", k, set.Name)}
		switch o, tried := s.Outcome(a); {
		case tried && o.Result == plan.Done && s.Machine(set.Namespace, a.Object.GetName()) == nil: // and is gone again
			created++
			continue
		case tried && o.Result == plan.Exists && s.Machine(set.Namespace, a.Object.GetName()) == nil:
			continue
		case tried && o.Result == plan.Exists:
			next := forgive(set, l, m) // which nobody may have written since
			if x := s.Machine(set.Namespace, a.Object.GetName()); !sameRow(next, x) {
				next = failedAgain(s.Now, set, next) // whoever made it another's may do so with all
			}
			next.Active, next.Rebuilt = l.Active.Without(k), "" // whoever rebuilt it makes nobody
			var why causes
			why.retire(k, "the name "+a.Object.GetName()+" is taken by another object")
			return []plan.Sequence{commit(set, change{ledger: next, why: brief(why.all), told: why.notes(set)})}
		case tried:
			return []plan.Sequence{{Notes: []plan.Note{
				plan.Warning(set, "ReconcileError", fmt.Sprintf("create machine %s: %s", a.Object.GetName(), cmp.Or(o.Message, "it is there, and not the set's by its labels or its owner"))),
			}}}
		}
		missing = append(missing, a)
	}
	var all []plan.Sequence
	for _, a := range missing[:min(len(missing), created+1, max(0, maxCreates-created))] {
		all = append(all, plan.Sequence{Do: []plan.Action{a}})
	}
	return all
}

// newMachine returns the Machine of an ordinal: the template's labels, annotations and spec, without the
// id of another's instance, with the owner and the finalizer from the start, so that there is no moment without them (2a.2, S15, S17).
func newMachine(set *machine.MachineSet, l machine.Ledger, k int) *machine.Machine {
	t := set.Spec.Template.DeepCopy()
	m := &machine.Machine{
		ObjectMeta: metav1.ObjectMeta{
			Name:        l.Name(set.Name, k),
			Namespace:   set.Namespace,
			Labels:      t.Labels,
			Annotations: t.Annotations,
			Finalizers:  []string{machine.Finalizer},
		},
		Spec: t.Spec,
	}
	m.Spec.ProviderID = nil // an instance is one Machine's (R-S3)
	return owned(m, set, k)
}

// inCluster names m's cluster where the template says nothing of it: OpenShift's webhook does so too (SPEC S79, S91).
func inCluster(m *machine.Machine, name string) *machine.Machine {
	if _, told := m.Labels[machine.LabelCluster]; !told && name != "" {
		m.Labels[machine.LabelCluster] = name
	}
	return m
}

// owned makes m a member of the set at ordinal k.
func owned(m *machine.Machine, set *machine.MachineSet, k int) *machine.Machine {
	m = labeled(m, k)
	r, _ := plan.ResourceOf("MachineSet")
	m.OwnerReferences = append(m.OwnerReferences, *metav1.NewControllerRef(set, r.Group.WithKind(string(r.Kind))))
	if !slices.Contains(m.Finalizers, machine.Finalizer) && !machine.IsPaused(m) { // whoever moves it may have taken that off
		m.Finalizers = append(m.Finalizers, machine.Finalizer)
	}
	return m
}

// labeled shows m's ordinal on m.
func labeled(m *machine.Machine, k int) *machine.Machine {
	m.Labels = maps.Clone(m.Labels)
	if m.Labels == nil {
		m.Labels = map[string]string{}
	}
	m.Labels[machine.LabelOrdinal] = strconv.Itoa(k)
	return m
}

func mislabeled(m *machine.Machine, k int) bool {
	return m.Labels[machine.LabelOrdinal] != strconv.Itoa(k)
}

func withoutOwner(m *machine.Machine, set *machine.MachineSet) *machine.Machine {
	next := m.DeepCopy()
	next.OwnerReferences = slices.DeleteFunc(next.OwnerReferences, func(r metav1.OwnerReference) bool { return r.UID == set.UID })
	delete(next.Labels, machine.LabelOrdinal)
	return next
}
