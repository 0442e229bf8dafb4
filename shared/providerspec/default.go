// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"encoding/json"
)

// draft is a spec whose missing fields are being filled in. What it does not know it keeps.
type draft struct {
	fields  map[string]json.RawMessage
	changed bool
}

func draftOf(raw json.RawMessage) (*draft, bool) {
	d := draft{}
	err := decodeInto(raw, &d.fields)
	return &d, err == nil && d.fields != nil
}

// result returns raw itself if nothing was filled in.
func (d *draft) result(raw json.RawMessage) json.RawMessage {
	if !d.changed {
		return raw
	}
	out, err := json.Marshal(d.fields)
	if err != nil {
		return raw
	}
	return out
}

// lacks reports whether a field is missing: null says nothing either.
func (d *draft) lacks(name string) bool {
	value, given := d.fields[name]
	return !given || isNull(value)
}

// open reports whether a field that is a string is missing: neither does the empty one say anything.
func (d *draft) open(name string) bool { return d.lacks(name) || string(d.fields[name]) == `""` }

// fill sets a field that is open. The empty string is no default.
func (d *draft) fill(name, value string) {
	if value == "" || !d.open(name) {
		return
	}
	quoted, err := json.Marshal(value)
	if err != nil {
		return
	}
	d.fields[name], d.changed = quoted, true
}

// fillIn fills a field of an object, which is made if it is missing. A value that is no object is left to the rules.
func (d *draft) fillIn(object, name, value string) {
	inner := draft{fields: map[string]json.RawMessage{}}
	if !d.lacks(object) && decodeInto(d.fields[object], &inner.fields) != nil {
		return
	}
	inner.fill(name, value)
	if !inner.changed {
		return
	}
	out, err := json.Marshal(inner.fields)
	if err != nil {
		return
	}
	d.fields[object], d.changed = out, true
}

// userData is the Secret of workers that every installer makes (SPEC B75–B78).
const userData = "worker-user-data"

const arm64 = "arm64"

// byArch chooses between the default instance types for arm64 and for everything else (B75).
func byArch(of Subject, arm, other string) string {
	if of.Arch == arm64 {
		return arm
	}
	return other
}
