// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"testing"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// mute is an API server that carries out every change and loses its answer.
type mute struct{ cluster.Cluster }

func (s mute) Apply(ctx context.Context, a plan.Action) error {
	return cmp.Or(s.Cluster.Apply(ctx, a), errors.New("504 Gateway Timeout"))
}

// A deletion whose answer is lost is told: the object may be gone when it is looked for again. A change is not: whether it was
// made is seen then.
func TestDeletionThatGotNoAnswerIsTold(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]int{"delete": 1, "update": 0} {
		api := world(t, 1)
		r := testRunner(function.Function{
			Name: "remove",
			Reads: func(snapshot.Snapshot) snapshot.Scope {
				return snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Node")}}
			},
			Decide: func(s snapshot.Snapshot) plan.Plan {
				var p plan.Plan
				for _, m := range s.Nodes {
					next := m.DeepCopy()
					next.Labels = map[string]string{"a": "b"}
					var a plan.Action = plan.Update{Old: m, New: next, Why: "test"}
					if kind == "delete" {
						a = plan.Delete{Object: m, Why: "test"}
					}
					p.Add(plan.Sequence{Do: []plan.Action{a}, Notes: []plan.Note{plan.Normal(m, "MachineDeleted", "by the test")}})
				}
				return p
			},
		}, mute{api.As("remove")})
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err == nil {
			t.Errorf("%s: no error, though no answer came", kind)
		}
		if got := api.Events(); len(got) != want {
			t.Errorf("%s: %d events, want %d: %v", kind, len(got), want, got)
		}
	}
}
