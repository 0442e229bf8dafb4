// SPDX-License-Identifier: Apache-2.0

package plan

import "slices"

// Untried returns p without the sequences that hold an action which was already tried in this invocation: what was
// refused once is not asked again before the next event or scan. Their notes go with them; p is not modified.
func (p Plan) Untried(outcomes map[Key]Outcome) Plan {
	p.Do = slices.DeleteFunc(slices.Clone(p.Do), func(s Sequence) bool {
		return slices.ContainsFunc(s.Do, func(a Action) bool {
			_, tried := outcomes[a.Key()]
			return tried
		})
	})
	return p
}
