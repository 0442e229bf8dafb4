// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
)

// A line says what the text of an action begins with.
func TestLineIsTheFirstOfTheText(t *testing.T) {
	t.Parallel()
	old, now := node("7", nil), node("7", map[string]string{"a": "b"})
	for _, a := range []Action{Update{Old: old, New: now, Why: "w"}, UpdateStatus{Old: old, New: now}, Delete{Object: old, Why: "w"}, UpdateInstance{Tags: map[string]string{"a": "b"}}} {
		want, _, _ := strings.Cut(a.String(), "\n")
		if got := Line(a); got != want || got == "" {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
