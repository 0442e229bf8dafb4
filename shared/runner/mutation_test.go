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
		got := changeOf(plan.Sequence{Do: []plan.Action{plan.Update{}, c.does}})
		if got.of != c.want || got.account != "east" || !got.mutates {
			t.Errorf("%s: %v in %q, %t", name, got.of, got.account, got.mutates)
		}
	}
	if got := changeOf(plan.Sequence{Do: []plan.Action{plan.Update{}, plan.Evict{}}}); got.of != (target{}) || got.account != "" || got.mutates {
		t.Errorf("an eviction: %v in %q, %t", got.of, got.account, got.mutates)
	}
}
