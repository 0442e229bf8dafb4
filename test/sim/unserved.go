// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"github.com/machine-functions/machine-functions/shared/machine"
)

// unserve has people spoil what the set selects, so that nobody makes Machines for it, or mend that.
func (p *Play) unserve(how int) {
	set := p.set()
	switch {
	case set == nil:
		return
	case p.unselected > 0:
		p.serveAgain()
		return
	}
	p.tracef("people spoil what the set selects: %s", []string{"its selector is of others", "its selector is of all", "its template is of others"}[how])
	p.unselected = p.born + 1
	p.editSet(func(s *machine.MachineSet) {
		switch how { // what a backup brings back of another time does not match either
		case 0:
			s.Spec.Selector.MatchLabels = map[string]string{machine.LabelCluster: "sim", machine.LabelMachineSet: "nobody"}
		case 1:
			s.Spec.Selector.MatchLabels = nil
		default:
			s.Spec.Template.Labels = map[string]string{machine.LabelCluster: "sim", machine.LabelMachineSet: "others"}
		}
	})
}

// serveAgain has people mend what the set selects.
func (p *Play) serveAgain() {
	set := p.set()
	if p.unselected = 0; !p.Unserves || set == nil {
		return
	}
	if _, err := machine.SelectorOf(set); err == nil {
		return
	}
	p.tracef("people mend what the set selects")
	p.editSet(func(s *machine.MachineSet) {
		fresh := Set(setName, 0)
		s.Spec.Selector, s.Spec.Template.Labels = fresh.Spec.Selector, fresh.Spec.Template.Labels
	})
}

// unserved reports whether nobody makes another Machine in the place of m, and q, who deletes it, could know that: it began since, or read
// the set so.
func (p *Play) unserved(q *proc, m *machine.Machine) bool {
	set := p.set()
	if set == nil || !machine.Controls(set, m) || machine.Unserved(set) == "" {
		return false
	}
	_, err := machine.SelectorOf(set)
	read := q.set != nil && q.set.UID == set.UID && machine.Unserved(q.set) != ""
	return read || p.condemned > 0 && q.id >= p.condemned || p.unselected > 0 && err != nil && q.id >= p.unselected
}
