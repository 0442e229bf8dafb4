// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"slices"
	"testing"

	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A scan knows the checks of today before it asks for those of before, which may not be readable; without those nothing is decided.
func TestScanReadsTheChecksOfTodayFirst(t *testing.T) {
	t.Parallel()
	today, before := snapshot.All("MachineHealthCheck"), snapshot.All(legacyKind)
	var s snapshot.Snapshot
	if got := reads(s).Objects; !slices.Equal(got, []snapshot.Query{today}) {
		t.Errorf("a scan asks for %v at first", got)
	}
	if got := reads(s.Answered(today)).Objects; !slices.Contains(got, before) {
		t.Errorf("a scan asks for %v then", got)
	}
	s.Request = snapshot.Request{Kind: "Node", Name: "n"}
	if got := reads(s).Objects; !slices.Equal(got, []snapshot.Query{today, before}) {
		t.Errorf("an event asks for %v at first", got)
	}
}
