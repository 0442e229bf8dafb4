// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// now is when all of this is decided.
var now = time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)

// Of what carries another attempt's token only that is a leftover which an instance is made with, and which something else can be in the place of
// (RELIABILITY 2b.10).
func TestLeftByAFormerAttempt(t *testing.T) {
	t.Parallel()
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: "worker-0", Namespace: machine.Namespace, UID: "uid-0"}}
	intent := machine.NewIntent(m, 2, "kubemark", []byte(`{}`)).Claimed("me", now, time.Minute)
	m.Annotations = map[string]string{machine.AnnotationIntent: intent.String()}
	o := ownersIn(snapshot.Snapshot{Now: now, Machines: []*machine.Machine{m}, Records: machine.NewRecords()})
	for name, c := range map[string]struct {
		in   provider.Instance
		want bool
	}{
		"a port of another attempt":            {provider.Instance{UID: m.UID, Child: true, Token: "another"}, true},
		"a port of this attempt":               {provider.Instance{UID: m.UID, Child: true, Token: intent.Token}, false},
		"a port of nobody knows which attempt": {provider.Instance{UID: m.UID, Child: true}, false},
		"a port of another machine":            {provider.Instance{UID: "uid-1", Child: true, Token: "another"}, false},
		"an instance":                          {provider.Instance{UID: m.UID, Token: "another"}, false},
		"a claim of a host":                    {provider.Instance{UID: m.UID, Child: true, Sole: true, Token: "another"}, false},
	} {
		if got := o.former(c.in); got != c.want {
			t.Errorf("%s: left by a former attempt %v, want %v", name, got, c.want)
		}
	}
}

// A Node may be an instance's of any account: the account that takes longest to show what it has says how long that is waited for (R-S2).
func TestNodesWaitForTheLongestHorizon(t *testing.T) {
	t.Parallel()
	w := sweep{Snapshot: snapshot.Snapshot{Accounts: map[string]snapshot.Account{"a": {Horizon: time.Minute}, "b": {Horizon: time.Hour}, "c": {Horizon: time.Second}}}}
	for range 20 { // of a map, in any order
		if got := w.horizon(); got != time.Hour {
			t.Fatalf("%v, want an hour", got)
		}
	}
}

// An empty account that leads to where nobody can look into any more is not forgotten before that is (RELIABILITY 2b.10).
func TestAccountThatLeadsToAnotherIsRemembered(t *testing.T) {
	t.Parallel()
	empty := metav1.NewTime(now.Add(-time.Hour))
	for needs, want := range map[string]bool{"cloud": true, "": false} {
		before := machine.SweptAccount{Namespace: machine.Namespace, EmptySince: &empty}
		w := sweep{Snapshot: snapshot.Snapshot{Now: now, Accounts: map[string]snapshot.Account{"cloud": {Horizon: time.Minute}}}}
		w.known = map[string]machine.SweptAccount{"cloud": before, "before": {Namespace: machine.Namespace, Of: needs}}
		if _, got := w.accounts()["cloud"]; got != want {
			t.Errorf("another that led to %q: remembered %v, want %v", needs, got, want)
		}
	}
}

// What goes beside an instance of the same tag goes by its own id: a cloud that is told the tag removes that one too, though a Node runs on it.
func TestWhatRunsIsNotNamedByItsTag(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/left-beside-what-runs.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil {
		t.Fatal(err)
	}
	gone := 0
	for _, a := range Decide(seen).Actions() {
		if d, is := a.(plan.DeleteInstance); is {
			if gone++; d.Ref.UID != "" {
				t.Errorf("%s is removed by the tag %s", d.Ref.ID, d.Ref.UID)
			}
		}
	}
	if gone != 2 {
		t.Errorf("%d removals, want 2", gone)
	}
}
