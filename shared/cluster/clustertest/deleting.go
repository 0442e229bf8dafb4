// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"errors"
	"testing"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

var deleting = []test{
	{"without finalizers a delete removes", deleteAtOnce},
	{"a delete of what is gone is ErrGone", deleteGone},
	{"a delete of another object of that name is ErrGone and removes nothing", deleteReplaced},
	{"a delete if unchanged of what changed is ErrConflict and removes nothing", deleteIfUnchanged},
	{"a delete if unchanged of another object of that name is ErrGone", deleteReplacedIfUnchanged},
	{"a finalizer holds an object until it is taken off", finalizers},
	{"an object being deleted takes no new finalizer, but other changes", finalizersOnceDeleting},
	{"a deletion cannot be taken back", deletionStays},
	{"what a removed set owned is deleted in the background", collectOwned},
	{"what a removed set owned waits for its finalizers", collectWithFinalizers},
	{"what is created for an owner that is gone is deleted", collectLateborn},
	{"an object outlives one of two owners", collectHalfOwned},
	{"a set with a finalizer keeps what it owns", keepOwned},
}

func deleteAtOnce(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	h.apply(t, plan.Delete{Object: m})
	if exists(t, h, m) {
		t.Error("it is still there")
	}
}

func deleteGone(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	h.apply(t, plan.Delete{Object: m})
	for _, unchanged := range []bool{false, true} {
		if err := h.Cluster.Apply(t.Context(), plan.Delete{Object: m, IfUnchanged: unchanged}); !errors.Is(err, cluster.ErrGone) {
			t.Errorf("if unchanged %v: %v", unchanged, err)
		}
	}
}

func deleteReplaced(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	h.apply(t, plan.Delete{Object: m})
	n := create(t, h, h.machine("a"))
	if err := h.Cluster.Apply(t.Context(), plan.Delete{Object: m}); !errors.Is(err, cluster.ErrGone) {
		t.Errorf("error %v", err)
	}
	if now := find(t, h, n); now == nil || now.UID != n.UID || now.DeletionTimestamp != nil {
		t.Errorf("became %+v", now)
	}
}

func deleteIfUnchanged(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	n := update(t, h, m, func(m *machine.Machine) { m.Labels = map[string]string{app: "x"} })
	if err := h.Cluster.Apply(t.Context(), plan.Delete{Object: m, IfUnchanged: true}); !errors.Is(err, cluster.ErrConflict) {
		t.Errorf("error %v", err)
	}
	if now := find(t, h, n); now == nil || now.DeletionTimestamp != nil {
		t.Errorf("became %+v", now)
	}
	h.apply(t, plan.Delete{Object: n, IfUnchanged: true})
	if exists(t, h, n) {
		t.Error("it is still there")
	}
	m = create(t, h, h.machine("b"))
	update(t, h, m, func(m *machine.Machine) { m.Labels = map[string]string{app: "x"} })
	h.apply(t, plan.Delete{Object: m}) // a change does not matter to who does not ask
}

func deleteReplacedIfUnchanged(t *testing.T, h Harness) {
	m := create(t, h, h.machine("a"))
	h.apply(t, plan.Delete{Object: m})
	n := create(t, h, h.machine("a"))
	if err := h.Cluster.Apply(t.Context(), plan.Delete{Object: m, IfUnchanged: true}); !errors.Is(err, cluster.ErrGone) {
		t.Errorf("error %v", err)
	}
	if !exists(t, h, n) {
		t.Error("the other one is gone")
	}
}

func finalizers(t *testing.T, h Harness) {
	m := h.machine("a")
	m.Finalizers = []string{finalizer, "example.com/mine"}
	m = create(t, h, m)
	h.apply(t, plan.Delete{Object: m})
	n := find(t, h, m)
	if n == nil || n.DeletionTimestamp == nil || n.DeletionGracePeriodSeconds == nil || *n.DeletionGracePeriodSeconds != 0 {
		t.Fatalf("being deleted: %+v", n)
	}
	if n.Generation != m.Generation+1 || n.ResourceVersion == m.ResourceVersion {
		t.Errorf("generation %d became %d", m.Generation, n.Generation)
	}
	h.apply(t, plan.Delete{Object: n})
	if again := find(t, h, m); again.ResourceVersion != n.ResourceVersion {
		t.Error("a second delete wrote something")
	}
	n = update(t, h, n, func(m *machine.Machine) { m.Finalizers = m.Finalizers[:1] })
	h.apply(t, edit(n, func(m *machine.Machine) { m.Finalizers = nil }))
	if exists(t, h, n) {
		t.Error("it is still there")
	}
	if err := h.Cluster.Apply(t.Context(), edit(n, func(m *machine.Machine) { m.Finalizers = nil })); !errors.Is(err, cluster.ErrGone) {
		t.Errorf("once more: %v", err)
	}
}

