// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
)

// decodeInto reads as the API server does: the case of names counts.
func decodeInto(raw json.RawMessage, into any) error {
	return kjson.UnmarshalCaseSensitivePreserveInts(raw, into)
}

// decode reads raw into s field by field, so that every field that cannot be read is named with its value.
func (f *findings) decode(raw json.RawMessage, s spec, strict bool) {
	var fields map[string]json.RawMessage
	if err := decodeInto(raw, &fields); err != nil || fields == nil {
		f.fail(field.Invalid(root, text(raw), "must be an object"))
		return
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		one, err := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if err != nil {
			f.fail(field.Invalid(at(name), text(fields[name]), err.Error()))
			continue
		}
		unknown, err := kjson.UnmarshalStrict(one, s, kjson.DisallowUnknownFields)
		if err != nil {
			f.fail(unreadable(name, fields, err))
		}
		for _, u := range unknown {
			f.unknown(u, strict)
		}
	}
}

// unknown is a field that nobody reads: worth a warning, or an error if the kind is strict (B72, E29).
func (f *findings) unknown(err error, strict bool) {
	fe, ok := errors.AsType[kjson.FieldError](err)
	switch {
	case !ok:
		f.fail(field.Invalid(root, "", err.Error()))
	case strict:
		f.fail(field.Forbidden(at(fe.FieldPath()), "unknown field"))
	default:
		f.warn(at(fe.FieldPath()), "unknown field, it has no effect")
	}
}

// unreadable names the field, as deep inside as it is known, with its value and the type that it should have.
func unreadable(name string, fields map[string]json.RawMessage, err error) *field.Error {
	te, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return field.Invalid(at(name), text(fields[name]), err.Error())
	}
	value, found := valueAt(fields, te.Field)
	if !found {
		return field.Invalid(at(te.Field), te.Value, "must be "+word(te.Type))
	}
	return field.Invalid(at(te.Field), text(value), "must be "+word(te.Type))
}

// valueAt returns what stands at a path of objects.
func valueAt(fields map[string]json.RawMessage, path string) (json.RawMessage, bool) {
	name, rest, deeper := strings.Cut(path, ".")
	value, ok := fields[name]
	if !ok || !deeper {
		return value, ok
	}
	var inner map[string]json.RawMessage
	if decodeInto(value, &inner) != nil {
		return nil, false
	}
	return valueAt(inner, rest)
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

// word names a Go type in the words of JSON.
func word(t reflect.Type) string {
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
