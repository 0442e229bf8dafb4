// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A record that others have filled with long specs takes the account of a new Machine all the same: what is made there is in a sweep
// (RELIABILITY 2b.10).
func TestAccountIsRememberedBesideLongSpecs(t *testing.T) {
	t.Parallel()
	state := machine.SweepState{Schema: 1, Accounts: map[string]machine.SweptAccount{}, Sightings: map[string]metav1.Time{}}
	for k := range 15 {
		state.Accounts[fmt.Sprint("theirs-", k)] = machine.SweptAccount{Namespace: "machines-b", Spec: fmt.Appendf(nil, `{"kind":"K","odd":%q}`, strings.Repeat("o", 60_000))}
	}
	for k := range 2000 {
		state.Sightings[machine.SightingKey("theirs-0", fmt.Sprintf("%080d", k))] = metav1.Time{}
	}
	mine := machine.SweptAccount{Namespace: machine.Namespace, Spec: []byte(`{"kind":"K"}`)}
	text, _ := remembering(t, state, mine)
	next, err := machine.ParseSweepState(text)
	if err != nil || len(text) > 1<<20 || string(next.Accounts["mine"].Spec) != string(mine.Spec) || len(next.Accounts) != 16 {
		t.Errorf("%d bytes, error %v, %d accounts, mine %+v", len(text), err, len(next.Accounts), next.Accounts["mine"])
	}
}

// Accounts that a Secret led to before and that make room for a new one are told of: sweep-instances finds them on record no more
// (RELIABILITY 2b.10).
func TestFormerAccountsAreNotForgottenInSilence(t *testing.T) {
	t.Parallel()
	state := machine.SweepState{Schema: 1, Accounts: map[string]machine.SweptAccount{}}
	for k := range 3000 {
		state.Accounts[fmt.Sprint("theirs#", k)] = machine.SweptAccount{Namespace: "machines-b", Owner: fmt.Sprint(k), Of: "theirs", ClusterID: strings.Repeat("c", 200)}
	}
	state, _ = state.Fitted() // as the last sweep left it
	mine := machine.SweptAccount{Namespace: machine.Namespace, Spec: fmt.Appendf(nil, `{"kind":"K","odd":%q}`, strings.Repeat("o", 30_000))}
	text, notes := remembering(t, state, mine)
	next, err := machine.ParseSweepState(text)
	left := len(state.Accounts) + 1 - len(next.Accounts)
	if err != nil || left == 0 || string(next.Accounts["mine"].Spec) != string(mine.Spec) {
		t.Fatalf("%d left out, error %v", left, err)
	}
	words := fmt.Sprintf(" and %d more", left-machine.FewFormers)
	if len(notes) != 1 || notes[0].Reason != "AccountsNotRemembered" || !strings.HasSuffix(notes[0].Message, words) {
		t.Errorf("%d are left out, told is %v", left, notes)
	}
}

// remembering returns what is on record with a new account, and what is told.
func remembering(t *testing.T, state machine.SweepState, mine machine.SweptAccount) (string, []plan.Note) {
	t.Helper()
	s := snapshot.Snapshot{}
	s.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapSweep}, Data: map[string]string{machine.SweepKey: state.String()}})
	seq := accounts{"mine": mine}.remember(s)
	if len(seq.Do) != 1 {
		t.Fatalf("%d actions", len(seq.Do))
	}
	a, written := seq.Do[0].(plan.Update)
	if !written {
		t.Fatalf("%T", seq.Do[0])
	}
	return a.New.(*corev1.ConfigMap).Data[machine.SweepKey], seq.Notes //nolint:forcetypeassert // it panics if not
}
