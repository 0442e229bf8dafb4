// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
)

// The answer to the first call is lost and its instance is not listed yet; the second call is refused. No other token makes
// a second instance, and a Machine that is deleted meanwhile leaves none behind (RELIABILITY 2b.4, 2b.9; R-B10).
func TestRefusalAfterALostAnswer(t *testing.T) {
	t.Parallel()
	for _, code := range []provider.Code{provider.Throttled, provider.Exhausted, provider.Denied, provider.NotFound} {
		for _, deleted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v/deleted=%v", code, deleted), func(t *testing.T) {
				t.Parallel()
				w := machineLayer()
				w.Cloud.Lag = time.Minute
				var calls atomic.Int32
				w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
					switch {
					case c.Op != cloud.OpCreate:
					case c.After && calls.Load() == 1:
						return errLost
					case !c.After && calls.Add(1) == 2:
						return provider.Errorf(code, "not now")
					}
					return nil
				}
				if err := w.API.Put(Set("worker", 1)); err != nil {
					t.Fatal(err)
				}
				for calls.Load() < 2 {
					if err := w.Tick(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				want := "machines map[Running:1] nodes 1 instances 1"
				if deleted {
					want = "machines map[] nodes 0 instances 0"
					if err := w.API.Scale(machine.Namespace, "worker", 0); err != nil {
						t.Fatal(err)
					}
				}
				for range 30 {
					if err := w.Tick(t.Context()); err != nil {
						t.Fatal(err)
					}
					if len(memory.List[*machine.Machine](w.API)) == 0 && len(w.Cloud.Instances()) > 0 {
						t.Fatalf("%s: the Machine is gone, its instance is not", state(w))
					}
				}
				for _, e := range w.Cloud.History() {
					if n := w.Cloud.Most(e.UID); n > 1 {
						t.Fatalf("Machine %s had %d instances at a time", e.Name, n)
					}
				}
				if got := state(w); got != want {
					t.Errorf("%s, want %s", got, want)
				}
			})
		}
	}
}

// A cloud denies one Machine's call: those of others, which are not sent for a minute, are not refused by it, and keep what
// they made (RELIABILITY 2b.4, 2b.8).
func TestDenialOfOneIsNotTheOthers(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	w.Cloud.Ports = 1
	var denied atomic.Bool
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		if c.Op == cloud.OpCreate && !c.After && len(c.Ref.Progress) > 0 && !denied.Swap(true) {
			return provider.Errorf(provider.Denied, "not allowed")
		}
		return nil
	}
	if err := w.API.Put(Set("worker", 3)); err != nil {
		t.Fatal(err)
	}
	run(t, w, 30)
	if got, want := state(w), "machines map[Running:3] nodes 3 instances 6"; got != want || !denied.Load() {
		t.Errorf("%s, want %s", got, want)
	}
	for _, e := range w.Cloud.History() {
		if e.What == cloud.Deleted {
			t.Errorf("%s was removed", e.ID)
		}
	}
}

// Tags that the cloud refuses are asked for less and less often, whoever asks: each scan here is a process that remembers
// nothing (RELIABILITY G10, 2c).
func TestRefusedTagsAreAskedForSeldom(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	var updates atomic.Int32
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		if c.Op == cloud.OpUpdate && !c.After {
			updates.Add(1)
			return provider.Errorf(provider.Exhausted, "50 tags are the most")
		}
		return nil
	}
	if err := w.API.Put(Set("worker", 1)); err != nil {
		t.Fatal(err)
	}
	settle(t, w, 12)
	retag(t, w)
	for range 60 { // ten minutes
		if err := w.Tick(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := updates.Load(); n < 5 || n > 8 {
		t.Errorf("%d calls in ten minutes", n)
	}
}
