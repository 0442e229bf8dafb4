// SPDX-License-Identifier: Apache-2.0

package plan

import "slices"

// Untried returns p without the sequences that hold an action which was already tried in this invocation: what was
// refused once is not asked again before the next event or scan. Their notes go with them; but of a change that the API
// server refused, its object is told: whoever waits for what was to be written learns why it is not. p is not modified.
func (p Plan) Untried(outcomes map[Key]Outcome) Plan {
	p.Notes = slices.Clip(p.Notes)
	p.Do = slices.DeleteFunc(slices.Clone(p.Do), func(s Sequence) bool {
		return slices.ContainsFunc(s.Do, func(a Action) bool {
			o, tried := outcomes[a.Key()]
			if n := changed(a); tried && o.Result == Refused && n != nil {
				p.Notes = append(p.Notes, Warning(n, "FailedUpdate", "cannot be written: "+o.Message))
			}
			return tried
		})
	})
	return p
}

// changed returns the object that a changes, or nil if a does something else.
func changed(a Action) Object {
	switch a := a.(type) {
	case Update:
		return a.Old
	case UpdateStatus:
		return a.Old
	case Create, Delete, Evict, Approve, CreateInstance, DeleteInstance, UpdateInstance, PowerCycle:
	}
	return nil
}
