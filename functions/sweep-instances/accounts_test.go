// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// An account counts as empty, and is forgotten, only where somebody looked into it, all of it was listed, and it was the one on record: what
// is left in one that is forgotten nobody ever finds (RELIABILITY 2b.10).
func TestAccountsAreEmptyWhereSomebodyLooked(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	before := metav1.NewTime(now.Add(-time.Hour))
	for name, c := range map[string]struct {
		owner string
		seen  *snapshot.Account
		empty bool
	}{
		"empty":                  {"", &snapshot.Account{Horizon: time.Minute}, true},
		"empty, of its owner":    {"project", &snapshot.Account{Horizon: time.Minute, Owner: "project"}, true},
		"nobody looked":          {"", nil, false},
		"nobody looked there":    {"project", nil, false},
		"it could not be seen":   {"", &snapshot.Account{Horizon: time.Minute, Err: &snapshot.Refusal{}}, false},
		"nobody tells whose":     {"project", &snapshot.Account{Horizon: time.Minute}, false},
		"silent, of its owner":   {"project", &snapshot.Account{Horizon: time.Minute, Owner: "project", Err: &snapshot.Refusal{}}, false},
		"first to be told whose": {"", &snapshot.Account{Horizon: time.Minute, Owner: "project"}, true},
	} {
		for _, since := range []*metav1.Time{nil, &before} {
			w := sweep{Snapshot: snapshot.Snapshot{Now: now, Accounts: map[string]snapshot.Account{}}}
			w.known = map[string]machine.SweptAccount{"cloud": {Owner: c.owner, EmptySince: since}}
			if c.seen != nil {
				w.Accounts["cloud"] = *c.seen
			}
			a, kept := w.accounts()["cloud"]
			if kept != (since == nil || !c.empty) || kept && since == nil && (a.EmptySince != nil) != c.empty {
				t.Errorf("%s, empty since %v: it is on record: %v, since %v", name, since, kept, a.EmptySince)
			}
		}
	}
}
