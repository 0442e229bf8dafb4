// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// version is another version of the functions, which runs beside today's while an installation is brought up to date: the
// records that it writes, and what it can read (RELIABILITY G9).
type version struct {
	name  string
	read  func(key, text string) string // a record as today's code reads what this version reads
	write func(key, text string) string // a record of today's as this version writes it
	last  bool                          // this version is the newer one: in the end it alone is there
}

// versions are which run at the same time; the first is today's alone.
var versions = []*version{nil, older, newer}

// older is commit d8bfe48 of 22 November 2026, the last one whose intents did not tell of calls without an answer, of the
// generation that was refused, nor of other tags, and whose ledgers did not tell whose failures they count.
var older = &version{name: "d8bfe48", read: readOlder, write: writeOlder}

// newer is a version to come: its records have a schema and a field that nobody knows today.
var newer = &version{name: "next", read: readNewer, write: writeNewer, last: true}

// olderIntent is machine.Intent as it was then.
type olderIntent struct {
	Schema    int             `json:"schema"`
	Attempt   int             `json:"attempt"`
	Token     string          `json:"token"`
	Account   string          `json:"account"`
	StartedAt metav1.Time     `json:"startedAt"`
	Holder    string          `json:"holder,omitempty"`
	Until     *metav1.Time    `json:"until,omitempty"`
	NotBefore *metav1.Time    `json:"notBefore,omitempty"`
	Outcome   string          `json:"outcome,omitempty"`
	Failures  int             `json:"failures,omitempty"`
	Code      string          `json:"code,omitempty"`
	Message   string          `json:"message,omitempty"`
	Instance  string          `json:"instance,omitempty"`
	Request   json.RawMessage `json:"request,omitempty"`
	Progress  []byte          `json:"progress,omitempty"`
}

// olderLedger is machine.Ledger as it was then.
type olderLedger struct {
	Schema       int                    `json:"schema"`
	SetUID       types.UID              `json:"setUID"`
	Next         int                    `json:"next"`
	Active       machine.Ordinals       `json:"active"`
	Adopted      map[int]machine.Member `json:"adopted,omitempty"`
	Failures     int                    `json:"failures,omitempty"`
	NextCreateAt *metav1.Time           `json:"nextCreateAt,omitempty"`
	Rebuilt      string                 `json:"rebuilt,omitempty"`
}

// unread is what a record is to a version that cannot read it.
const unread = `{"schema":1,"unknown":true}`

func olderRecord(key string) any {
	if key == machine.AnnotationLedger {
		return &olderLedger{}
	}
	return &olderIntent{}
}

// readOlder refuses fields that there were not, as that version did.
func readOlder(key, text string) string {
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(olderRecord(key)); err != nil {
		return unread
	}
	return text
}

func writeOlder(key, text string) string {
	record := olderRecord(key)
	if err := json.Unmarshal([]byte(text), record); err != nil {
		return text
	}
	written, err := json.Marshal(record)
	if err != nil {
		return text
	}
	return string(written)
}

const (
	schemaToday = `{"schema":1,`
	schemaNewer = `{"schema":2,"lease":"of another kind",`
)

func readNewer(_, text string) string {
	if rest, is := strings.CutPrefix(text, schemaNewer); is {
		return schemaToday + rest
	}
	return text
}

func writeNewer(_, text string) string {
	if rest, is := strings.CutPrefix(text, schemaToday); is {
		return schemaNewer + rest
	}
	return text
}

// readable reports whether a version, or today's if it is nil, reads a record.
func (v *version) readable(key, text string) bool {
	if v == nil {
		return readNewer(key, text) == text
	}
	return v.read(key, text) != unread
}

// ledgerOf and intentOf read what a record says whoever wrote it.
func ledgerOf(set *machine.MachineSet) (machine.Ledger, error) {
	return machine.ParseLedger(readNewer("", set.Annotations[machine.AnnotationLedger]))
}

func (p *Play) intentOf(m *machine.Machine) *machine.Intent {
	if text := m.Annotations[machine.AnnotationIntent]; readNewer("", text) != text {
		m = withIntent(m, readNewer("", text))
	}
	i, _ := p.records.Intent(m)
	return i
}

