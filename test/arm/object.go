// SPDX-License-Identifier: Apache-2.0

package arm

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// object is a JSON object. What is made of one of the API's models and back has what the model has.
type object map[string]any

// objectOf returns v as JSON has it.
func objectOf(v any) object {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	var o object
	if err := json.Unmarshal(text, &o); err != nil {
		panic(err)
	}
	return o
}

// as returns o as one of the API's models.
func as[T any](o object) T {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	var t T
	if err := json.Unmarshal(text, &t); err != nil {
		panic(err)
	}
	return t
}

func (o object) clone() object { return objectOf(o) }

// object returns the object in a field, an empty one if there is none.
func (o object) object(name string) object {
	switch v := o[name].(type) {
	case object:
		return v
	case map[string]any:
		return v
	}
	return object{}
}

// in returns the object in a field, which it makes if there is none.
func (o object) in(name string) object {
	v := o.object(name)
	o[name] = v
	return v
}

func (o object) text(name string) string {
	text, _ := o[name].(string)
	return text
}

// list returns the objects of a list.
func (o object) list(name string) (all []object) {
	values, _ := o[name].([]any)
	for _, v := range values {
		switch v := v.(type) {
		case object:
			all = append(all, v)
		case map[string]any:
			all = append(all, v)
		}
	}
	return all
}

// merge sets what a patch has: objects field by field, all else as a whole.
func (o object) merge(patch object) {
	for name, value := range patch {
		if below, ok := value.(map[string]any); ok && name != "tags" {
			o.in(name).merge(below)
			continue
		}
		o[name] = value
	}
}

// lacking returns the fields of asked, at whatever depth, that known does not have.
func lacking(path string, asked, known any) (all []string) {
	switch a := asked.(type) {
	case map[string]any:
		k, _ := known.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(a)) {
			if _, ok := k[name]; !ok {
				all = append(all, path+"."+name)
				continue
			}
			all = append(all, lacking(path+"."+name, a[name], k[name])...)
		}
	case []any:
		k, _ := known.([]any)
		for n := range a {
			if n >= len(k) {
				return append(all, fmt.Sprintf("%s[%d]", path, n))
			}
			all = append(all, lacking(fmt.Sprintf("%s[%d]", path, n), a[n], k[n])...)
		}
	default:
		if fmt.Sprint(asked) != fmt.Sprint(known) {
			all = append(all, path)
		}
	}
	return all
}
