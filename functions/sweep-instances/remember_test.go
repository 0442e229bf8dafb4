// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Where keys are long, as of an account in a Secret and instances with names as long as names can be, fewer finds have room.
func TestFindsWithLongKeysAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	account := "metal3/" + strings.Repeat("n", 63) + "/" + strings.Repeat("s", 253)
	var all []provider.Instance
	for k := range 2000 {
		all = append(all, provider.Instance{ID: fmt.Sprintf("%0253d", k), UID: types.UID(fmt.Sprint("gone-", k)), State: provider.StateRunning, Created: now.Add(-time.Hour)})
	}
	w := sweep{Snapshot: snapshot.Snapshot{Now: now, Accounts: map[string]snapshot.Account{account: {Horizon: time.Minute, Instances: all}}}}
	w.state.Schema = 1
	w.finds = findsIn(w.Snapshot, ownersIn(w.Snapshot))
	text, notes := remembered(t, w)
	if len(text) > 700_000 {
		t.Errorf("%d bytes, a ConfigMap holds %d with the accounts", len(text), 1<<20)
	}
	if last := notes[len(notes)-1]; last.Reason != "OrphansNotRemembered" {
		t.Errorf("nobody is told of the rest: %v", last.Reason)
	}
}

// The accounts are on record with the specs that lead to them: where those are long, fewer finds have room.
func TestFindsHaveRoomBesideLongSpecs(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	w := sweep{Snapshot: snapshot.Snapshot{Now: now, Accounts: map[string]snapshot.Account{}}, known: map[string]machine.SweptAccount{}}
	for a := range 10 {
		account := fmt.Sprintf("metal3/%s/%0253d", strings.Repeat("n", 63), a)
		var all []provider.Instance
		for k := range 200 {
			all = append(all, provider.Instance{ID: fmt.Sprintf("%0253d", k), UID: types.UID(fmt.Sprint("gone-", k)), State: provider.StateRunning, Created: now.Add(-time.Hour)})
		}
		w.Accounts[account] = snapshot.Account{Horizon: time.Minute, Instances: all}
		w.known[account] = machine.SweptAccount{Namespace: machine.Namespace, Spec: fmt.Appendf(nil, `{"kind":"metal3","odd":%q}`, strings.Repeat("o", 60_000))}
	}
	w.state.Schema = 1
	w.finds = findsIn(w.Snapshot, ownersIn(w.Snapshot))
	text, notes := remembered(t, w)
	if len(text) > 1<<20 || len(text) < 900_000 {
		t.Errorf("%d bytes, a ConfigMap holds %d", len(text), 1<<20)
	}
	if last := notes[len(notes)-1]; last.Reason != "OrphansNotRemembered" {
		t.Errorf("nobody is told of the rest: %v", last.Reason)
	}
}

// A first sweep in an account with twelve thousand strange instances and five thousand strange Nodes writes what a
// ConfigMap holds, tells of a few, and says how many it leaves for later; the oldest come first.
func TestManyFindsAreBounded(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	const account = "https://keystone.example.com:5000/v3/0123456789abcdef0123456789abcdef/RegionOne"
	var all []provider.Instance
	for k := range 12000 {
		id := fmt.Sprintf("0123456789ab-%024d", k)
		all = append(all, provider.Instance{
			ID: id, ProviderID: "openstack:///" + id, UID: types.UID("gone-" + id), Name: "worker-" + id,
			State: provider.StateRunning, Created: now.Add(-time.Hour - time.Duration(k)*time.Second), // the last are the oldest
		})
	}
	w := sweep{Snapshot: snapshot.Snapshot{Now: now, Accounts: map[string]snapshot.Account{account: {Horizon: time.Minute, Instances: all}}}}
	w.state.Schema = 1
	w.finds = findsIn(w.Snapshot, ownersIn(w.Snapshot))
	for k := range 5000 {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", k), UID: types.UID(fmt.Sprint(k)), CreationTimestamp: metav1.NewTime(now.Add(-time.Minute))}}
		w.ghosts = append(w.ghosts, n)
	}

	text, notes := remembered(t, w)
	if len(text) >= 1<<20 {
		t.Errorf("%d bytes, a ConfigMap holds %d", len(text), 1<<20)
	}
	if len(notes) > maxTold+2 {
		t.Errorf("%d notes", len(notes))
	}
	said := notes[len(notes)-2].Message + "\n" + notes[len(notes)-1].Message
	if want := "1980 more have no owner: configmap machine-sweep-state names them\n" +
		"15000 of 17000 finds are not on record, which holds the 2000 oldest: they stay until those are gone"; said != want {
		t.Errorf("it says\n%s\nwant\n%s", said, want)
	}
	state, err := machine.ParseSweepState(text)
	if err != nil {
		t.Fatal(err)
	}
	for k, want := range map[int]bool{11999: true, 10000: true, 9999: false, 0: false} {
		if _, got := state.Sightings[machine.SightingKey(account, all[k].ID)]; got != want {
			t.Errorf("instance %d is on record: %v", k, got)
		}
	}

	// What is on record stays there before anything new, so that it can become old enough.
	first := state
	w.stored, w.state, w.Now = state, state, now.Add(5*time.Minute)
	if seq := w.remember(); len(seq.Do) > 0 {
		t.Errorf("written again: %s", seq.Do[0].Key())
	}
	gone := all[11999]
	w.Accounts[account] = snapshot.Account{Horizon: time.Minute, Instances: all[:11999]}
	w.finds = findsIn(w.Snapshot, ownersIn(w.Snapshot))
	text, _ = remembered(t, w)
	if state, err = machine.ParseSweepState(text); err != nil {
		t.Fatal(err)
	}
	delete(first.Sightings, machine.SightingKey(account, gone.ID))
	for key, since := range first.Sightings {
		if got := state.Sightings[key]; !got.Equal(&since) {
			t.Fatalf("%s: since %s, was %s", key, got, since)
		}
	}
	if _, next := state.Sightings[machine.SightingKey(account, all[9999].ID)]; len(state.Sightings) != maxSightings || !next {
		t.Errorf("%d sightings; the next oldest among them: %v", len(state.Sightings), next)
	}
}

