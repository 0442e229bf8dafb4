// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
)

const (
	recordSchema = 1
	// maxSightings bounds the record. So many Nodes are not lost to illness, and those left out are seen again.
	maxSightings = 200
)

// record is what a check remembers, in its annotation machine.AnnotationInFlight.
type record struct {
	Schema   int                    `json:"schema"`
	InFlight []remediation          `json:"inFlight,omitempty"`
	Seen     map[types.UID]sighting `json:"seen,omitempty"`    // by Machine: what has to be seen twice; by set: see [check.template]
	Failing  map[types.UID]failure  `json:"failing,omitempty"` // by set: what was made there never worked (R-B27)
	Storm    *storm                 `json:"storm,omitempty"`
}

// remediation is one Machine being replaced, or repaired, until something works in its place.
type remediation struct {
	Machine      string      `json:"machine"`
	UID          types.UID   `json:"uid"`
	Set          string      `json:"set,omitempty"`
	At           metav1.Time `json:"at"`             // begin of its step
	Step         int         `json:"step,omitempty"` // index in the check's steps
	ControlPlane bool        `json:"controlPlane,omitempty"`
}

// sighting is the first look at something. The time is zero where it was so at the first look at all.
type sighting struct {
	What string      `json:"what"`
	At   metav1.Time `json:"at,omitzero"`
}

// failure counts remediations in a row of Machines of one set that never worked.
type failure struct {
	Count int         `json:"count"`
	At    metav1.Time `json:"at"`           // of the last
	Of    string      `json:"of,omitempty"` // its set's template as one version wrote it here, which those before cannot read: see [record.bounded]
}

// storm is a time when more was sick than may be. Over is when it ended: then the cool-down begins.
type storm struct {
	Since metav1.Time  `json:"since"`
	Over  *metav1.Time `json:"over,omitempty"`
}

func parseRecord(text string) (record, error) {
	if text == "" {
		return record{Schema: recordSchema}, nil
	}
	var r record
	if err := machine.ReadSchema(text, &r, &r.Schema, recordSchema); err != nil {
		return record{}, err
	}
	if slices.ContainsFunc(r.InFlight, func(f remediation) bool { return f.Step < 0 }) {
		return record{}, fmt.Errorf("a step below 0")
	}
	return r, nil
}

// String returns the record as it is stored; empty if there is nothing to remember.
func (r record) String() string {
	if len(r.InFlight)+len(r.Seen)+len(r.Failing) == 0 && r.Storm == nil {
		return ""
	}
	b, err := json.Marshal(r)
	if err != nil { // no field of record can fail to marshal
		return ""
	}
	return string(b)
}

// why tells in a few words what is to be remembered.
func (r record) why() string {
	var names []string
	for _, f := range r.InFlight {
		names = append(names, f.Machine)
	}
	why := "nothing in flight"
	if len(names) > 0 {
		why = "in flight: " + strings.Join(names, ", ")
	}
	looks := 0
	for key := range r.Seen {
		if !isOfSet(key) {
			looks++
		}
	}
	if looks > 0 {
		why += fmt.Sprintf("; %d seen once", looks)
	}
	if sets := len(r.Seen) - looks; sets > 0 {
		why += fmt.Sprintf("; templates of %d sets", sets)
	}
	if r.Storm != nil {
		why += "; storm since " + machine.Stamp(r.Storm.Since.Time)
	}
	return why
}

func (r record) has(uid types.UID) bool {
	return slices.ContainsFunc(r.InFlight, func(f remediation) bool { return f.UID == uid })
}

// seen returns when what was first seen of m, and whether that was before now.
func (r record) seen(m *machine.Machine, what string, now time.Time) (time.Time, bool) {
	if s, ok := r.Seen[m.UID]; ok && s.What == what {
		return s.At.Time, true
	}
	return now.Truncate(time.Second), false
}
