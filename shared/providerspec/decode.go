// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// decodeInto reads as the API server does: the case of names counts.
func decodeInto(raw json.RawMessage, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, into)
}

// decode reads raw into s. What cannot be read, or is not known, is named where it stands, however deep inside. A field
// that nobody knows is worth a warning, or an error if the kind is strict (B72, E29).
func (f *findings) decode(raw json.RawMessage, s spec, strict bool) {
	unknown, err := kjson.UnmarshalStrict(raw, s, kjson.DisallowUnknownFields)
	if err == nil && len(unknown) == 0 && !bytes.Contains(raw, []byte("null")) {
		return // as nearly always: the walk below is for whoever has to be told
	}
	before := len(f.errs)
	f.walk(root, raw, reflect.TypeOf(s).Elem(), strict)
	if err != nil && len(f.errs) == before {
		f.fail(field.Invalid(root, text(raw), "cannot be read"))
	}
}

// What a spec may be at most: no cloud's needs a tenth of it (RELIABILITY §4).
const (
	maxBytes = 64 << 10
	maxDepth = 64
)

// bound refuses what is too large to be a spec before anything else is done with it.
func (f *findings) bound(raw json.RawMessage) {
	if len(raw) > maxBytes {
		f.fail(field.TooLong(root, "", maxBytes))
	}
	if nesting(raw) > maxDepth {
		f.fail(field.Invalid(root, text(raw), fmt.Sprintf("is nested more than %d deep", maxDepth)))
	}
}

// nesting returns how deep objects and lists stand in each other.
func nesting(raw []byte) (deepest int) {
	now, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch c := raw[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}', c == ']':
			now--
		}
	}
	return deepest
}

// walk compares a value with the type that it should have.
func (f *findings) walk(p *field.Path, raw json.RawMessage, t reflect.Type, strict bool) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if isNull(raw) {
		return
	}
	switch _, custom := reflect.New(t).Interface().(json.Unmarshaler); {
	case custom:
		f.leaf(p, raw, t)
	case t.Kind() == reflect.Struct:
		f.walkObject(p, raw, t, strict)
	case t.Kind() == reflect.Map:
		var values map[string]json.RawMessage
		if !f.readable(p, raw, &values, t) {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(values)) {
			f.walk(p.Key(name), values[name], t.Elem(), strict)
		}
	case t.Kind() == reflect.Slice:
		var values []json.RawMessage
		if !f.readable(p, raw, &values, t) {
			return
		}
		for i, value := range values {
			if isNull(value) {
				f.fail(field.Invalid(p.Index(i), "null", "must be "+word(t.Elem()))) // of an object it says that a field is not given
				continue
			}
			f.walk(p.Index(i), value, t.Elem(), strict)
		}
	default:
		f.leaf(p, raw, t)
	}
}

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

func (f *findings) walkObject(p *field.Path, raw json.RawMessage, t reflect.Type, strict bool) {
	var values map[string]json.RawMessage
	if !f.readable(p, raw, &values, t) {
		return
	}
	known := fieldsOf(t)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch inner, ok := known[name]; {
		case ok:
			f.walk(p.Child(name), values[name], inner, strict)
		case strict:
			f.fail(field.Forbidden(p.Child(name), "unknown field"))
		default:
			f.warn(p.Child(name), "unknown field, it has no effect")
		}
	}
}

func (f *findings) leaf(p *field.Path, raw json.RawMessage, t reflect.Type) {
	f.readable(p, raw, reflect.New(t).Interface(), t)
}

// readable reports whether raw can be read, and says what it should be if not.
func (f *findings) readable(p *field.Path, raw json.RawMessage, into any, t reflect.Type) bool {
	err := decodeInto(raw, into)
	if err != nil {
		f.fail(field.Invalid(p, text(raw), "must be "+word(t)))
	}
	return err == nil
}

// fieldsOf returns the types of an object's fields by their names in JSON.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for _, one := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(one.Tag.Get("json"), ","); name != "" {
			all[name] = one.Type
		}
	}
	return all
}

// text returns a value as it is shown: a string without its quotes, anything long cut off.
func text(raw json.RawMessage) string {
	const longest = 60
	var s string
	if json.Unmarshal(raw, &s) != nil {
		s = string(raw)
	}
	if len(s) > longest {
		s = strings.ToValidUTF8(s[:longest], "") + "…"
	}
	return s
}

// word names a Go type in words for whoever writes manifests.
func word(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[Quantity]():
		return "a quantity such as 12Gi"
	case reflect.TypeFor[metav1.Duration]():
		return "a duration such as 5m"
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Int64:
		return "an integer"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice:
		return "a list"
	default:
		return "an object"
	}
}