// What is only ever reported takes no place from what is to go.
func TestForeignFindsGiveWay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	w := sweep{Snapshot: snapshot.Snapshot{Now: now}}
	w.state.Schema, w.state.Sightings = 1, map[string]metav1.Time{}
	for k := range maxSightings {
		f := find{account: "a", in: provider.Instance{ID: fmt.Sprint(k)}, foreign: true}
		w.finds = append(w.finds, f)
		w.state.Sightings[f.key()] = metav1.NewTime(now.Add(-time.Hour))
	}
	orphan := find{account: "a", in: provider.Instance{ID: "orphan", UID: "gone", Created: now}}
	w.finds = append(w.finds, orphan)
	text, _ := remembered(t, w)
	state, err := machine.ParseSweepState(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := state.Sightings[orphan.key()]; !ok || len(state.Sightings) != maxSightings {
		t.Errorf("%d sightings; the orphan among them: %v", len(state.Sightings), ok)
	}
}

// Nor does it where its account does not answer, and what is on record of it is carried on.
func TestForeignFindsOfASilentAccountGiveWay(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	w := sweep{Snapshot: snapshot.Snapshot{Now: now, Accounts: map[string]snapshot.Account{"silent": {Err: &snapshot.Refusal{Message: "no answer"}}}}}
	w.state.Schema, w.state.Sightings = 1, map[string]metav1.Time{}
	for k := range maxSightings {
		w.state.Sightings[machine.ForeignKey("silent", fmt.Sprint(k))] = metav1.NewTime(now.Add(-time.Hour))
	}
	orphan := find{account: "other", in: provider.Instance{ID: "orphan", UID: "gone", Created: now}}
	w.finds = []find{orphan}
	text, _ := remembered(t, w)
	state, err := machine.ParseSweepState(text)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := state.Sightings[orphan.key()]; !ok || len(state.Sightings) != maxSightings {
		t.Errorf("%d sightings; the orphan among them: %v", len(state.Sightings), ok)
	}
}

// remembered returns the state that w writes, and what it tells.
func remembered(t *testing.T, w sweep) (string, []plan.Note) {
	t.Helper()
	seq := w.remember()
	if len(seq.Do) != 1 {
		t.Fatalf("%d actions", len(seq.Do))
	}
	created, ok := seq.Do[0].(plan.Create)
	if !ok {
		t.Fatalf("%T", seq.Do[0])
	}
	return created.Object.(*corev1.ConfigMap).Data[machine.SweepKey], seq.Notes //nolint:forcetypeassert // it panics if not
}

