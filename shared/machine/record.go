// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// ReadRecord decodes what functions keep in annotations and ConfigMaps. Whoever may write there may write anything: an unknown
// field, one that is said twice or in other letters, and whatever follows the record are errors.
func ReadRecord(text string, into any) error {
	wrong, err := kjson.UnmarshalStrict([]byte(text), into)
	return errors.Join(append(wrong, err)...)
}

// Records reads records, each text once: whoever decides asks for one many times for each time that it changes. What was read
// is answered again, so nobody changes it. It is not safe for concurrent use. A nil Records remembers nothing.
type Records struct {
	intents map[string]read[*Intent]
	ledgers map[string]read[Ledger]
	sweeps  map[string]read[SweepState]
}

// read is what reading a text came to.
type read[T any] struct {
	record T
	err    error
}

// NewRecords returns a Records that has read nothing.
func NewRecords() *Records {
	return &Records{map[string]read[*Intent]{}, map[string]read[Ledger]{}, map[string]read[SweepState]{}}
}

// Read returns how many texts were read.
func (r *Records) Read() int { return len(r.intents) + len(r.ledgers) + len(r.sweeps) }

// Intent returns what [ParseIntent] does.
func (r *Records) Intent(m *Machine) (*Intent, error) {
	text, ok := m.Annotations[AnnotationIntent]
	if r == nil || !ok {
		return ParseIntent(m)
	}
	return once(r.intents, text, func() (*Intent, error) { return ParseIntent(m) })
}

// Ledger returns what [ParseLedger] does of the set's record.
func (r *Records) Ledger(set *MachineSet) (Ledger, error) {
	text := set.Annotations[AnnotationLedger]
	if r == nil {
		return ParseLedger(text)
	}
	return once(r.ledgers, text, func() (Ledger, error) { return ParseLedger(text) })
}

// Sweep returns what [SweepStateIn] does.
func (r *Records) Sweep(cm *corev1.ConfigMap) (SweepState, error) {
	if r == nil || cm == nil {
		return SweepStateIn(cm)
	}
	return once(r.sweeps, cm.Data[SweepKey], func() (SweepState, error) { return SweepStateIn(cm) })
}

func once[T any](known map[string]read[T], text string, parse func() (T, error)) (T, error) {
	was, ok := known[text]
	if !ok {
		was.record, was.err = parse()
		known[text] = was
	}
	return was.record, was.err
}
