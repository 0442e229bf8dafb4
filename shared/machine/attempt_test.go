// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// After a backup the record says which attempt made the instance. An attempt before it does not return, nor does any other token change it.
func TestRecordGoesOnToTheAttemptThatMadeTheInstance(t *testing.T) {
	t.Parallel()
	m := &Machine{ObjectMeta: metav1.ObjectMeta{UID: "m-0"}}
	latest := NewIntent(m, 3, "nova", nil).Released(OutcomeCreated, time.Time{})
	for _, n := range []int{3, 4, 5, 3 + mostAhead} {
		got := latest.Onward(m, Token(m.UID, n, "nova"))
		if got.Attempt != n || !got.Own(m) || got.Outcome != OutcomeCreated {
			t.Errorf("of attempt %d it is attempt %d, its own: %v, %s", n, got.Attempt, got.Own(m), got.Outcome)
		}
	}
	for name, token := range map[string]string{
		"none": "", "another Machine's": Token("m-1", 4, "nova"), "another account's": Token(m.UID, 4, "east"),
		"a former attempt's": Token(m.UID, 2, "nova"), "far ahead": Token(m.UID, 4+mostAhead, "nova"),
	} {
		if got := latest.Onward(m, token); got.Attempt != 3 || got.Token != latest.Token {
			t.Errorf("%s: it is attempt %d, token %s", name, got.Attempt, got.Token)
		}
	}
	copied := NewIntent(m, 3, "nova", nil)
	if got := copied.Onward(&Machine{ObjectMeta: metav1.ObjectMeta{UID: "m-1"}}, Token("m-1", 4, "nova")); got.Token != copied.Token {
		t.Errorf("a copied record became one of attempt %d", got.Attempt)
	}
}

// Nearly every instance is of the attempt on record: then no later one is looked for, which is a hash each, in every round of a scan.
func TestInstanceOfTheAttemptOnRecordIsKnownAtOnce(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	m := &Machine{ObjectMeta: metav1.ObjectMeta{UID: "m-0"}}
	latest := NewIntent(m, 3, "nova", nil)
	one := testing.AllocsPerRun(10, func() { Token(m.UID, 4, latest.Account) })
	if got := testing.AllocsPerRun(10, func() { latest.Onward(m, latest.Token) }); got > 3*one {
		t.Errorf("%v allocations, where a token takes %v", got, one)
	}
}
