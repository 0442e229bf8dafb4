// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// silent is an API server that never answers reads, writes, or who tells something.
type silent struct {
	cluster.Cluster
	reads, writes, events bool
}

// Observe may wait for ever.
func (c silent) Observe(ctx context.Context, s snapshot.Snapshot, q []snapshot.Query) (snapshot.Snapshot, error) {
	if c.reads {
		<-ctx.Done()
		return s, ctx.Err()
	}
	return c.Cluster.Observe(ctx, s, q)
}

// Apply may wait for ever.
func (c silent) Apply(ctx context.Context, a plan.Action) error {
	if c.writes {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.Cluster.Apply(ctx, a)
}

// Tell may wait for ever.
func (c silent) Tell(ctx context.Context, n plan.Note) error {
	if c.events {
		<-ctx.Done()
		return ctx.Err()
	}
	return c.Cluster.Tell(ctx, n)
}

// Whoever does not answer, a request is answered within 25 s: the runtime cuts it off at 30, and would deliver it again while
// it still runs (R-L5, RELIABILITY G6).
func TestEveryRequestIsAnswered(t *testing.T) {
	t.Parallel()
	within := func(t *testing.T, what string, handle func()) {
		t.Helper()
		begin := time.Now()
		handle()
		if took := time.Since(begin); took > 25*time.Second || took < time.Second {
			t.Errorf("%s: answered after %v", what, took)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		for what, api := range map[string]silent{"reads": {reads: true}, "writes": {writes: true}, "events": {events: true}} {
			api.Cluster = world(t, 20).As("label")
			within(t, what, func() { _, _ = testRunner(label(wantLabel), api).Handle(t.Context(), snapshot.Request{}) })
		}
		wanted := func(a plan.Action) func(snapshot.Snapshot) plan.Plan {
			return func(s snapshot.Snapshot) (p plan.Plan) { p.Then(a); return p.Untried(s.Outcomes) }
		}
		of := provider.Ref{UID: "worker-0", Name: "worker-0"}
		for op, decide := range map[memory.Op]func(snapshot.Snapshot) plan.Plan{
			memory.OpFind: creations(nil), memory.OpList: creations(nil), memory.OpCreate: creations(nil), memory.OpResolve: creations(nil),
			memory.OpDelete:     wanted(plan.DeleteInstance{Account: accountOfC, Ref: of}),
			memory.OpUpdate:     wanted(plan.UpdateInstance{Account: accountOfC, Ref: of}),
			memory.OpPowerCycle: wanted(plan.PowerCycle{Account: accountOfC, Ref: of}),
			memory.OpPowerOff:   wanted(plan.PowerCycle{Account: accountOfC, Ref: of, To: provider.PowerHeld}),
			memory.OpPowerOn:    wanted(plan.PowerCycle{Account: accountOfC, Ref: of, To: provider.PowerOn}),
		} {
			within(t, string(op), func() {
				_ = clouded(t, func(ctx context.Context, c memory.Call) error {
					if c.Op == op {
						<-ctx.Done()
						return ctx.Err()
					}
					return nil
				}, snapshot.Lookup{Resolve: true}, decide)
			})
		}
	})
}

// creations wants an instance for each of forty Machines that has none, whatever became of the others.
func creations(made map[string]bool) func(snapshot.Snapshot) plan.Plan {
	return func(s snapshot.Snapshot) plan.Plan {
		var p plan.Plan
		for i := range 40 {
			name := fmt.Sprintf("m-%02d", i)
			if !made[name] {
				ref := provider.Ref{UID: types.UID(name), Name: name, Token: name}
				p.Then(plan.CreateInstance{Account: accountOfC, Ref: ref, Request: s.Clouds["worker-0"].Resolved})
			}
		}
		return p.Untried(s.Outcomes)
	}
}

// Forty Machines are due, a cloud takes nine seconds for each, and never answers about some of them: sixteen fit into an invocation.
// One that is never answered holds up nobody, so that each has had its turn after ⌈40/16⌉+1 ticks; even sixteen, which would take all
// places, keep nobody from it who is behind them, as others come first each time (R-L4).
func TestNobodyWaitsBehindThePoisoned(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		poisoned func(name string) bool
		ticks    int
		made     int
	}{
		"one":     {func(name string) bool { return name == "m-07" }, 40/(2*maxParallel) + 2, 39},
		"sixteen": {func(name string) bool { return name < "m-16" }, 60, 24},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made, turns := map[string]bool{}, map[string]int{}
				var mu sync.Mutex
				for range of.ticks {
					_ = clouded(t, func(ctx context.Context, c memory.Call) error {
						if c.Op != memory.OpCreate || c.After {
							return nil
						}
						mu.Lock()
						turns[c.Ref.Name]++
						mu.Unlock()
						if of.poisoned(c.Ref.Name) {
							<-ctx.Done()
							return ctx.Err()
						}
						time.Sleep(9 * time.Second)
						mu.Lock()
						defer mu.Unlock()
						made[c.Ref.Name] = true
						return nil
					}, snapshot.Lookup{Resolve: true}, func(s snapshot.Snapshot) plan.Plan {
						mu.Lock()
						defer mu.Unlock()
						return creations(made)(s)
					})
				}
				if len(made) != of.made || len(turns) != 40 {
					t.Errorf("%d of %d are made, %d of 40 had their turn", len(made), of.made, len(turns))
				}
			})
		})
	}
}
