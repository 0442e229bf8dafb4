// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// Eighty instances are to go in one account, and two in another, whichever comes first: these are among the first four, and those keep
// their order (R-L4).
func TestAccountsTakeTurns(t *testing.T) {
	t.Parallel()
	var all []plan.Sequence
	remove := func(account, uid string) {
		all = append(all, plan.Sequence{Do: []plan.Action{plan.DeleteInstance{Account: account, Ref: provider.Ref{UID: types.UID(uid)}}}})
	}
	for n := range 80 {
		remove("east", fmt.Sprintf("east-%02d", n))
	}
	remove("west", "west-0")
	remove("west", "west-1")
	for start := range all {
		i := &invocation{Runner: &Runner{Order: func(int) int { return start }}, mutated: map[target]bool{}, changed: map[types.UID]bool{}}
		west, last := 0, ""
		for at, c := range i.admissible(all) {
			of, account := c.of, c.account
			switch {
			case account == "west" && at > 3:
				t.Errorf("from %d on: %s comes %dth", start, of.uid, at)
			case account == "west":
				west++
			case last != "" && string(of.uid) != fmt.Sprintf("east-%02d", (number(t, last)+1)%80):
				t.Errorf("from %d on: %s comes after %s", start, of.uid, last)
			default:
				last = string(of.uid)
			}
		}
		if west != 2 {
			t.Errorf("from %d on: %d of two come", start, west)
		}
	}
}

func number(t *testing.T, name string) (n int) {
	t.Helper()
	if _, err := fmt.Sscanf(name, "east-%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}