func finalizersOnceDeleting(t *testing.T, h Harness) {
	m := h.machine("a")
	m.Finalizers = []string{finalizer}
	m = create(t, h, m)
	h.apply(t, plan.Delete{Object: m})
	m = find(t, h, m)
	err := h.Cluster.Apply(t.Context(), edit(m, func(m *machine.Machine) { m.Finalizers = append(m.Finalizers, "example.com/late") }))
	if _, ok := errors.AsType[*cluster.RefusedError](err); !ok {
		t.Errorf("error %v", err)
	}
	m = update(t, h, m, func(m *machine.Machine) { m.Labels = map[string]string{app: "x"} })
	m = updateStatus(t, h, m, setPhase(machine.PhaseDeleting))
	if m.Labels[app] != "x" || *m.Status.Phase != machine.PhaseDeleting {
		t.Errorf("became %+v", m)
	}
}

func deletionStays(t *testing.T, h Harness) {
	m := h.machine("a")
	m.Finalizers = []string{finalizer}
	m = create(t, h, m)
	h.apply(t, plan.Delete{Object: m})
	m = find(t, h, m)
	n := update(t, h, m, func(m *machine.Machine) { m.DeletionTimestamp = nil })
	if n.DeletionTimestamp == nil || !n.DeletionTimestamp.Equal(m.DeletionTimestamp) {
		t.Errorf("deletion timestamp %v became %v", m.DeletionTimestamp, n.DeletionTimestamp)
	}
}

func collectOwned(t *testing.T, h Harness) {
	set := create(t, h, h.machineSet("set"))
	a, b := create(t, h, owned(h.machine("a"), set)), create(t, h, h.machine("b"))
	h.apply(t, plan.Delete{Object: set})
	if exists(t, h, set) {
		t.Error("the set waits for what it owns")
	}
	eventually(t, "a collected", func() bool { return !exists(t, h, a) })
	if !exists(t, h, b) {
		t.Error("b is gone, which has no owner")
	}
}

func collectWithFinalizers(t *testing.T, h Harness) {
	set := create(t, h, h.machineSet("set"))
	m := owned(h.machine("a"), set)
	m.Finalizers = []string{finalizer}
	m = create(t, h, m)
	h.apply(t, plan.Delete{Object: set})
	eventually(t, "a being deleted", func() bool { return find(t, h, m).DeletionTimestamp != nil })
}

func collectLateborn(t *testing.T, h Harness) {
	set := create(t, h, h.machineSet("set"))
	h.apply(t, plan.Delete{Object: set})
	m := owned(h.machine("a"), set)
	h.apply(t, plan.Create{Object: m})
	eventually(t, "a collected", func() bool { return !exists(t, h, m) })
}

func collectHalfOwned(t *testing.T, h Harness) {
	set, other := create(t, h, h.machineSet("set")), create(t, h, h.machineSet("other"))
	m := create(t, h, owned(h.machine("a"), set, other))
	h.apply(t, plan.Delete{Object: set})
	eventually(t, "the reference dropped", func() bool { return len(find(t, h, m).OwnerReferences) == 1 })
	if m = find(t, h, m); m.DeletionTimestamp != nil || m.OwnerReferences[0].UID != other.UID {
		t.Errorf("became %+v", m.ObjectMeta)
	}
}

func keepOwned(t *testing.T, h Harness) {
	set := h.machineSet("set")
	set.Finalizers = []string{finalizer}
	set = create(t, h, set)
	m := create(t, h, owned(h.machine("a"), set))
	h.apply(t, plan.Delete{Object: set})
	h.apply(t, edit(find(t, h, m), func(m *machine.Machine) { m.Labels = map[string]string{app: "x"} }))
	h.apply(t, edit(find(t, h, set), func(s *machine.MachineSet) { s.Finalizers = nil }))
	eventually(t, "a collected", func() bool { return !exists(t, h, m) })
}
