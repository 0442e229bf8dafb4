// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// findRetired finds the Machines of a group that its ledger has chosen to go, and that nobody has deleted yet, with their Nodes: whoever
// deletes them may be refused that for good. They never come back, so that they are on their way out from then on, whoever lowered the target
// (SPEC C46). Nothing is known of a ledger that cannot be read, or that scale-machineset is to make anew: by that all who are there stay.
func (sc *scan) findRetired(g *group) {
	l, err := sc.Records.Ledger(g.set)
	selector, wrong := metav1.LabelSelectorAsSelector(&g.set.Spec.Selector)
	if err != nil || wrong != nil || l.SetUID != g.set.UID {
		return
	}
	var all []member
	ordinalOf := l.Finder(g.set.Name)
	for _, m := range g.members {
		k, ok := ordinalOf(m.machine)
		if ok && k >= l.Next {
			return // the ledger went backwards
		}
		goes := ok && !l.Active.Has(k) && m.machine.DeletionTimestamp == nil
		if goes && selector.Matches(labels.Set(m.machine.Labels)) && !l.MadeAnew(m.machine, k) { // others are let go, or adopted
			all = append(all, m)
		}
	}
	for _, m := range all {
		sc.retired[m.machine.UID] = true
		if m.node != nil {
			sc.retired[m.node.UID] = true
		}
	}
}

// findNamed finds the Machines of a group that its set names to go.
func (sc *scan) findNamed(g *group) {
	victims, _ := machine.Victims(g.set) // unreadable: the set loses nobody
	is := namedIn(victims)
	for _, m := range g.members {
		if is(m.machine) {
			sc.named[m.machine.UID] = true
		}
	}
}

// namedIn returns a test of whether a Machine of their set is one of the victims. Of those with one name the last counts.
func namedIn(victims []machine.Victim) func(*machine.Machine) bool {
	by := make(map[string]machine.Victim, len(victims))
	for _, v := range victims {
		by[v.Name] = v
	}
	return func(m *machine.Machine) bool {
		v, named := by[m.Name]
		return named && v.Is(m)
	}
}