// of returns a function of today as one of the version.
func (v *version) of(f function.Function) function.Function {
	reads, decide, known := f.Reads, f.Decide, eyes{}
	f.Reads = func(s snapshot.Snapshot) snapshot.Scope {
		seen, _ := v.seen(s, known)
		return reads(seen)
	}
	f.Decide = func(s snapshot.Snapshot) plan.Plan {
		seen, back := v.seen(s, known)
		return v.written(decide(seen), back)
	}
	return f
}

// eyes are what objects are to a version: themselves, or copies with another record.
type eyes map[plan.Object]plan.Object

// mostSeen bounds them.
const mostSeen = 1000

// see returns what o is to a version that reads the record under key, if it has one.
func see[O plan.Object](known eyes, v *version, o O, key string, with func(O, string) O) O {
	text, ok := o.GetAnnotations()[key]
	if !ok {
		return o
	}
	if was, ok := known[o].(O); ok {
		return was
	}
	seen := o
	if now := v.read(key, text); now != text {
		seen = with(o, now)
	}
	if len(known) >= mostSeen {
		clear(known)
	}
	known[o] = seen
	return seen
}

// seen returns s with its records as the version reads them, and what the objects were that differ now.
func (v *version) seen(s snapshot.Snapshot, known eyes) (snapshot.Snapshot, map[plan.Object]plan.Object) {
	back := map[plan.Object]plan.Object{}
	s.Machines = seenAll(known, v, s.Machines, machine.AnnotationIntent, withIntent, back)
	s.MachineSets = seenAll(known, v, s.MachineSets, machine.AnnotationLedger, withLedger, back)
	return s, back
}

// seenAll does so for all of a kind.
func seenAll[O plan.Object](known eyes, v *version, all []O, key string, with func(O, string) O, back map[plan.Object]plan.Object) []O {
	next := all
	for i, o := range all {
		now := see(known, v, o, key, with)
		if plan.Object(now) == plan.Object(o) {
			continue
		}
		if &next[0] == &all[0] {
			next = slices.Clone(all)
		}
		next[i], back[now] = now, o
	}
	return next
}

func withIntent(m *machine.Machine, text string) *machine.Machine {
	c := *m
	c.Annotations = maps.Clone(m.Annotations)
	c.Annotations[machine.AnnotationIntent] = text
	return &c
}

func withLedger(set *machine.MachineSet, text string) *machine.MachineSet {
	c := *set
	c.Annotations = maps.Clone(set.Annotations)
	c.Annotations[machine.AnnotationLedger] = text
	return &c
}

// written returns a plan about what was really there, with its records as the version writes them.
func (v *version) written(p plan.Plan, back map[plan.Object]plan.Object) plan.Plan {
	really := func(o plan.Object) plan.Object {
		if was, differs := back[o]; differs {
			return was
		}
		return o
	}
	next := plan.Plan{Notes: p.Notes}
	for _, seq := range p.Do {
		do := make([]plan.Action, 0, len(seq.Do))
		for _, a := range seq.Do {
			switch u := a.(type) {
			case plan.Update:
				u.New, u.Old = v.record(u.Old, really(u.Old), u.New), really(u.Old)
				a = u
			case plan.UpdateStatus:
				u.Old = really(u.Old)
				a = u
			case plan.Delete:
				u.Object = really(u.Object)
				a = u
			case plan.Create, plan.Evict, plan.Approve, plan.CreateInstance, plan.DeleteInstance, plan.UpdateInstance, plan.PowerCycle:
			}
			do = append(do, a)
		}
		next.Do = append(next.Do, plan.Sequence{Do: do, Notes: seq.Notes})
	}
	return next
}

// record returns now with its record as it was if nobody changed it, else as the version writes it.
func (v *version) record(seen, was, now plan.Object) plan.Object {
	key := ""
	switch now.(type) {
	case *machine.Machine:
		key = machine.AnnotationIntent
	case *machine.MachineSet:
		key = machine.AnnotationLedger
	default:
		return now
	}
	text, ok := now.GetAnnotations()[key]
	if !ok {
		return now
	}
	want := v.write(key, text)
	if text == seen.GetAnnotations()[key] {
		want = was.GetAnnotations()[key]
	}
	if want == text {
		return now
	}
	next, _ := now.DeepCopyObject().(plan.Object)
	annotations := next.GetAnnotations()
	annotations[key] = want
	next.SetAnnotations(annotations)
	return next
}
