// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"fmt"
	"testing"
	"time"

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

// Of many finds that the cloud does not let go each comes among the first in some sweep, whatever the sweeps' distance; what former attempts
// left has the last place where there are others.
func TestFindsTakeTurns(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{5 * time.Minute, 10 * time.Minute, time.Hour} {
		for n := 1; n <= 60; n += 7 {
			w, first := sweep{}, map[string]bool{}
			w.Now = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
			for range 40 * n {
				var goes []find
				for k := range n {
					goes = append(goes, find{account: "a", in: provider.Instance{ID: fmt.Sprint("i-", k), UID: "u"}}, find{account: "a", in: provider.Instance{ID: fmt.Sprint("p-", k), UID: "u"}, former: true})
				}
				for k, f := range w.inTurn(goes)[:min(2*n, maxDeletes)] {
					first[f.in.ID] = true
					if f.former != (k >= min(n, maxDeletes-1)) {
						t.Fatalf("%d: %s is at place %d", n, f, k)
					}
				}
				w.Now = w.Now.Add(every)
			}
			if len(first) != 2*n {
				t.Errorf("every %v: %d of %d come first", every, len(first), 2*n)
			}
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
