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

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// A cloud whose list takes eight seconds is heard, also after a list that did not come at all: within two minutes it is given its
// whole time again. The scan that waited in vain has no time for a change in a cloud, and says so; the next one has, while the list
// is silent (R-L2, R-L4).
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
		}}, api.As("look"))
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
