// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// The removal of a duplicate names that instance alone. The Machine's UID, which both carry, would name the recorded one
// too: a driver removes whatever has it (2b.7, R-S3).
func TestDuplicateGoesByItsIDAlone(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/duplicate-is-removed-by-its-own-id.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil {
		t.Fatal(err)
	}
	var removed []provider.Ref
	for _, a := range Decide(seen).Actions() {
		if d, ok := a.(plan.DeleteInstance); ok {
			removed = append(removed, d.Ref)
		}
	}
	if len(removed) != 1 {
		t.Fatalf("%d instances are removed: %+v", len(removed), removed)
	}
	if got := removed[0]; got.ID != "i-2" || got.UID != "" || got.ProviderID != "" || got.Token != "" || len(got.Progress) > 0 {
		t.Errorf("%+v", got)
	}
}
