// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	cloud "github.com/machine-functions/machine-functions/shared/provider/memory"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var errLost = errors.New("answer lost")

// Three copies of every function work at the same time while people scale and delete and the cloud loses answers:
// no Machine ever has two instances, and in the end everything is as wanted (R-S1, R-S2, R-S4, R-L1).
func TestConcurrentDuplicates(t *testing.T) {
	t.Parallel()
	for _, untokened := range []bool{false, true} {
		for seed := range uint64(15) {
			t.Run(fmt.Sprintf("untokened=%v/seed=%d", untokened, seed), func(t *testing.T) {
				t.Parallel()
				compete(t, untokened, seed)
			})
		}
	}
}

func compete(t *testing.T, untokened bool, seed uint64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	w := machineLayer()
	var mu sync.Mutex
	faults := rand.New(rand.NewPCG(seed, 2))
	w.Cloud.Untokened, w.Cloud.Window = untokened, 50*time.Second
	w.Cloud.Lag, w.Cloud.Ports = time.Duration(rng.IntN(30))*time.Second, rng.IntN(2)
	w.Cloud.Fault = func(_ context.Context, c cloud.Call) error {
		mu.Lock()
		defer mu.Unlock()
		if faults.IntN(20) == 0 || c.Op == cloud.OpCreate && c.After && faults.IntN(3) == 0 {
			return errLost
		}
		if c.Op == cloud.OpCreate && !c.After && len(c.Ref.Progress) > 0 && faults.IntN(2) == 0 {
			if faults.IntN(2) == 0 {
				return provider.Errorf(provider.Exhausted, "no host has room") // tried again with what was made so far
			}
			return provider.Errorf(provider.NotFound, "no such port") // what was made so far has to go first (R-B12)
		}
		return nil
	}
	if err := w.API.Put(Set("worker", 2)); err != nil {
		t.Fatal(err)
	}
	for range 12 {
		meddle(t, w, rng)
		storm(t.Context(), w)
	}
	w.Cloud.Fault = nil
	if err := w.API.Scale(machine.Namespace, "worker", 2); err != nil {
		t.Fatal(err)
	}
	run(t, w, 40)
	for _, e := range w.Cloud.History() {
		if n := w.Cloud.Most(e.UID); n > 1 {
			t.Fatalf("Machine %s had %d instances at a time", e.Name, n)
		}
	}
	if got, want := len(memory.List[*machine.Machine](w.API)), 2; got != want {
		t.Fatalf("%d Machines, want %d", got, want)
	}
	instances := 0
	for _, i := range w.Cloud.Instances() {
		if !i.Child {
			instances++
		}
	}
	if instances != 2 {
		t.Fatalf("%d instances, want 2: %s", instances, state(w))
	}
}

// meddle does what people do.
func meddle(t *testing.T, w *World, rng *rand.Rand) {
	t.Helper()
	machines := memory.List[*machine.Machine](w.API)
	switch n := rng.IntN(4); {
	case n == 0:
		if err := w.API.Scale(machine.Namespace, "worker", int32(rng.IntN(5))); err != nil {
			t.Fatal(err)
		}
	case n == 1 && len(machines) > 0:
		m := machines[rng.IntN(len(machines))]
		if err := w.API.Remove("Machine", m.Namespace, m.Name, memory.Background); err != nil {
			t.Fatal(err)
		}
	}
}

// storm runs three copies of every function at once. What fails is repeated by the next storm.
func storm(ctx context.Context, w *World) {
	w.Pass(10 * time.Second)
	_ = w.Kubelets()
	var all sync.WaitGroup
	for range 3 {
		for _, f := range w.Functions {
			all.Go(func() { _, _ = w.Runner(f).Handle(ctx, snapshot.Request{}) })
		}
	}
	all.Wait()
}