// Who writes long providerSpecs keeps the others' accounts, and what is found there, on record all the same: before, the API server
// refused the whole state, and nothing was removed anywhere (RELIABILITY §4).
func TestLongSpecsKeepNobodyOffTheRecord(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	w := sweep{Snapshot: snapshot.Snapshot{Now: now, Accounts: map[string]snapshot.Account{}}, known: map[string]machine.SweptAccount{}}
	for a := range 20 {
		w.known[fmt.Sprint("theirs-", a)] = machine.SweptAccount{Namespace: "machines-b", Spec: fmt.Appendf(nil, `{"kind":"metal3","odd":%q}`, strings.Repeat("<", 60_000))}
	}
	for k := range 3000 { // a cloud of their own that is another each time
		w.known[fmt.Sprint("theirs-0#", k)] = machine.SweptAccount{Namespace: "machines-b", Owner: fmt.Sprint(k), Of: "theirs-0", ClusterID: strings.Repeat("c", 200)}
	}
	w.known["mine#before"] = machine.SweptAccount{Namespace: machine.Namespace, Owner: "before", Of: "mine"}
	w.known["mine"] = machine.SweptAccount{Namespace: machine.Namespace, Spec: []byte(`{"kind":"metal3"}`), Owner: "now"}
	w.Accounts["mine"] = snapshot.Account{Owner: "now", Horizon: time.Minute, Instances: []provider.Instance{{ID: "left", UID: "gone", State: provider.StateRunning, Created: now.Add(-time.Hour)}}}
	w.state.Schema = 1
	w.finds = findsIn(w.Snapshot, ownersIn(w.Snapshot))
	text, notes := remembered(t, w)
	if len(text) > 1<<20 {
		t.Errorf("%d bytes, a ConfigMap holds %d", len(text), 1<<20)
	}
	state, err := machine.ParseSweepState(text)
	if err != nil {
		t.Fatal(err)
	}
	_, former := state.Accounts["mine#before"]
	if _, found := state.Sightings["mine left"]; !found || !former || string(state.Accounts["mine"].Spec) != `{"kind":"metal3"}` || state.Accounts["theirs-0"].Namespace == "" {
		t.Errorf("what is not theirs is left out: find on record %v, former account %v, %+v", found, former, state.Accounts["mine"])
	}
	last, words := notes[len(notes)-1], fmt.Sprintf(" and %d more", len(w.known)-len(state.Accounts)-machine.FewFormers)
	if last.Reason != "AccountsNotRemembered" || strings.Count(last.Message, "theirs-0#") != machine.FewFormers || !strings.HasSuffix(last.Message, words) {
		t.Errorf("not told as it is, with%s: %v", words, last)
	}
}

// An account whose spec had no room is looked into while a Machine leads to it, and what is on record stays as it is (R-S14).
func TestAccountWithoutItsSpecIsThatOfItsMachines(t *testing.T) {
	t.Parallel()
	long := fmt.Sprintf(`{"kind":"metal3","odd":%q}`, strings.Repeat("o", 60_000))
	inUse, state := map[string]machine.SweptAccount{}, machine.SweepState{Accounts: map[string]machine.SweptAccount{}}
	for a := range 20 {
		inUse[fmt.Sprint(a)] = machine.SweptAccount{Namespace: machine.Namespace, Spec: []byte(long)}
	}
	state.Accounts = inUse
	state, _ = state.Fitted()
	short := 0
	for key, a := range state.Accounts {
		if len(a.Spec) == 0 {
			short++
		}
		if got := known(snapshot.Snapshot{}, inUse, state)[key]; string(got.Spec) != long {
			t.Errorf("%s is led to by %.20q", key, got.Spec)
		}
	}
	if short == 0 || len(state.Accounts) != 20 {
		t.Errorf("%d of %d without their specs", short, len(state.Accounts))
	}
	if again, _ := (machine.SweepState{Accounts: known(snapshot.Snapshot{}, inUse, state)}).Fitted(); again.String() != state.String() {
		t.Error("in the next sweep there is room for others")
	}
}

// What a former version kept of an account without its spec, as a null, is none either: it writes the record too while both run.
func TestSpecThatAFormerVersionKeptIsNone(t *testing.T) {
	t.Parallel()
	state, err := machine.ParseSweepState(`{"schema":1,"accounts":{"mine":{"namespace":"n","clusterID":"c","spec":null}}}`)
	if err != nil {
		t.Fatal(err)
	}
	inUse := map[string]machine.SweptAccount{"mine": {Namespace: "n", ClusterID: "c", Spec: []byte(`{"kind":"metal3"}`)}}
	if got := known(snapshot.Snapshot{}, inUse, state)["mine"]; string(got.Spec) != `{"kind":"metal3"}` {
		t.Errorf("it is led to by %q", got.Spec)
	}
}
