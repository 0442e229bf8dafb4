// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"sync"
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

// A removal that another invocation still waits for the answer to is not one that was accepted: what the cloud refuses, or says nothing
// about, is going for nobody. Of one that was accepted nobody asks again at once.
func TestOnlyWhatWasAcceptedIsGoing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer error
		want   plan.Result
	}{
		"accepted":   {nil, plan.Done},
		"refused":    {provider.Errorf(provider.Invalid, "it is locked"), plan.Refused},
		"unanswered": {errors.New("<html>bad gateway</html>"), plan.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				calls, a := 0, plan.DeleteInstance{Account: accountOfC, Cluster: "c", Ref: provider.Ref{UID: "worker-0", Name: "worker-0"}}
				cloud := &memory.Cloud{Fault: func(_ context.Context, call memory.Call) error {
					if call.Op != memory.OpDelete || call.After {
						return nil
					}
					mu.Lock()
					calls++
					mu.Unlock()
					time.Sleep(2 * time.Second)
					return c.answer
				}}
				cloud.Add(accountOfC, "c", provider.Instance{Name: "worker-0", UID: "worker-0", State: provider.StateRunning})
				api := apiserver.New(time.Now)
				m := machineIn("worker-0", "worker-0")
				if err := api.Put(m); err != nil {
					t.Fatal(err)
				}
				answered := 0
				r := testRunner(function.Function{
					Name: "look",
					Reads: func(snapshot.Snapshot) snapshot.Scope {
						return snapshot.Scope{Objects: []snapshot.Query{snapshot.All("Machine")}, Lookups: []snapshot.Lookup{{UID: m.UID, Open: true}}}
					},
					Decide: func(s snapshot.Snapshot) (p plan.Plan) {
						if o, tried := s.Outcomes[a.Key()]; tried {
							mu.Lock()
							defer mu.Unlock()
							if answered++; o.Result != c.want && !(c.answer == nil && o.Result == plan.Gone) {
								t.Errorf("the removal is %v, want %v", o.Result, c.want)
							}
							return p
						}
						p.Then(a)
						return p
					},
				}, api.As("look"))
				r.Clouds = NewClouds([]provider.Provider{cloud.Provider()}, nil)
				var both sync.WaitGroup
				for _, after := range []time.Duration{0, time.Second} {
					both.Go(func() {
						time.Sleep(after)
						_, _ = r.Handle(t.Context(), snapshot.Request{})
					})
				}
				both.Wait()
				before := calls
				_, _ = r.Handle(t.Context(), snapshot.Request{})
				if again := calls > before; answered != 3 || again == (c.answer == nil) {
					t.Errorf("%d answers to three; asked again: %v", answered, again)
				}
			})
		})
	}
}
