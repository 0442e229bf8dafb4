// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// A call is refused, and before that is recorded the credentials go: how long the lost call before it may surface nobody can say,
// so the attempt stays open under its token (2b.4).
func TestRefusalWithoutACloudProvesNothing(t *testing.T) {
	t.Parallel()
	s, _, err := scenario.Load("testdata/refusal-after-a-lost-answer-proves-nothing.txtar")
	if err != nil {
		t.Fatal(err)
	}
	seen, _, err := scenario.Observe(Function, s)
	if err != nil {
		t.Fatal(err)
	}
	m := seen.Machines[0]
	seen.Clouds = map[types.UID]snapshot.Cloud{m.UID: {Err: &snapshot.Refusal{Code: provider.Denied, Message: "the Secret is gone"}}}
	var i *machine.Intent
	for _, a := range Decide(seen).Actions() {
		if u, ok := a.(plan.Update); ok {
			i, err = machine.ParseIntent(u.New.(*machine.Machine))
		}
	}
	if err != nil || i == nil || i.Outcome != machine.OutcomePartial || i.Unanswered == nil {
		t.Errorf("the attempt became %v, error %v", i, err)
	}
}
