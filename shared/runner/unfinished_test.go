// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/events"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// What a cloud left unclear about an object is looked at again soon: the event is answered with 503, and comes again. The clock
// comes again by itself, and an answer that is clear is the end of it, also where it is a no (RELIABILITY 2g).
func TestWhatIsUnclearIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		fault error
		kind  string // of the event
		want  int
	}{
		{"unclear", provider.Errorf(provider.Unknown, "502 bad gateway"), events.TypeRefPrefix + "update", http.StatusServiceUnavailable},
		{"unclear to the clock", provider.Errorf(provider.Unknown, "502 bad gateway"), events.TypePing, http.StatusAccepted},
		{"refused", provider.Errorf(provider.Denied, "403 forbidden"), events.TypeRefPrefix + "update", http.StatusAccepted},
		{"answered", nil, events.TypeRefPrefix + "update", http.StatusAccepted},
	} {
		cloud := &memory.Cloud{Fault: func(_ context.Context, call memory.Call) error {
			if call.Op == memory.OpFind {
				return c.fault
			}
			return nil
		}}
		cloud.Add(accountOfC, "c", provider.Instance{Name: "worker-0", UID: "worker-0", State: provider.StateRunning})
		api := apiserver.New(time.Now)
		if err := api.Put(machineIn("worker-0", "worker-0")); err != nil {
			t.Fatal(err)
		}
		r := testRunner(function.Function{
			Name:   "look",
			Reads:  lookups,
			Decide: func(snapshot.Snapshot) plan.Plan { return plan.Plan{} },
		}, api.As("look"))
		r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
		about := snapshot.Request{APIVersion: "machine.openshift.io/v1beta1", Kind: "Machine", Namespace: machine.Namespace, Name: "worker-0"}
		if w := postAbout(NewServer(r, []string{machine.Namespace}), c.kind, about); w.Code != c.want {
			t.Errorf("%s: %d, want %d", c.name, w.Code, c.want)
		}
	}
}

// Nor is an event done with while what was decided had no time, or came to an end that nobody knows, or was left out as the instance is
// being changed already: it comes again.
func TestWhatIsLeftForLaterIsDeliveredAgain(t *testing.T) {
	t.Parallel()
	ask := plan.UpdateInstance{Account: accountOfC, Cluster: "c", Ref: provider.Ref{UID: "worker-0", Name: "worker-0"}, Tags: map[string]string{"a": "b"}}
	for name, c := range map[string]struct {
		fault error
		takes time.Duration // to decide
		want  bool
	}{
		"done":         {nil, 0, false},
		"refused":      {provider.Errorf(provider.Denied, "403 forbidden"), 0, false},
		"unknown":      {provider.Errorf(provider.Unknown, "502 bad gateway"), 0, true},
		"no time left": {nil, budget - mutationBudget + time.Second, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			cloud := &memory.Cloud{Fault: func(_ context.Context, call memory.Call) error {
				if call.Op == memory.OpUpdate {
					return c.fault
				}
				return nil
			}}
			cloud.Add(accountOfC, "c", provider.Instance{Name: "worker-0", UID: "worker-0", State: provider.StateRunning})
			api := apiserver.New(time.Now)
			if err := api.Put(machineIn("worker-0", "worker-0")); err != nil {
				t.Fatal(err)
			}
			r := testRunner(function.Function{Name: "look", Reads: lookups, Decide: func(s snapshot.Snapshot) (p plan.Plan) {
				time.Sleep(c.takes)
				p.Then(ask)
				return p.Untried(s.Outcomes)
			}}, api.As("look"))
			r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
			if _, err := r.Handle(t.Context(), snapshot.Request{Kind: "Machine", Namespace: machine.Namespace, Name: "worker-0"}); (err != nil) != c.want {
				t.Errorf("%s: error %v", name, err)
			}
		})
	}
	i := &invocation{Runner: testRunner(function.Function{}, nil), mutated: map[target]bool{}, changed: map[types.UID]bool{}}
	if left := i.admissible([]plan.Sequence{{Do: []plan.Action{ask}}, {Do: []plan.Action{ask}}}); len(left) != 1 || !i.unfinished {
		t.Errorf("%d changes of one instance, unfinished %v", len(left), i.unfinished)
	}
}

