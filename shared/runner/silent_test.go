// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster"
	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A cloud whose list takes eight seconds is heard, also after a list that did not come at all: within two minutes it is given its
// whole time again. Where the API server is slow too, the scan that waited in vain has no time for a change in a cloud, and says so; the
// next one has, while the list is silent (R-L2, R-L4).
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
		r := testRunner(function.Function{Name: "look", Reads: inBulk, Decide: func(s snapshot.Snapshot) plan.Plan {
			heard = s.Clouds["worker-0"].Err == nil
			var p plan.Plan
			p.Then(plan.DeleteInstance{Account: accountOfC, Cluster: "c", Ref: provider.Ref{UID: "other"}, Why: "of a test"})
			p = p.Untried(s.Outcomes)
			changes = changes || p.Quiet()
			return p
		}}, slowReads{api.As("look"), 3 * time.Second})
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
		log.Reset()
		if scan(); heard || changes || !strings.Contains(log.String(), `msg="too late to begin"`) || !strings.Contains(log.String(), "account="+accountOfC) || !strings.Contains(log.String(), "of a test") {
			t.Errorf("a scan waits in vain: heard %v, makes a change %v, log:\n%s", heard, changes, log.String())
		}
		if scan(); heard || !changes {
			t.Errorf("the next scan: heard %v, makes a change %v", heard, changes)
		}
		takes = 8 * time.Second
		for began := time.Now(); !heard && time.Since(began) < 2*time.Minute; time.Sleep(10 * time.Second) {
			scan()
		}
		if !heard {
			t.Error("a cloud that was silent once is not heard again within two minutes")
		}
		if scan(); !heard {
			t.Error("a cloud that was heard again is not given its time")
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
		}}, slowReads{api.As("look"), time.Second})
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

// slowReads is an API server that takes its time to read.
type slowReads struct {
	cluster.Cluster
	takes time.Duration
}

func (s slowReads) Observe(ctx context.Context, seen snapshot.Snapshot, q []snapshot.Query) (snapshot.Snapshot, error) {
	time.Sleep(s.takes)
	return s.Cluster.Observe(ctx, seen, q)
}
