// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// preserveFor is how long a sick Machine is preserved unless its annotation says otherwise.
const preserveFor = 96 * time.Hour

// Kept reports that at now people want m to stay, which is to go since due, sick as it is: whoever heals or scales takes it away neither for
// that nor before others.
func Kept(m *Machine, due, now time.Time) bool {
	return Skipped(m) || now.Before(PreservedUntil(m, due))
}

// Skipped reports that people do not want m to be taken away because it is sick, however long it is so.
func Skipped(m *Machine) bool {
	_, skip := m.Annotations[AnnotationSkipRepair]
	return skip
}

// PreservedUntil returns until when people want to look at m, which is to go since due (D19): a time, or so long after that; the zero time
// if they do not.
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

// SickSince returns since when a Machine that is sick is so, by what it and its Node say, which is nil where there is none: it Failed, its Node
// is not Ready, or else its check found it sick. Where nobody says when, that is since it was made.
func SickSince(m *Machine, n *corev1.Node) time.Time {
	told := FindCondition(m.Status.Conditions, ConditionHealthy)
	var ready *corev1.NodeCondition
	if n != nil {
		ready = NodeCondition(n, corev1.NodeReady)
	}
	switch {
	case Phase(m) == PhaseFailed && m.Status.LastUpdated != nil:
		return m.Status.LastUpdated.Time
	case ready != nil && ready.Status != corev1.ConditionTrue && !ready.LastTransitionTime.IsZero():
		return ready.LastTransitionTime.Time
	case told != nil && told.Status == corev1.ConditionFalse:
		return told.LastTransitionTime.Time
	}
	return m.CreationTimestamp.Time
}
