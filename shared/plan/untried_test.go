// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What was tried is not planned again; of a change that was refused, and of nothing else, its object is told.
func TestRefusedChangesAreTold(t *testing.T) {
	t.Parallel()
	n := node("7", nil)
	change, status, part := Update{Old: n, New: n}, UpdateStatus{Old: n, New: n}, Update{Old: n, New: n, Part: "part"}
	var p Plan
	p.Then(change)
	p.Then(status)
	p.Then(part)
	p.Then(Delete{Object: n})
	p.Notes = append(make([]Note, 0, 8), Log("as it was"))
	got := p.Untried(map[Key]Outcome{
		change.Key():            {Result: Refused, Message: "denied"},
		status.Key():            {Result: Conflict, Message: "changed meanwhile"},
		Delete{Object: n}.Key(): {Result: Refused, Message: "forbidden"},
	})
	want := Plan{Do: []Sequence{{Do: []Action{part}}}, Notes: []Note{Log("as it was"), Warning(n, "FailedUpdate", "cannot be written: denied")}}
	if diff := cmp.Diff(want.String(), got.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(p.Do) != 4 || len(p.Notes) != 1 {
		t.Errorf("the plan was modified: %v", p)
	}
}
