// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

// However processes take turns, begin anew, forget what was made, ask twice at the same moment and lose answers: a Machine has one
// instance at most, of which all that its removal leaves is nothing, and nobody else's is touched (R-S1, R-S2, R-S3).
func TestSchedules(t *testing.T) {
	t.Parallel()
	seeds := 200
	if testing.Short() {
		seeds = 12
	}
	for seed := range seeds {
		schedule(t, uint64(seed)) //nolint:gosec // small
	}
}

func schedule(t *testing.T, seed uint64) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a schedule
	cloud := &arm.Cloud{Lag: time.Duration(rnd.IntN(3)) * time.Millisecond, Boot: time.Millisecond, Shutdown: time.Millisecond, Page: 1 + rnd.IntN(3), Bare: rnd.IntN(4) == 0}
	theirs := account()
	theirs.ClusterID = "theirs"
	other, _ := wired(t, cloud, theirs)
	_, _, err := create(t, other, "worker-theirs", spec(map[string]any{"publicIP": true}))
	must(t, err)
	cloud.Add("worker-nobodys", nil)
	before := cloud.Names(arm.Instances, arm.Cards, arm.Addresses, arm.Disks)

	var mu sync.Mutex
	a, chance := account(), 0
	anew := func() *driver {
		d, w := wired(t, cloud, a)
		w.set(func(op string, next func() (*http.Response, error)) (*http.Response, error) {
			mu.Lock()
			fault := rnd.IntN(100)
			lost := fault < chance && op != "login"
			mu.Unlock()
			switch {
			case lost && fault%2 == 0:
				return nil, errors.New("i/o timeout")
			case lost:
				if _, err := next(); err != nil {
					return nil, err
				}
				return nil, errors.New("connection reset by peer")
			}
			return next()
		})
		return d
	}
	d := anew()
	resolved, err := d.Resolve(t.Context(), spec(map[string]any{"publicIP": seed%2 == 0}))
	must(t, err)
	r := provider.Ref{UID: "uid-1", Name: "worker-a", Token: "t1"}
	chance = 10
	for attempt := 1; attempt <= 3; attempt++ {
		r.Token = fmt.Sprint("t", attempt)
		for range 12 + rnd.IntN(12) {
			switch rnd.IntN(10) {
			case 0:
				d = anew()
			case 1:
				r.Progress = nil
			case 2:
				_, _ = d.List(t.Context())
			case 3:
				cloud.Exhaust(rnd.IntN(2) == 0)
			case 4:
				var twice sync.WaitGroup
				for range 2 {
					twice.Go(func() { _, _ = anew().Create(t.Context(), r, resolved) })
				}
				twice.Wait()
			default:
				if in, err := d.Create(t.Context(), r, resolved); err == nil {
					r.Progress = in.Progress
				}
			}
			time.Sleep(time.Duration(rnd.IntN(500)) * time.Microsecond)
			if all := slices.DeleteFunc(cloud.Names(arm.Instances), func(n string) bool { return n != "worker-a" }); len(all) > 1 {
				t.Fatalf("seed %d: %d instances", seed, len(all))
			}
		}
		if rnd.IntN(2) == 0 { // what the attempt left is removed by its token
			removed(t, seed, d, provider.Ref{UID: r.UID, Name: r.Name, Token: r.Token, Attempt: true, Progress: r.Progress})
			r.Progress = nil
		}
	}
	removed(t, seed, d, provider.Ref{UID: r.UID, Name: r.Name})
	if diff := cmp.Diff(before, cloud.Names(arm.Instances, arm.Cards, arm.Addresses, arm.Disks)); diff != "" {
		t.Fatalf("seed %d: what is there beside what was (-want +got):\n%s", seed, diff)
	}
	if unknown := cloud.Unknown(); len(unknown) > 0 {
		t.Fatalf("seed %d: the API does not know %v", seed, unknown)
	}
}

// removed calls Delete until nothing is there.
func removed(t *testing.T, seed uint64, d *driver, r provider.Ref) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(200 * time.Microsecond) {
		err := d.Delete(t.Context(), r)
		if provider.CodeOf(err) == provider.NotFound {
			return
		}
		if time.Since(begin) > 20*time.Second {
			t.Fatalf("seed %d: Delete = %v", seed, err)
		}
	}
}
