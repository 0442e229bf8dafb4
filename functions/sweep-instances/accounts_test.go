// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

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

// No cloud is asked before it is known what is on record, nor where nobody can read that: such a sweep decides nothing (RELIABILITY 2b.10).
func TestNoCloudIsAskedInVain(t *testing.T) {
	t.Parallel()
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Namespace: machine.Namespace, UID: "uid-0"}}
	m.Annotations = map[string]string{machine.AnnotationIntent: machine.NewIntent(m, 1, "cloud", nil).String()}
	m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: []byte(`{}`)}
	state := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: machine.ConfigMapSweep, Namespace: machine.Namespace}}
	for name, c := range map[string]struct {
		record string
		read   bool
		asked  int
	}{
		"nothing is on record":     {"", true, 1},
		"nobody read the record":   {"", false, 0},
		"nobody can read it":       {"{", true, 0},
		"it is of a newer version": {`{"schema":99}`, true, 0},
	} {
		s := snapshot.Snapshot{Machines: []*machine.Machine{m}}
		if c.record != "" {
			with := state.DeepCopy()
			with.Data = map[string]string{machine.SweepKey: c.record}
			s.Add(with)
		}
		if c.read {
			s = s.Answered(stateQuery)
		}
		if sc := reads(s); len(sc.Accounts) != c.asked || len(sc.Objects) == 0 {
			t.Errorf("%s: %d accounts are asked for", name, len(sc.Accounts))
		}
	}
}
