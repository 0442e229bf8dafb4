// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"testing"

	scalemachineset "github.com/machine-functions/machine-functions/functions/scale-machineset"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Whoever deletes a set and keeps its Machines keeps them, also while an invocation has read the set and not yet its Machines: with
// that set for an owner they would be garbage (2a.6).
func TestMachinesOfASetThatIsGoneStayFree(t *testing.T) {
	t.Parallel()
	w := NewWorld(scalemachineset.Function)
	if err := w.API.Put(Set("worker", 2)); err != nil {
		t.Fatal(err)
	}
	if err := w.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := w.Runner(scalemachineset.Function)
	r.Cluster = &between{Cluster: r.Cluster, of: "MachineSet", and: "Machine", happens: func() error {
		return w.API.Remove("MachineSet", machine.Namespace, "worker", memory.Orphan)
	}}
	if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
	machines := memory.List[*machine.Machine](w.API)
	for _, m := range machines {
		if len(m.OwnerReferences) > 0 {
			t.Errorf("%s belongs to a set that is gone", m.Name)
		}
	}
	if len(machines) != 2 {
		t.Errorf("%d Machines, want the 2 that there were", len(machines))
	}
}

// between lets something happen once, after one kind was read and before the other is.
type between struct {
	cluster.Cluster
	of, and string
	happens func() error
	read    bool
}

// Observe implements [cluster.Cluster].
func (b *between) Observe(ctx context.Context, s snapshot.Snapshot, queries []snapshot.Query) (snapshot.Snapshot, error) {
	for _, q := range queries {
		if b.read && string(q.Kind) == b.and && b.happens != nil {
			if err := b.happens(); err != nil {
				return s, err
			}
			b.happens = nil
		}
		var err error
		if s, err = b.Cluster.Observe(ctx, s, []snapshot.Query{q}); err != nil {
			return s, err
		}
		b.read = b.read || string(q.Kind) == b.of
	}
	return s, nil
}
