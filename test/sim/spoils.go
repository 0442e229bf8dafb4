// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// mendedIn is the round of calm in which people mend a template late.
const mendedIn = quickRounds + 8

// mendLate has people mend the template where they take their time. What had failed of it by then is for the check.
func (p *Play) mendLate(round int) {
	set := p.set()
	if !p.Spoils || round != mendedIn || set == nil {
		return
	}
	for _, m := range p.first() {
		p.forCheck[m.UID] = invalid(m) && machine.Controls(set, m)
	}
	if !p.spoils() {
		clear(p.forCheck) // it was as it should be for long
		return
	}
	p.tracef("people mend the template")
	p.templateSeen = time.Time{}
	p.editSet(func(s *machine.MachineSet) { mend(&s.Spec.Template.Spec) })
}

// spoils reports whether the template is one that no cloud can read.
func (p *Play) spoils() bool {
	set := p.set()
	if !p.Spoils || set == nil || set.Spec.Template.Spec.ProviderSpec.Value == nil {
		return false
	}
	was := string(set.Spec.Template.Spec.ProviderSpec.Value.Raw)
	return mends.Replace(was) != was
}

// handles reports whether whoever spoilt a spec is to delete what failed of it: no check saw it before it was mended, or it was made by who
// had read the template before.
func (p *Play) handles(m *machine.Machine) bool {
	return p.spoilt && invalid(m) && !p.spoils() && !p.forCheck[m.UID]
}

// sawTemplate remembers that a check that wrote what it remembers had read the template as it is.
func (p *Play) sawTemplate(q *proc) {
	if set := p.set(); p.Spoils && p.templateSeen.IsZero() && set != nil && q.set != nil && machine.TemplateOf(q.set) == machine.TemplateOf(set) {
		p.templateSeen = p.clock
	}
}

// unmended reports whether m can never work, and was made after the check had seen the template that its set has (R-B27). What is made between
// a change and that look counts as older.
func (p *Play) unmended(m *machine.Machine) bool {
	set := p.set()
	return p.Spoils && set != nil && machine.Controls(set, m) && invalid(m) && !p.templateSeen.IsZero() && m.CreationTimestamp.Time.After(p.templateSeen) &&
		!p.reset && !p.restored && !p.tampered
}
