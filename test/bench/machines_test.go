// SPDX-License-Identifier: Apache-2.0

// Package bench measures the functions at the sizes that clusters reach.
package bench

import (
	"fmt"
	"testing"

	linknode "github.com/machine-functions/machine-functions/functions/link-node"
	provisionmachine "github.com/machine-functions/machine-functions/functions/provision-machine"
	scalemachineset "github.com/machine-functions/machine-functions/functions/scale-machineset"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

// settled returns a world in which so many sets have all their Machines running.
func settled(b *testing.B, sets, machines int) *sim.World {
	b.Helper()
	w := sim.NewWorld(scalemachineset.Function, provisionmachine.Function, linknode.Function)
	for i := range sets {
		if err := w.API.Put(sim.Set(fmt.Sprintf("set-%03d", i), int32(machines/sets))); err != nil {
			b.Fatal(err)
		}
	}
	for range 1000 {
		before := len(w.API.Writes())
		if err := w.Tick(b.Context()); err != nil {
			b.Fatal(err)
		}
		if len(w.API.Writes()) == before {
			return w
		}
	}
	b.Fatal("does not settle")
	return nil
}

// BenchmarkScan is one scan of a converged cluster, from the API server's objects to the decision that nothing is to be
// done: reading, indexing, deciding. It must write nothing (R-S14).
func BenchmarkScan(b *testing.B) {
	for _, size := range []struct{ sets, machines int }{{50, 500}, {500, 5000}} {
		w := settled(b, size.sets, size.machines)
		for _, f := range []function.Function{scalemachineset.Function, provisionmachine.Function, linknode.Function} {
			b.Run(fmt.Sprintf("function=%s/sets=%d/machines=%d", f.Name, size.sets, size.machines), func(b *testing.B) {
				b.ReportAllocs()
				before := len(w.API.Writes())
				r := w.Runner(f)
				for b.Loop() {
					if p, err := r.Handle(b.Context(), snapshot.Request{}); err != nil || !p.Quiet() {
						b.Fatalf("%v: %v", err, p)
					}
				}
				if wrote := len(w.API.Writes()) - before; wrote != 0 {
					b.Fatalf("%d writes", wrote)
				}
			})
		}
	}
}
