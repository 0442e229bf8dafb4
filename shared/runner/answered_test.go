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
			memory.OpFind: creations(40, nil), memory.OpList: creations(40, nil), memory.OpCreate: creations(40, nil), memory.OpResolve: creations(40, nil),
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

// creations wants an instance for each of so many Machines that has none, whatever became of the others.
func creations(due int, made map[string]bool) func(snapshot.Snapshot) plan.Plan {
	return func(s snapshot.Snapshot) plan.Plan {
		var p plan.Plan
		for i := range due {
			name := fmt.Sprintf("m-%03d", i)
			if !made[name] {
				ref := provider.Ref{UID: types.UID(name), Name: name, Token: name}
				p.Then(plan.CreateInstance{Account: accountOfC, Ref: ref, Request: s.Clouds["worker-0"].Resolved})
			}
		}
		return p.Untried(s.Outcomes)
	}
}

// A cloud takes nine seconds for each of the Machines that are due, and never answers about some of them: sixteen fit into an
// invocation. Those that are never answered hold up nobody, so that each has had its turn after ⌈n/16⌉+1 ticks, also where they would
// take all places of most of them. Processes that remember nothing need luck for that, which comes, as others come first each time (R-L4).
func TestNobodyWaitsBehindThePoisoned(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]struct {
		due, poisoned int
		forgets       bool
		ticks         int
	}{
		"one":                              {40, 1, false, 3 + 1},
		"most":                             {160, 120, false, 10 + 1},
		"sixteen, of processes that begin": {40, 16, true, 60},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				made, turns := map[string]bool{}, map[string]int{}
				var mu sync.Mutex
				begin := func() *Runner {
					return cloudedRunner(t, func(ctx context.Context, c memory.Call) error {
						if c.Op != memory.OpCreate || c.After {
							return nil
						}
						mu.Lock()
						turns[c.Ref.Name]++
						mu.Unlock()
						if c.Ref.Name < fmt.Sprintf("m-%03d", of.poisoned) {
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
						return creations(of.due, made)(s)
					})
				}
				r := begin()
				for range of.ticks {
					if of.forgets {
						r = begin()
					}
					_, _ = r.Handle(t.Context(), snapshot.Request{})
				}
				if want := of.due - of.poisoned; len(made) != want || len(turns) != of.due {
					t.Errorf("%d of %d are made, %d of %d had their turn", len(made), want, len(turns), of.due)
				}
			})
		})
	}
}
