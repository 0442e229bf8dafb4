// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Where the list alone fails, a deleted Machine that waits for a lost answer is told of it once: what a question of its own finds takes
// nothing back that the next list fails with (R-S14, R-L4).
func TestListThatFailsIsToldOnce(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(ctx context.Context) error{
		"list is refused with 503": func(context.Context) error { return provider.Errorf(provider.Unknown, "503 service unavailable") },
		"list is denied":           func(context.Context) error { return provider.Errorf(provider.Denied, "not authorized to list") },
		"list is throttled":        func(context.Context) error { return provider.Errorf(provider.Throttled, "RequestLimitExceeded") },
		"list does not come":       func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		for _, events := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, events %v", name, events), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					w := newSlowWorld(t, nil)
					w.cloud.Window = 10 * time.Minute
					began := time.Now()
					w.cloud.Fault = func(ctx context.Context, c memory.Call) error {
						if c.Op == memory.OpList && !c.After {
							return fault(ctx)
						}
						return nil
					}
					m := deletedMachine("lost")
					m.Spec.ProviderID = nil
					i := machine.NewIntent(m, 1, slowAccount, []byte(`{}`))
					i.StartedAt = metav1.NewTime(began)
					m.Annotations[machine.AnnotationIntent] = i.String()
					w.put(t, m)
					process := w.process(w.api.As("provision-machine"))
					writes := 0
					handle := func(r snapshot.Request) bool {
						before := w.machine("lost").ResourceVersion
						p, err := process.Handle(t.Context(), r)
						if err != nil {
							t.Error(err)
						}
						writes += len(p.Actions())
						return w.machine("lost").ResourceVersion != before
					}
					for time.Since(began) < 9*time.Minute {
						changed := handle(snapshot.Request{})
						for n := 0; events && changed && n < 5; n++ {
							changed = handle(snapshot.Request{Kind: "Machine", Namespace: machine.Namespace, Name: "lost"})
						}
						time.Sleep(10 * time.Second)
					}
					if most := 30; writes > most {
						t.Errorf("%d writes in nine minutes, want at most %d", writes, most)
					}
				})
			})
		}
	}
}

// webhooked is an API server beside which a webhook for one Machine does not answer: 500.
type webhooked struct {
	cluster.Cluster
	of string
}

func (w webhooked) Apply(ctx context.Context, a plan.Action) error {
	if u, is := a.(plan.Update); is && u.Old.GetName() == w.of {
		return errors.New(`Internal error occurred: failed calling webhook "a.b": timed out`)
	}
	return w.Cluster.Apply(ctx, a)
}

// A Machine that cannot be written does not make scans ask the cloud more often for what it refuses to remove (R-L4).
func TestScansThatEndInErrorsKeepTheirTurns(t *testing.T) {
	t.Parallel()
	for _, of := range []string{"", "new"} {
		synctest.Test(t, func(t *testing.T) {
			w := newSlowWorld(t, nil)
			var deletes atomic.Int32
			w.cloud.Fault = func(_ context.Context, c memory.Call) error {
				if c.Op == memory.OpDelete && !c.After {
					deletes.Add(1)
					return provider.Errorf(provider.Exhausted, "the host is in maintenance")
				}
				return nil
			}
			w.putGoing(t, 20)
			m := slowMachine("new", "", "")
			m.Finalizers, m.Spec.ProviderID, m.Annotations, m.Status.Phase = nil, nil, nil, nil
			process := w.process(webhooked{w.api.As("provision-machine"), of})
			for n := range 720 {
				if n == 6 {
					w.put(t, m)
				}
				if n == 360 {
					deletes.Store(0)
				}
				if _, err := process.Handle(t.Context(), snapshot.Request{}); (err != nil) != (of != "" && n >= 6) {
					t.Fatalf("scan %d: %v", n, err)
				}
				time.Sleep(10 * time.Second)
			}
			if got := deletes.Load() / 20; got < 12 || got > 30 {
				t.Errorf("webhook of %q: each is asked for %d times in the second hour, want some 24", of, got)
			}
		})
	}
}
