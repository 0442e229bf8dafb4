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
	s := snapshot.Snapshot{}
	s.Add(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapSweep}, Data: map[string]string{machine.SweepKey: state.String()}})
	mine := machine.SweptAccount{Namespace: machine.Namespace, Spec: []byte(`{"kind":"K"}`)}
	a, written := accounts{"mine": mine}.remember(s).(plan.Update)
	if !written {
		t.Fatal("nothing is written")
	}
	text := a.New.(*corev1.ConfigMap).Data[machine.SweepKey]
	next, err := machine.ParseSweepState(text)
	if err != nil || len(text) > 1<<20 || string(next.Accounts["mine"].Spec) != string(mine.Spec) || len(next.Accounts) != 16 {
		t.Errorf("%d bytes, error %v, %d accounts, mine %+v", len(text), err, len(next.Accounts), next.Accounts["mine"])
	}
}
