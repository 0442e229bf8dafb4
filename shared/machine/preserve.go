// SPDX-License-Identifier: Apache-2.0

package machine

import "time"

// preserveFor is how long a sick Machine is preserved unless its annotation says otherwise.
const preserveFor = 96 * time.Hour

// PreservedUntil returns until when people want to look at m, which is to go since due (D19): a time, or so long after that; the zero time
// if they do not. Whoever heals or scales takes no sick Machine away before.
func PreservedUntil(m *Machine, due time.Time) time.Time {
	text, ok := m.Annotations[AnnotationPreserve]
	if !ok || text == "false" {
		return time.Time{}
	}
	if until, err := time.Parse(time.RFC3339, text); err == nil {
		return until
	}
	if d, err := time.ParseDuration(text); err == nil {
		return due.Add(d)
	}
	return due.Add(preserveFor) // whatever it says, it does not say that the Machine may go
}
