// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
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
// made is seen then. Nor is what was to come after the deletion.
func TestDeletionThatGotNoAnswerIsTold(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]int{"delete": 1, "update": 0, "delete and update": 0} {
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
					actions := map[string]plan.Action{"delete": plan.Delete{Object: m, Why: "test"}, "update": plan.Update{Old: m, New: next, Why: "test"}}
					var do []plan.Action
					for what := range strings.SplitSeq(kind, " and ") {
						do = append(do, actions[what])
					}
					p.Add(plan.Sequence{Do: do, Notes: []plan.Note{plan.Normal(m, "MachineDeleted", "by the test")}})
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

// partly is an API server that answers nothing clear about one Node.
type partly struct{ cluster.Cluster }

func (s partly) Apply(ctx context.Context, a plan.Action) error {
	if u, is := a.(plan.Update); is && u.Old.GetName() == "n1" {
		return errors.New("500 Internal Server Error: failed calling webhook")
	}
	return s.Cluster.Apply(ctx, a)
}

// What one write got no clear answer to is no end for all others: what was answered to them is followed up in the same invocation, as
// what a cloud has made is recorded (2c, R-L4). The invocation has not succeeded, and where nobody else had anything to do it ends.
func TestUnclearAnswerAboutOneObjectEndsNoOther(t *testing.T) {
	t.Parallel()
	for nodes, rounds := range map[int]int{2: 3, 3: 3} {
		api := world(t, nodes)
		seen := 0
		r := testRunner(label(func(s snapshot.Snapshot) (p plan.Plan) {
			seen++
			for _, n := range s.Nodes {
				next := n.DeepCopy()
				switch {
				case n.Labels["first"] == "":
					next.Labels = map[string]string{"first": "yes"}
				case n.Labels["second"] == "" && len(s.Outcomes) > 0:
					next.Labels["second"] = "yes"
				default:
					continue
				}
				p.Then(plan.Update{Old: n, New: next, Why: "test"})
			}
			return p.Untried(s.Outcomes)
		}), partly{api.As("label")})
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err == nil || !strings.Contains(err.Error(), "webhook") {
			t.Errorf("the invocation ends with %v", err)
		}
		for _, n := range memory.List[*corev1.Node](api) {
			if want := map[bool]int{true: 0, false: 2}[n.Name == "n1"]; len(n.Labels) != want {
				t.Errorf("%s has %v", n.Name, n.Labels)
			}
		}
		if seen != rounds {
			t.Errorf("of %d nodes: decided %d times, want %d", nodes, seen, rounds)
		}
	}
	seen := 0
	r := testRunner(label(func(s snapshot.Snapshot) plan.Plan { seen++; return wantLabel(s).Untried(s.Outcomes) }), mute{world(t, 3).As("label")})
	if _, err := r.Handle(t.Context(), snapshot.Request{}); err == nil || seen != 1 {
		t.Errorf("where no answer came to anybody: decided %d times, error %v", seen, err)
	}
}
