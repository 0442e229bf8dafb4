// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/providerspec"
	"github.com/machine-functions/machine-functions/test/admission"
)

// refusesWrongTypes puts a list of a boolean, which nobody wants anywhere, in the place of every value that stands in a
// good spec of the table, and the empty string, which says nothing where a string belongs, in that of every object and list. The policies name the same field as Go does, and never stumble over the value.
func (a api) refusesWrongTypes(t *testing.T, table admission.Table) {
	t.Helper()
	done := map[string]bool{".kind": true} // which says whose rules apply
	for _, c := range table.Cases {
		if len(c.Errors)+len(c.Warnings) > 0 {
			continue
		}
		var spec any
		if err := json.Unmarshal(c.Spec, &spec); err != nil {
			t.Fatal(err)
		}
		each(spec, "", func(path string) {
			if done[path] {
				return
			}
			done[path] = true
			raw, err := json.Marshal(spec)
			if err != nil {
				t.Fatal(err)
			}
			errs, _ := providerspec.Validate(providerspec.Default(raw, c.Subject()), c.Subject())
			if len(errs) != 1 {
				t.Errorf("%s: Go says %v", path, errs)
				return
			}
			_, _, err = a.create(t, owners[0], owners[0].of(t, raw, "worker", ""))
			want := fmt.Sprintf("denied request: spec.%s: Invalid value: ", errs[0].Field)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: the answer is %v, want %q", path, err, want)
			}
		})
	}
	if len(done) < 10 {
		t.Errorf("looked only at %v", done)
	}
}

// each calls f with every value below v replaced, one after the other.
func each(v any, path string, f func(path string)) {
	replaced := func(path string, old any, set func(any)) {
		each(old, path, f)
		set([]any{true})
		f(path)
		switch old.(type) {
		case map[string]any, []any:
			set("")
			f(path + ` ""`)
		}
		set(old)
	}
	switch v := v.(type) {
	case map[string]any:
		for name, old := range v {
			if name != "metadata" { // nobody looks into it
				replaced(path+"."+name, old, func(n any) { v[name] = n })
			}
		}
	case []any:
		for i, old := range v {
			replaced(fmt.Sprintf("%s[%d]", path, i), old, func(n any) { v[i] = n })
		}
	}
}
