// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/clustertest"
	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A cloud whose list takes eight seconds is heard beside an API server that takes three, and a list that does not come at all leaves
// the same scan the time for a change in a cloud (R-L2, R-L4). Where the API server is slower still the change is too late, which the
// log says.
func TestSlowCloudIsHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		takes := 8 * time.Second
		cloud := &memory.Cloud{Fault: func(ctx context.Context, c memory.Call) error {
			if c.Op != memory.OpList || c.After {
				return nil
			}
			select {
			case <-time.After(takes):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}}
		cloud.Add(accountOfC, "c", provider.Instance{Name: "worker-0", UID: "worker-0", State: provider.StateRunning})
		api := apiserver.New(time.Now)
		if err := api.Put(machineIn("worker-0", "worker-0")); err != nil {
			t.Fatal(err)
		}
		heard, changes := false, false
		slow := &clustertest.SlowReads{Cluster: api.As("look"), Takes: 3 * time.Second}
		r := testRunner(function.Function{Name: "look", Reads: inBulk, Decide: func(s snapshot.Snapshot) plan.Plan {
			heard = s.Clouds["worker-0"].Err == nil
			var p plan.Plan
			p.Then(plan.DeleteInstance{Account: accountOfC, Cluster: "c", Ref: provider.Ref{UID: "other"}, Why: "of a test"})
			p = p.Untried(s.Outcomes)
			changes = changes || p.Quiet()
			return p
		}}, slow)
		r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
		var log bytes.Buffer
		r.Log = slog.New(slog.NewTextHandler(&log, nil))
		scan := func() {
			changes = false
			if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Error(err)
			}
		}
		if scan(); !heard {
			t.Error("a list that takes eight seconds is not heard")
		}
		takes = time.Hour
		if scan(); heard || !changes {
			t.Errorf("a scan waits in vain: heard %v, makes a change %v", heard, changes)
		}
		log.Reset()
		slow.Takes = 5 * time.Second
		if scan(); heard || changes || !strings.Contains(log.String(), `msg="too late to begin"`) || !strings.Contains(log.String(), "account="+accountOfC) || !strings.Contains(log.String(), "of a test") {
			t.Errorf("a scan that reads for long: heard %v, makes a change %v, log:\n%s", heard, changes, log.String())
		}
		takes = 8 * time.Second
		if scan(); !heard {
			t.Error("a cloud that was silent is not heard again")
		}
	})
}

// A cloud whose list takes ten seconds each time, and comes, costs no scan its changes, in that cloud or another (R-L2, R-L4).
func TestSlowListLeavesTimeForChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		removals := 0
		cloud := &memory.Cloud{Fault: func(_ context.Context, c memory.Call) error {
			switch {
			case c.After:
			case c.Op == memory.OpList:
				time.Sleep(callTimeout - time.Millisecond)
			case c.Op == memory.OpDelete:
				removals++
			}
			return nil
		}}
		cloud.Add(accountOfC, "c", provider.Instance{Name: "worker-0", UID: "worker-0", State: provider.StateRunning})
		api := apiserver.New(time.Now)
		if err := api.Put(machineIn("worker-0", "worker-0")); err != nil {
			t.Fatal(err)
		}
		r := testRunner(function.Function{Name: "look", Reads: inBulk, Decide: func(s snapshot.Snapshot) plan.Plan {
			var p plan.Plan
			if s.Clouds["worker-0"].Err != nil {
				t.Error(s.Clouds["worker-0"].Err)
			}
			if len(s.Outcomes) == 0 {
				p.Then(plan.DeleteInstance{Account: accountOfC, Cluster: "c", Ref: provider.Ref{UID: "other"}, Why: "of a test"})
			}
			return p
		}}, clustertest.SlowReads{Cluster: api.As("look"), Takes: time.Second})
		r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
		for scan := range 10 {
			began := time.Now()
			if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil || time.Since(began) > budget {
				t.Errorf("a scan takes %v: %v", time.Since(began), err)
			}
			if removals != scan+1 {
				t.Fatalf("%d removals in %d scans", removals, scan+1)
			}
		}
	})
}

// Where more Machines of one account are waited for in vain than are asked about at a time, another one has its turn, too (R-L4); and
// that there was no time to ask about it is no refusal of anything.
func TestNobodyIsAskedAboutBehindTheSilent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cloud := &memory.Cloud{Fault: func(ctx context.Context, c memory.Call) error {
			if c.Op == memory.OpFind && !c.After && c.Ref.Name != "worker-9" {
				<-ctx.Done()
			}
			return ctx.Err()
		}}
		api := apiserver.New(time.Now)
		for n := range 3 * maxParallel {
			name := fmt.Sprintf("worker-%d", n)
			if err := api.Put(machineIn(name, types.UID(name))); err != nil {
				t.Fatal(err)
			}
		}
		heard := 0
		r := testRunner(function.Function{
			Name:  "look",
			Reads: oneByOne,
			Decide: func(s snapshot.Snapshot) plan.Plan {
				for uid, c := range s.Clouds {
					switch {
					case uid == "worker-9" && c.Err == nil:
						heard++
					case c.Err == nil || c.Err.Code != provider.Unknown:
						t.Errorf("%s: %+v", uid, c.Err)
					}
				}
				return plan.Plan{}
			},
		}, api.As("look"))
		r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
		for range 50 {
			r.looking = rota[types.UID]{} // as of a process that begins: one that goes on knows who has waited longest
			if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Error(err)
			}
		}
		if heard < 5 { // of some 17
			t.Errorf("heard in %d of 50 scans", heard)
		}
	})
}

// More Machines than are asked about at a time, of which none is answered, cost a scan one look and not another after each change
// (R-L4).
func TestSilentCloudCostsOneLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cloud := &memory.Cloud{Fault: func(ctx context.Context, c memory.Call) error {
			if c.Op == memory.OpFind && !c.After {
				<-ctx.Done()
			}
			return ctx.Err()
		}}
		api := apiserver.New(time.Now)
		for n := range 3 * maxParallel {
			name := fmt.Sprintf("worker-%d", n)
			if err := api.Put(machineIn(name, types.UID(name))); err != nil {
				t.Fatal(err)
			}
		}
		r := testRunner(function.Function{Name: "look", Reads: oneByOne, Decide: func(s snapshot.Snapshot) plan.Plan {
			var p plan.Plan
			if len(s.Outcomes) == 0 {
				p.Then(plan.DeleteInstance{Account: accountOfC, Cluster: "c", Ref: provider.Ref{UID: "other"}, Why: "of a test"})
			}
			return p
		}}, api.As("look"))
		r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
		began := time.Now()
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil || time.Since(began) > budget-lookBudget {
			t.Errorf("a scan takes %v: %v", time.Since(began), err)
		}
	})
}

// oneByOne asks for each Machine's instance by itself.
func oneByOne(s snapshot.Snapshot) snapshot.Scope {
	sc := inBulk(s)
	for n := range sc.Lookups {
		sc.Lookups[n].Bulk = false
	}
	return sc
}
