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

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Of 900 instances that no list shows, because another system made them or because they vanished at once, a cloud tells one by
// one, in 100 ms each: everybody's turn comes within a few scans, none takes the time that creates and deletes need, and who
// has to wait is told nothing wrong (R-L4).
func TestInstancesThatNoListShowsAreAskedForInTurn(t *testing.T) {
	t.Parallel()
	for _, made := range []string{"by another system", "vanished"} {
		t.Run(made, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const machines = 900
				var mu sync.Mutex
				finds := 0
				cloud := &memory.Cloud{Fault: func(ctx context.Context, c memory.Call) error {
					if c.Op == memory.OpFind && !c.After {
						mu.Lock()
						finds++
						mu.Unlock()
						select {
						case <-time.After(100 * time.Millisecond):
						case <-ctx.Done():
							return ctx.Err()
						}
					}
					return nil
				}}
				api := apiserver.New(time.Now)
				for k := range machines {
					id := fmt.Sprintf("memory:///i-%d", k)
					if made != "vanished" {
						id = "memory:///" + cloud.Add("", "", provider.Instance{Name: fmt.Sprintf("worker-%03d", k), State: provider.StateRunning})
					}
					m := machineIn(fmt.Sprintf("worker-%03d", k), types.UID(fmt.Sprint("m-", k)))
					m.Spec.ProviderID = &id
					if err := api.Put(m); err != nil {
						t.Fatal(err)
					}
				}
				answered := map[types.UID]bool{}
				r := testRunner(function.Function{
					Name:  "look",
					Reads: inBulk,
					Decide: func(s snapshot.Snapshot) plan.Plan {
						for uid, c := range s.Clouds {
							if c.Err != nil {
								t.Errorf("%s: %+v", uid, c.Err)
							}
							if !c.Later {
								answered[uid] = true
							}
						}
						return plan.Plan{}
					},
				}, api.As("look"))
				r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
				for range 5 {
					began := time.Now()
					if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
						t.Fatal(err)
					}
					if took := time.Since(began); took > budget-mutationBudget {
						t.Errorf("a scan asks for %v", took)
					}
					time.Sleep(10 * time.Second)
				}
				if len(answered) != machines || finds > 5*8*31 {
					t.Errorf("after 5 scans %d of %d Machines had an answer, by %d calls", len(answered), machines, finds)
				}
			})
		})
	}
}

// Of a hundred instances that are looked for one by one a cloud never tells, eight are waited for in a scan: each has had its turn after
// ⌈100/8⌉+1 ticks (R-L4).
func TestWhoIsLookedForInVainTakesTurns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const machines = 100
		var mu sync.Mutex
		asked := map[string]int{}
		cloud := &memory.Cloud{Fault: func(ctx context.Context, c memory.Call) error {
			if c.Op != memory.OpFind || c.After {
				return nil
			}
			mu.Lock()
			asked[c.Ref.Name]++
			mu.Unlock()
			<-ctx.Done()
			return ctx.Err()
		}}
		api := apiserver.New(time.Now)
		for k := range machines {
			if err := api.Put(machineIn(fmt.Sprintf("worker-%03d", k), types.UID(fmt.Sprint("m-", k)))); err != nil {
				t.Fatal(err)
			}
		}
		r := testRunner(function.Function{
			Name: "look",
			Reads: func(s snapshot.Snapshot) snapshot.Scope {
				sc := inBulk(s)
				for n := range sc.Lookups {
					sc.Lookups[n].Bulk = false
				}
				return sc
			},
			Decide: func(snapshot.Snapshot) plan.Plan { return plan.Plan{} },
		}, api.As("look"))
		r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
		for range (machines+maxParallel-1)/maxParallel + 1 {
			if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Second)
		}
		if len(asked) != machines {
			t.Errorf("%d of %d were looked for", len(asked), machines)
		}
	})
}

// A cloud that is cut off each time is at fault in the end; once it has answered it is excused anew.
func TestNobodyIsExcusedForEver(t *testing.T) {
	t.Parallel()
	some := &turns{cuts: map[types.UID]int{}}
	for n, c := range []struct{ cut, want bool }{{true, true}, {true, true}, {true, false}, {true, false}, {false, false}, {true, true}} {
		if got := some.excused("m", c.cut); got != c.want {
			t.Errorf("%d: cut off %v: excused %v", n, c.cut, got)
		}
	}
}
