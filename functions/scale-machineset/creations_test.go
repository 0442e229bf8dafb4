// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"log/slog"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// One invocation makes twenty Machines of a set that wants more, as it may be the last one of its process and many sets may grow at once;
// their events, or the next scan, go on until all are there (2a.4).
func TestOneInvocationMakesTwentyMachines(t *testing.T) {
	t.Parallel()
	api := memory.New(time.Now)
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "worker", Namespace: machine.Namespace}}
	set.Spec.Replicas = new(int32(50))
	set.Spec.Selector.MatchLabels = map[string]string{machine.LabelMachineSet: "worker"}
	set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	if err := api.Put(set); err != nil {
		t.Fatal(err)
	}
	r := &runner.Runner{Function: Function, Cluster: api.As(Function.Name), Log: slog.New(slog.DiscardHandler)}
	for i, want := range []int{20, 40, 50, 50} {
		if _, err := r.Handle(t.Context(), snapshot.Request{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Namespace: machine.Namespace, Name: "worker"}); err != nil {
			t.Fatal(err)
		}
		if all := memory.List[*machine.Machine](api); len(all) != want {
			t.Errorf("there are %d Machines after invocation %d, want %d", len(all), i+1, want)
		}
	}
}

// A Machine that this invocation made, and that somebody removed since, was not refused: the others are made, and nothing is said against it. It
// counts among the twenty, and the next look makes it anew (2a.4).
func TestMachineThatIsGoneAgainWasNotRefused(t *testing.T) {
	t.Parallel()
	set := workers(30)
	s := snapshot.Snapshot{Now: at, Outcomes: map[plan.Key]plan.Outcome{}}
	for k := range 18 {
		s.Outcomes[plan.Create{Object: member(set, k)}.Key()] = plan.Outcome{Result: plan.Done}
	}
	all := creations(s, set, ledgerOf(set, 30), members{})
	if len(all) != 2 {
		t.Errorf("%d steps after 18 of 20 creations", len(all))
	}
	for _, seq := range all {
		for _, n := range seq.Notes {
			t.Errorf("it is said: %v", n)
		}
	}
}
