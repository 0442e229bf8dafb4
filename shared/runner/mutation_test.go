// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// Each change of an instance counts as one, so that it is made once in an invocation, and not too late (2c, G6); what is written to the
// cluster alone does not.
func TestWhatChangesAnInstance(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		does plan.Action
		want target
	}{
		"a create":      {plan.CreateInstance{Account: "east", Ref: provider.Ref{UID: "m-0", ID: "i-0"}}, target{uid: "m-0"}},
		"a removal":     {plan.DeleteInstance{Account: "east", Ref: provider.Ref{UID: "m-0", ID: "i-0"}}, target{"m-0", "i-0"}},
		"new tags":      {plan.UpdateInstance{Account: "east", Ref: provider.Ref{UID: "m-0", ID: "i-0"}}, target{uid: "m-0"}},
		"a power-cycle": {plan.PowerCycle{Account: "east", Ref: provider.Ref{UID: "m-0", ID: "i-0"}}, target{uid: "m-0"}},
	} {
		of, account, mutates := mutation(plan.Sequence{Do: []plan.Action{plan.Update{}, c.does}})
		if of != c.want || account != "east" || !mutates {
			t.Errorf("%s: %v in %q, %t", name, of, account, mutates)
		}
	}
	if of, account, mutates := mutation(plan.Sequence{Do: []plan.Action{plan.Update{}, plan.Evict{}}}); of != (target{}) || account != "" || mutates {
		t.Errorf("an eviction: %v in %q, %t", of, account, mutates)
	}
}