// An outcome that nobody knows stays so beside one that is clear, which comes after it (RELIABILITY 2g).
func TestWhatIsUnknownBesideWhatIsDone(t *testing.T) {
	t.Parallel()
	cloud, api := &memory.Cloud{}, apiserver.New(time.Now)
	cloud.Fault = func(_ context.Context, call memory.Call) error {
		if call.Op == memory.OpUpdate && call.Ref.UID == "worker-0" {
			return provider.Errorf(provider.Unknown, "502 bad gateway")
		}
		return nil
	}
	var p plan.Plan
	for _, name := range []string{"worker-0", "worker-1"} {
		cloud.Add(accountOfC, "c", provider.Instance{Name: name, UID: types.UID(name), State: provider.StateRunning})
		p.Then(plan.UpdateInstance{Account: accountOfC, Cluster: "c", Ref: provider.Ref{UID: types.UID(name), Name: name}, Tags: map[string]string{"a": "b"}})
	}
	if err := api.Put(machineIn("worker-0", "worker-0")); err != nil {
		t.Fatal(err)
	}
	r := testRunner(function.Function{Name: "look", Reads: lookups, Decide: func(s snapshot.Snapshot) plan.Plan { return p.Untried(s.Outcomes) }}, api.As("look"))
	r.Clouds, r.Order = NewClouds([]provider.Provider{cloud.Provider()}, nil), func(int) int { return 0 }
	if _, err := r.Handle(t.Context(), snapshot.Request{Kind: "Machine", Namespace: machine.Namespace, Name: "worker-0"}); err == nil {
		t.Error("it is not delivered again")
	}
}

// Why an invocation fails is told, also where it has something left for later besides.
func TestCauseIsToldBesideWhatIsLeft(t *testing.T) {
	t.Parallel()
	cloud := &memory.Cloud{Fault: func(context.Context, memory.Call) error { return provider.Errorf(provider.Unknown, "502 bad gateway") }}
	api := apiserver.New(time.Now)
	if err := api.Put(machineIn("worker-0", "worker-0")); err != nil {
		t.Fatal(err)
	}
	r := testRunner(function.Function{Name: "look", Reads: lookups, Decide: func(s snapshot.Snapshot) (p plan.Plan) {
		next := s.Machines[0].DeepCopy()
		next.Labels = map[string]string{"a": "b"}
		p.Then(plan.Update{Old: s.Machines[0], New: next, Why: "test"})
		return p.Untried(s.Outcomes)
	}}, mute{api.As("look")})
	r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
	if _, err := r.Handle(t.Context(), snapshot.Request{Kind: "Machine", Namespace: machine.Namespace, Name: "worker-0"}); err == nil || !strings.Contains(err.Error(), "504") {
		t.Errorf("the invocation ends with %v", err)
	}
}

// A scan is the last one only if it came to carry out what it decided: whose turn it was has not had it otherwise (R-L4).
func TestScanThatWasCutOffIsNotTheLast(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes  time.Duration // to decide
		unread bool
		last   bool
	}{
		"carried out":  {0, false, true},
		"cut off":      {budget + time.Second, false, false},
		"nothing read": {0, true, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := testRunner(function.Function{
				Name: "look",
				Reads: func(snapshot.Snapshot) snapshot.Scope {
					return snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine")}}
				},
				Decide: func(snapshot.Snapshot) plan.Plan {
					time.Sleep(c.takes)
					return plan.Plan{}
				},
			}, apiserver.New(time.Now).As("look"))
			if c.unread {
				r.Clock = func() time.Time { return time.Now().Add(time.Hour) }
			}
			_, _ = r.Handle(t.Context(), snapshot.Request{})
			if got := r.scanned.Load() != nil; got != c.last {
				t.Errorf("%s: it is the last %v", name, got)
			}
		})
	}
}
