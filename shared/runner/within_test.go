// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// What a cloud said stands for a later question that asks no more than the one before, of the same spec and under the same ids of the
// cluster: an instance that nobody looked for is not absent (RELIABILITY G5).
func TestAnswersStandForWhatWasAsked(t *testing.T) {
	t.Parallel()
	by := func(l snapshot.Lookup) led { return led{Lookup: l, by: lead{clusterID: "c", spec: "{}"}} }
	account, find := by(snapshot.Lookup{Open: true}), by(snapshot.Lookup{})
	otherSpec, otherID := find, find
	otherSpec.by.spec = `{"kind":"K"}`
	otherID.other = lead{clusterID: "d", spec: "{}"}
	for what, more := range map[string]struct{ before, now led }{
		"the instance":     {account, find},
		"the request":      {find, by(snapshot.Lookup{Resolve: true})},
		"the type":         {find, by(snapshot.Lookup{Type: true})},
		"the type of now":  {find, by(snapshot.Lookup{Fresh: true})},
		"the stock":        {find, by(snapshot.Lookup{Stock: true})},
		"another spec":     {find, otherSpec},
		"under another id": {find, otherID},
	} {
		if more.now.within(more.before) {
			t.Errorf("%s: nobody asked about that before, and what was said stands", what)
		}
		if !more.now.within(more.now) || !more.before.within(more.before) {
			t.Errorf("%s: the same was asked before, and what was said does not stand", what)
		}
	}
}
