// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Run(t, Function)
}

func TestProperties(t *testing.T) {
	t.Parallel()
	scenario.Properties(t, Function)
}

// An account of a namespace that is not served hides whose things are in it, and in every account that may be the same.
func TestAccountsThatMayBeTheSame(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, mine, theirs string
		served             []string
		want               bool
	}{
		{"the cloud calls them the same", "project-a", "project-a", []string{"here"}, true},
		{"the cloud calls them differently", "project-a", "project-b", []string{"here"}, false},
		{"nobody could ask for theirs yet", "project-a", "", []string{"here"}, true},
		{"nobody could ask for ours now", "", "project-b", []string{"here"}, true},
		{"both namespaces are served", "project-a", "project-a", []string{"here", "there"}, false},
	} {
		w := sweep{known: map[string]machine.SweptAccount{"a": {Namespace: "here", Owner: "project-a"}, "b": {Namespace: "there", Owner: tt.theirs}}}
		w.Served, w.Accounts = tt.served, map[string]snapshot.Account{"a": {Owner: tt.mine}}
		if got := w.veiled("a"); got != tt.want {
			t.Errorf("%s: %v", tt.name, got)
		}
	}
}

func TestTagIsNamedOnlyWhereNothingKeptCarriesIt(t *testing.T) {
	t.Parallel()
	in := provider.Instance{ID: "i-1", ProviderID: "x://i-1", UID: "u", Name: "worker-a"}
	if got := (find{in: in}).deletion().Ref; got.UID != "u" || got.ID != "i-1" || got.ProviderID != "x://i-1" {
		t.Errorf("orphan: %+v", got)
	}
	if got := (find{in: in, shared: true}).deletion().Ref; got.UID != "" || got.ID != "i-1" {
		t.Errorf("duplicate: %+v", got)
	}
	if got := (find{in: in, former: true}).deletion().Ref; got.UID != "" || got.ID != "i-1" {
		t.Errorf("left by a former attempt: %+v", got)
	}
}
