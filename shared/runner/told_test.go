// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	clouds "github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Where nobody records Events, as the storage that they have of their own is down, everything is done as ever (R-L4): neither
// what describes a state, nor what accompanies a deed, takes the time of others.
func TestWhoeverRecordsNoEventsStopsNoWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const nodes = 80
		api := world(t, nodes)
		api.Forget()
		begin := time.Now()
		p, err := testRunner(label(func(s snapshot.Snapshot) plan.Plan {
			p := wantLabel(s)
			for i := range 5 {
				p.Notes = append(p.Notes, plan.Warning(s.Nodes[i], "Sad", fmt.Sprintf("state %c", 'a'+i)))
			}
			return p
		}), silent{Cluster: api.As("label"), events: true}).Handle(t.Context(), snapshot.Request{})
		if err != nil || len(api.Writes()) != nodes {
			t.Errorf("%v: %d of %d were written after %v, of %d planned", err, len(api.Writes()), nodes, time.Since(begin), len(p.Do))
		}
		if took := time.Since(begin); took > budget-mutationBudget {
			t.Errorf("it took %v", took)
		}
	})
}

// slowly records each Event in this time.
type slowly struct {
	cluster.Cluster
	each time.Duration
}

// Tell takes its time.
func (c slowly) Tell(ctx context.Context, n plan.Note) error {
	select {
	case <-time.After(c.each):
		return c.Cluster.Tell(ctx, n)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Many states are told by several scans, so that telling takes none of them the time for its work; in the end all are told, once.
func TestManyStatesAreToldByManyScans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const states = 600
		api := world(t, 20)
		api.Forget()
		r := testRunner(label(func(s snapshot.Snapshot) plan.Plan {
			p := wantLabel(s)
			for i := range states {
				p.Notes = append(p.Notes, plan.Warning(s.Nodes[0], fmt.Sprintf("Sad%c%c", 'a'+i/26, 'a'+i%26), "state"))
			}
			return p
		}), slowly{Cluster: api.As("label"), each: 50 * time.Millisecond})
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil || len(api.Writes()) < 20 {
			t.Errorf("%v: %d of 20 were written", err, len(api.Writes()))
		}
		for range 2 * states / 40 {
			_, _ = r.Handle(t.Context(), snapshot.Request{})
		}
		if got := len(api.Events()); got != states+20 {
			t.Errorf("%d Events, want %d states and 20 deeds", got, states)
		}
	})
}

// Beside a cloud that does not answer at all, which takes what a scan can wait, thousands of states leave it the time for a change in
// another, and are told meanwhile; so does one that is new in each, where nobody records Events (R-L4).
func TestManyStatesLeaveTimeForChanges(t *testing.T) {
	t.Parallel()
	for each, told := range map[time.Duration]int{50 * time.Millisecond: 100, time.Hour: 0} {
		synctest.Test(t, func(t *testing.T) { tellBesideASilentCloud(t, each, told) })
	}
}

func tellBesideASilentCloud(t *testing.T, each time.Duration, told int) {
	t.Helper()
	cloud := &clouds.Cloud{Fault: func(ctx context.Context, c clouds.Call) error {
		if c.Op == clouds.OpList {
			<-ctx.Done()
		}
		return ctx.Err()
	}}
	api := memory.New(time.Now)
	if err := api.Put(machineIn("worker-0", "worker-0")); err != nil {
		t.Fatal(err)
	}
	scan, changes, changed := 0, 0, false
	r := testRunner(function.Function{Name: "look", Reads: inBulk, Decide: func(s snapshot.Snapshot) plan.Plan {
		var p plan.Plan
		p.Then(plan.DeleteInstance{Account: accountOfC, Cluster: "c", Ref: provider.Ref{UID: "other"}, Why: "of a test"})
		p = p.Untried(s.Outcomes)
		changed = changed || p.Quiet()
		for i := range 5000 {
			p.Notes = append(p.Notes, plan.Warning(s.Machines[0], fmt.Sprintf("Sad%c%c%c", 'a'+i/26/26, 'a'+i/26%26, 'a'+i%26), "state"))
		}
		p.Notes = append(p.Notes, plan.Warning(s.Machines[0], fmt.Sprintf("New%c", 'a'+scan), "state"))
		return p
	}}, slowly{Cluster: api.As("look"), each: each})
	r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
	const scans = 10
	for scan = range scans {
		changed = false
		_, _ = r.Handle(t.Context(), snapshot.Request{})
		if changed {
			changes++
		}
	}
	if changes != scans || len(api.Events()) < told {
		t.Errorf("an Event takes %v: %d of %d scans made a change, and %d states were told", each, changes, scans, len(api.Events()))
	}
}
