// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// MergePatch returns what changes before into after as a JSON merge patch (RFC 7386) of metadata and spec, or of the
// status alone; nil if nothing does. It carries before's resourceVersion, so that the server refuses it once the
// object moved on. Fields that the Go types do not know are left as they are.
func MergePatch(before, after Object, status bool) ([]byte, error) {
	d, err := difference(before, after, status)
	if err != nil || len(d) == 0 {
		return nil, err
	}
	meta, _ := d["metadata"].(map[string]any)
	if meta == nil {
		meta = map[string]any{}
	}
	meta["resourceVersion"] = before.GetResourceVersion()
	d["metadata"] = meta
	if err := withReplicas(d, after, status); err != nil {
		return nil, err
	}
	return json.Marshal(d)
}

// withReplicas puts status.replicas into a patch of the status in any case: an object that never had a status reads as
// if it had none wanted, and zero replicas would never be stored (SPEC S6, S10).
func withReplicas(d map[string]any, after Object, status bool) error {
	patch, _ := d["status"].(map[string]any)
	if !status || patch == nil {
		return nil
	}
	t, err := tree(after, true)
	if err != nil {
		return err
	}
	if st, _ := t["status"].(map[string]any); st["replicas"] != nil {
		patch["replicas"] = st["replicas"]
	}
	return nil
}

func difference(before, after Object, status bool) (map[string]any, error) {
	o, err := tree(before, status)
	if err != nil {
		return nil, err
	}
	n, err := tree(after, status)
	if err != nil {
		return nil, err
	}
	return diff(o, n), nil
}

// tree returns the part of o that an update writes: everything but status, or status alone.
func tree(o Object, status bool) (map[string]any, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		o = u.DeepCopy() // the converter hands out its inside
	}
	t, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("%s as JSON: %w", NameOf(o), err)
	}
	if status {
		return map[string]any{"status": t["status"]}, nil
	}
	delete(t, "status")
	delete(t, "apiVersion")
	delete(t, "kind")
	return t, nil
}

// diff returns the merge patch from o to n: changed and added values, nil for removed ones. Lists are values.
func diff(o, n map[string]any) map[string]any {
	d := map[string]any{}
	for k := range o {
		if _, ok := n[k]; !ok {
			d[k] = nil
		}
	}
	for k, nv := range n {
		ov, ok := o[k]
		om, _ := ov.(map[string]any)
		nm, isMap := nv.(map[string]any)
		switch {
		case ok && reflect.DeepEqual(ov, nv):
		case isMap && om != nil:
			d[k] = diff(om, nm)
		default:
			d[k] = nv
		}
	}
	return d
}

// changes renders the difference between two objects, one line for each field that differs; a list of conditions is
// shown by type.
func changes(before, after Object, status bool) string {
	o, err := tree(before, status)
	if err != nil {
		return "\n    " + err.Error()
	}
	n, err := tree(after, status)
	if err != nil {
		return "\n    " + err.Error()
	}
	o, n = byType(o), byType(n)
	var b strings.Builder
	render(&b, "", o, diff(o, n))
	return b.String()
}

// byType returns t with every list whose elements have a type turned into a map, for display.
func byType(t map[string]any) map[string]any {
	out := make(map[string]any, len(t))
	for k, v := range t {
		out[k] = v
		switch v := v.(type) {
		case map[string]any:
			out[k] = byType(v)
		case []any:
			if m := typed(v); len(m) > 0 {
				out[k] = m
			}
		}
	}
	return out
}

// typed returns the elements by type, or nil if one has none or two have the same.
func typed(list []any) map[string]any {
	m := map[string]any{}
	for _, e := range list {
		o, _ := e.(map[string]any)
		t, _ := o["type"].(string)
		if _, twice := m[t]; t == "" || twice {
			return nil
		}
		m[t] = o
	}
	return m
}

func render(b *strings.Builder, path string, o, d map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(d)) {
		at := path + "." + k
		if strings.ContainsAny(k, "./") {
			at = path + "[" + k + "]"
		}
		om, _ := o[k].(map[string]any)
		if dm, ok := d[k].(map[string]any); ok && len(dm) > 0 {
			render(b, at, om, dm)
			continue
		}
		b.WriteString("\n    " + strings.TrimPrefix(at, ".") + ":")
		if is, ok := d[k].(string); ok && strings.Contains(is, "\n") {
			was, _ := o[k].(string)
			renderLines(b, strings.Split(was, "\n"), strings.Split(is, "\n"))
			continue
		}
		b.WriteString(" ")
		if was, ok := o[k]; ok && was != nil {
			b.WriteString(value(was) + " → ")
		}
		b.WriteString(value(d[k]))
	}
}

// renderLines renders the lines that a text loses, then those that it gains.
func renderLines(b *strings.Builder, was, is []string) {
	more := map[string]int{} // how many of a line are gained
	for _, l := range is {
		more[l]++
	}
	for _, l := range was {
		more[l]--
	}
	for _, l := range was {
		if more[l] < 0 {
			more[l]++
			b.WriteString("\n      - " + l)
		}
	}
	for _, l := range is {
		if more[l] > 0 {
			more[l]--
			b.WriteString("\n      + " + l)
		}
	}
}

// value renders one JSON value; strings without quotes unless they are empty.
func value(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case string:
		if v == "" {
			return `""`
		}
		return v
	}
	j, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(j)
}
