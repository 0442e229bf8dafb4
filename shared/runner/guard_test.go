// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const accountOfC = memory.Kind + "//" + machine.Namespace + "/"

// inBulk reads every Machine, and its instance from the bulk list of its account.
func inBulk(s snapshot.Snapshot) snapshot.Scope {
	sc := snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine")}}
	for _, m := range s.Machines {
		sc.Lookups = append(sc.Lookups, snapshot.Lookup{UID: m.UID, Bulk: true})
	}
	return sc
}

// machineIn returns a Machine of cluster c in a cloud of memory.
func machineIn(name string, uid types.UID) *machine.Machine {
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name, UID: uid}}
	m.Labels = map[string]string{machine.LabelCluster: "c"}
	m.Spec.ProviderSpec.Value = &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"type":"small"}`, memory.Kind)}
	return m
}

// clouded is a world of one Machine with a cloud, and a function that looks and decides as it is told.
func clouded(t *testing.T, fault func(context.Context, memory.Call) error, l snapshot.Lookup, decide func(snapshot.Snapshot) plan.Plan) error {
	t.Helper()
	_, err := cloudedRunner(t, fault, l, decide).Handle(t.Context(), snapshot.Request{})
	return err
}

func cloudedRunner(t *testing.T, fault func(context.Context, memory.Call) error, l snapshot.Lookup, decide func(snapshot.Snapshot) plan.Plan) *Runner {
	t.Helper()
	cloud := &memory.Cloud{Fault: fault}
	cloud.Add(accountOfC, "c", provider.Instance{Name: "worker-0", UID: "worker-0", State: provider.StateRunning})
	api := apiserver.New(time.Now)
	m := machineIn("worker-0", "worker-0")
	if err := api.Put(m); err != nil {
		t.Fatal(err)
	}
	l.UID = m.UID
	r := testRunner(function.Function{
		Name: "look",
		Reads: func(s snapshot.Snapshot) snapshot.Scope {
			sc := snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine")}}
			if len(s.Machines) > 0 {
				sc.Lookups = []snapshot.Lookup{l}
				sc.Accounts = []snapshot.AccountQuery{{Key: accountOfC, Namespace: machine.Namespace, Spec: string(m.Spec.ProviderSpec.Value.Raw), ClusterID: "c"}}
			}
			return sc
		},
		Decide: decide,
	}, api.As("look"))
	r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
	return r
}

// A cloud that does not answer says nothing about what is there, whatever it was asked: by list, by Machine, by account
// (RELIABILITY G5, R-S12).
func TestSilenceOfACloudIsNoAbsence(t *testing.T) {
	t.Parallel()
	for name, l := range map[string]snapshot.Lookup{"list": {Bulk: true}, "find": {}} {
		decided := false
		_ = clouded(t, func(_ context.Context, c memory.Call) error {
			if c.Op == memory.OpList || c.Op == memory.OpFind {
				return errors.New("<html>bad gateway</html>")
			}
			return nil
		}, l, func(s snapshot.Snapshot) plan.Plan {
			decided = true
			if c := s.Clouds["worker-0"]; c.Err == nil || c.Err.Code != provider.Unknown {
				t.Errorf("%s: an answer without an error: %+v", name, c)
			}
			if a := s.Accounts[accountOfC]; a.Err == nil {
				t.Errorf("%s: an account without an error: %+v", name, a)
			}
			return plan.Plan{}
		})
		if !decided {
			t.Errorf("%s: nothing was decided", name)
		}
	}
}

// Every call to a cloud has a deadline of its own, which the answer's write-back outlasts (RELIABILITY G6).
func TestCallsToCloudsAreBounded(t *testing.T) {
	t.Parallel()
	calls := 0
	err := clouded(t, func(ctx context.Context, c memory.Call) error {
		calls++
		if end, ok := ctx.Deadline(); !ok || time.Until(end) > 10*time.Second {
			t.Errorf("%s may take until %v", c.Op, end)
		}
		return nil
	}, snapshot.Lookup{Resolve: true}, func(s snapshot.Snapshot) plan.Plan {
		var p plan.Plan
		p.Then(plan.CreateInstance{Account: accountOfC, Ref: provider.Ref{UID: "worker-1", Name: "worker-1", Token: "t"}, Request: s.Clouds["worker-0"].Resolved})
		return p.Untried(s.Outcomes)
	})
	if calls < 6 || err != nil {
		t.Errorf("%d calls, error %v", calls, err)
	}
}

// A change in a cloud begins only while there is time for the call and for what has to be written after it (RELIABILITY G6).
func TestLateChangesAreLeftOut(t *testing.T) {
	t.Parallel()
	soon, cancel := context.WithTimeout(t.Context(), 6*time.Second)
	defer cancel()
	write := changeOf(plan.Sequence{Do: []plan.Action{plan.Update{}}})
	create := changeOf(plan.Sequence{Do: []plan.Action{plan.Update{}, plan.CreateInstance{}}})
	if late(soon, write) || !late(soon, create) {
		t.Errorf("with six seconds left a write is late: %v, a change in a cloud: %v", late(soon, write), late(soon, create))
	}
}

// Whatever a plan says, an invocation changes one Machine's instance once (RELIABILITY 2c).
func TestAnInstanceIsChangedOnce(t *testing.T) {
	t.Parallel()
	creates := 0
	_ = clouded(t, func(_ context.Context, c memory.Call) error {
		if c.Op == memory.OpCreate && !c.After {
			creates++
		}
		return nil
	}, snapshot.Lookup{Resolve: true}, func(s snapshot.Snapshot) plan.Plan {
		var p plan.Plan
		for _, token := range []string{"a", "b"} {
			p.Then(plan.CreateInstance{Account: accountOfC, Ref: provider.Ref{UID: "worker-1", Name: "worker-1", Token: token}, Request: s.Clouds["worker-0"].Resolved})
		}
		return p.Untried(s.Outcomes)
	})
	if creates != 1 {
		t.Errorf("%d calls", creates)
	}
}

// A function that asks again for what was answered is stopped, before the cloud is asked again.
func TestNothingIsAskedForTwice(t *testing.T) {
	t.Parallel()
	updates := 0
	err := clouded(t, func(_ context.Context, c memory.Call) error {
		if c.Op == memory.OpUpdate && !c.After {
			updates++
		}
		return nil
	}, snapshot.Lookup{}, func(snapshot.Snapshot) plan.Plan {
		var p plan.Plan
		p.Then(plan.UpdateInstance{Account: accountOfC, Ref: provider.Ref{UID: "worker-0", Name: "worker-0"}, Tags: map[string]string{"a": "b"}})
		return p
	})
	if updates != 1 || err == nil || !strings.Contains(err.Error(), "planned again") {
		t.Errorf("%d calls, error %v", updates, err)
	}
}

// Each round reads anew: what the round before it wrote is there (RELIABILITY G2).
func TestRoundsReadAnew(t *testing.T) {
	t.Parallel()
	api := apiserver.New(time.Now)
	if err := api.Put(&machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "worker"}}); err != nil {
		t.Fatal(err)
	}
	var seen []string
	_, err := testRunner(function.Function{
		Name: "count",
		Reads: func(snapshot.Snapshot) snapshot.Scope {
			return snapshot.Scope{Objects: []snapshot.Query{snapshot.All("MachineSet")}}
		},
		Decide: func(s snapshot.Snapshot) plan.Plan {
			var p plan.Plan
			set := s.MachineSets[0]
			seen = append(seen, set.Labels["round"])
			if len(seen) < 3 {
				next := set.DeepCopy()
				next.Labels = map[string]string{"round": fmt.Sprint(len(seen))}
				p.Then(plan.Update{Old: set, New: next})
			}
			return p
		},
	}, api.As("count")).Handle(t.Context(), snapshot.Request{})
	if got := strings.Join(seen, ","); err != nil || got != ",1,2" {
		t.Errorf("rounds saw %q, error %v", got, err)
	}
}

// What a cloud did not clearly refuse may have happened: only an error with a code is a no (RELIABILITY G5, 2b.4).
func TestUnclearAnswerIsNoRefusal(t *testing.T) {
	t.Parallel()
	for code, definite := range map[provider.Code]bool{
		provider.Unknown: false, provider.Invalid: true, provider.Exhausted: true, provider.Throttled: true, provider.Denied: true, provider.NotFound: true,
	} {
		var result plan.Result
		_ = clouded(t, func(_ context.Context, c memory.Call) error {
			if c.Op != memory.OpCreate {
				return nil
			}
			return provider.Errorf(code, "503 service unavailable")
		}, snapshot.Lookup{Resolve: true}, func(s snapshot.Snapshot) plan.Plan {
			a := plan.CreateInstance{Account: accountOfC, Ref: provider.Ref{UID: "worker-1", Name: "worker-1", Token: "t"}, Request: s.Clouds["worker-0"].Resolved}
			if o, tried := s.Outcome(a); tried {
				result = o.Result
			}
			var p plan.Plan
			p.Then(a)
			return p.Untried(s.Outcomes)
		})
		if want := map[bool]plan.Result{true: plan.Refused, false: plan.Failed}[definite]; result != want {
			t.Errorf("%s is %v, want %v", code, result, want)
		}
	}
}

// A claim that could not be written on a Machine, because that is gone by now, lets nothing be made for it (RELIABILITY 2b.2, R-S2).
func TestNothingIsMadeForAMachineThatIsGone(t *testing.T) {
	t.Parallel()
	made := 0
	cloud := &memory.Cloud{Fault: func(_ context.Context, c memory.Call) error {
		if c.Op == memory.OpCreate {
			made++
		}
		return nil
	}}
	api := apiserver.New(time.Now)
	m := machineIn("worker-0", "worker-0")
	if err := api.Put(m); err != nil {
		t.Fatal(err)
	}
	r := testRunner(function.Function{
		Name: "make",
		Reads: func(s snapshot.Snapshot) snapshot.Scope {
			sc := snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine")}}
			if len(s.Machines) > 0 {
				sc.Lookups = []snapshot.Lookup{{UID: m.UID, Resolve: true}}
			}
			return sc
		},
		Decide: func(s snapshot.Snapshot) plan.Plan {
			if len(s.Machines) == 0 {
				return plan.Plan{}
			}
			old := s.Machines[0]
			if err := api.As("people").Apply(t.Context(), plan.Delete{Object: old}); err != nil {
				t.Error(err)
			}
			next := old.DeepCopy()
			next.Annotations = map[string]string{machine.AnnotationIntent: "{}"}
			var p plan.Plan
			p.Then(plan.Update{Old: old, New: next, Why: "claim"}, plan.CreateInstance{
				Account: s.Clouds[old.UID].Account, Cluster: "c",
				Ref: provider.Ref{UID: old.UID, Name: old.Name}, Request: s.Clouds[old.UID].Resolved,
			})
			return p
		},
	}, api.As("make"))
	r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
	if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
	if made > 0 {
		t.Error("an instance was made for a machine that is gone")
	}
}
