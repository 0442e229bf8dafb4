// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	kjson "sigs.k8s.io/json"
)

// mostCounted is the most failures that a record counts: whoever writes there may write anything, and one more than the largest number
// that there is would be a record that nobody can read again.
const mostCounted = 1_000_000

// ErrNewer says that a newer version wrote a record: whoever reads it leaves it alone, with what it is of, and asks nobody to mend it
// (RELIABILITY G9).
var ErrNewer = errors.New("a newer version wrote it")

// ReadRecord decodes what functions keep in annotations and ConfigMaps. Whoever may write there may write anything: an unknown
// field, one that is said twice or in other letters, and whatever follows the record are errors.
func ReadRecord(text string, into any) error {
	wrong, err := kjson.UnmarshalStrict([]byte(text), into)
	return errors.Join(append(wrong, err)...)
}

// ReadSchema is ReadRecord for a record that says its schema, in a field of it that schema points to. One above own is ErrNewer, whatever its
// fields; any other but own is an error, too.
func ReadSchema(text string, into any, schema *int, own int) error {
	err := ReadRecord(text, into)
	if err == nil && *schema == own {
		return nil
	}
	return cmp.Or(newer(text, own), err, fmt.Errorf("schema %d, want %d", *schema, own))
}

// newer returns an ErrNewer where a record says that its schema is above own, whatever else it says, else nil.
func newer(text string, own int) error {
	var version struct {
		Schema int `json:"schema"`
	}
	if err := json.Unmarshal([]byte(text), &version); err != nil || version.Schema <= own {
		return nil //nolint:nilerr // who reads the record says what is wrong with it
	}
	return fmt.Errorf("schema %d, want %d: %w", version.Schema, own, ErrNewer)
}

// Records reads records, each text once: whoever decides asks for one many times for each time that it changes. What was read
// is answered again, so nobody changes it. It is not safe for concurrent use. A nil Records remembers nothing.
type Records struct {
	known map[any]any // by what was read: a result
}

// result is what reading something came to.
type result[T any] struct {
	record T
	err    error
}

// NewRecords returns a Records that has read nothing.
func NewRecords() *Records { return &Records{map[any]any{}} }

// Read returns how much was read.
func (r *Records) Read() int { return len(r.known) }

// Remembered returns what read does, which depends on nothing but key. Each reader has a type of key that is its own.
func Remembered[K comparable, T any](r *Records, key K, read func() (T, error)) (T, error) {
	if r == nil {
		return read()
	}
	was, ok := r.known[key].(result[T])
	if !ok {
		was.record, was.err = read()
		r.known[key] = was
	}
	return was.record, was.err
}

// What the functions of this package read.
type (
	intentText string
	ledgerText string
	sweepText  string
)

// Intent returns what [ParseIntent] does.
func (r *Records) Intent(m *Machine) (*Intent, error) {
	text, ok := m.Annotations[AnnotationIntent]
	if !ok {
		return ParseIntent(m)
	}
	return Remembered(r, intentText(text), func() (*Intent, error) { return ParseIntent(m) })
}

// Ledger returns what [ParseLedger] does of the set's record.
func (r *Records) Ledger(set *MachineSet) (Ledger, error) {
	text := set.Annotations[AnnotationLedger]
	return Remembered(r, ledgerText(text), func() (Ledger, error) { return ParseLedger(text) })
}

// Sweep returns what [SweepStateIn] does.
func (r *Records) Sweep(cm *corev1.ConfigMap) (SweepState, error) {
	if cm == nil {
		return SweepStateIn(cm)
	}
	return Remembered(r, sweepText(cm.Data[SweepKey]), func() (SweepState, error) { return SweepStateIn(cm) })
}
