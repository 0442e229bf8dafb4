// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	evaluateautoscale "github.com/machine-functions/machine-functions/functions/evaluate-autoscale"
	scalemachineset "github.com/machine-functions/machine-functions/functions/scale-machineset"
	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/runner"
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
	for _, m := range memory.List[*machine.Machine](w.API) { // who was adopted once is on record: no write of the set comes before the owner's
		if err := memory.Patch(w.API, m.Namespace, m.Name, func(m *machine.Machine) { m.OwnerReferences = nil }); err != nil {
			t.Fatal(err)
		}
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

// A Machine that was retired, and that people took out of the set before it was deleted, is the set's again at another ordinal: who read
// the ledger before that, and the Machines after it, deletes nobody by it (2a.1, R-S6).
func TestMachineThatWasAdoptedAnewStays(t *testing.T) {
	t.Parallel()
	w := NewWorld(scalemachineset.Function)
	set := Set("worker", 2)
	byHand := &machine.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace: machine.Namespace, Name: "by-hand", Labels: set.Labels, Annotations: map[string]string{machine.AnnotationDelete: "yes"},
	}}
	now := func(r *runner.Runner) {
		t.Helper()
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.API.Put(set, byHand); err != nil {
		t.Fatal(err)
	}
	now(w.Runner(scalemachineset.Function)) // makes one, adopts the other
	if err := w.API.Scale(machine.Namespace, "worker", 1); err != nil {
		t.Fatal(err)
	}
	retires := w.Runner(scalemachineset.Function)
	retires.Cluster = deletesNobody{retires.Cluster}
	if _, err := retires.Handle(t.Context(), snapshot.Request{}); !errors.Is(err, errFault) {
		t.Fatalf("the Machine that is marked was not to be deleted: %v", err)
	}
	late := w.Runner(scalemachineset.Function)
	late.Cluster = &between{Cluster: late.Cluster, of: "MachineSet", and: "Machine", happens: func() error {
		err := memory.Patch(w.API, machine.Namespace, byHand.Name, func(m *machine.Machine) { m.OwnerReferences = nil })
		err = errors.Join(err, w.API.Scale(machine.Namespace, "worker", 2))
		now(w.Runner(scalemachineset.Function))
		return err
	}}
	now(late)
	switch m := memory.Get[*machine.Machine](w.API, machine.Namespace, byHand.Name); {
	case m == nil || m.DeletionTimestamp != nil:
		t.Error("it was deleted for the ordinal that it had before")
	case ownerOf(m) == "" || m.Labels[machine.LabelOrdinal] != "2":
		t.Errorf("it is not the set's anew: %v %v", m.OwnerReferences, m.Labels)
	}
}

// A Machine that was adopted while an invocation had read the Machines, and not yet the set for the second time, is not gone (2a.6).
func TestMachineThatWasAdoptedMeanwhileIsNotGone(t *testing.T) {
	t.Parallel()
	w := NewWorld(scalemachineset.Function)
	set := Set("worker", 1)
	if err := w.API.Put(set); err != nil {
		t.Fatal(err)
	}
	if err := w.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, m := range memory.List[*machine.Machine](w.API) { // one that may be adopted has the set read again
		if err := memory.Patch(w.API, m.Namespace, m.Name, func(m *machine.Machine) { m.OwnerReferences = nil }); err != nil {
			t.Fatal(err)
		}
	}
	r := w.Runner(scalemachineset.Function)
	r.Cluster = &between{Cluster: r.Cluster, of: "Machine", and: "MachineSet", happens: func() error {
		byHand := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "by-hand", Labels: set.Labels}}
		return errors.Join(w.API.Put(byHand), w.API.Scale(machine.Namespace, "worker", 2), w.Tick(t.Context()))
	}}
	if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
	l, err := ledgerOf(memory.Get[*machine.MachineSet](w.API, machine.Namespace, "worker"))
	if err != nil || l.Next != 2 || len(l.Active) != 2 || l.Adopted[1].Name != "by-hand" {
		t.Errorf("%v, the ledger is %+v: want by-hand at ordinal 1, and nobody in its place", err, l)
	}
}

// A Machine that was released, adopted at its ordinal, and retired from it while an invocation had read it, and not yet the set for the
// second time, is not adopted anew: who retired it deletes it, and would for the new ordinal (2a.6, R-S6). If people take it out and the
// set adopts it at another ordinal before it is read again, it stays.
func TestMachineThatWasRetiredMeanwhileIsNotAdoptedAnew(t *testing.T) {
	t.Parallel()
	for _, rescued := range []bool{false, true} {
		w := NewWorld(scalemachineset.Function)
		set := Set("worker", 1)
		byHand := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "by-hand", Labels: set.Labels}}
		release := func() error {
			return memory.Patch(w.API, machine.Namespace, byHand.Name, func(m *machine.Machine) { m.OwnerReferences = nil })
		}
		if err := errors.Join(w.API.Put(set, byHand), w.Tick(t.Context()), release()); err != nil {
			t.Fatal(err)
		}
		late := w.Runner(scalemachineset.Function)
		last := &between{of: "MachineSet", and: "Machine"}
		last.Cluster = &between{Cluster: late.Cluster, of: "Machine", and: "MachineSet", happens: func() error {
			if err := errors.Join(w.Tick(t.Context()), w.API.Scale(machine.Namespace, "worker", 0)); err != nil {
				return err
			}
			retires := w.Runner(scalemachineset.Function)
			retires.Cluster = deletesNobody{retires.Cluster}
			if _, err := retires.Handle(t.Context(), snapshot.Request{}); !errors.Is(err, errFault) {
				t.Errorf("the Machine that is one too many was not to be deleted: %v", err)
			}
			if rescued {
				last.happens = func() error {
					return errors.Join(release(), w.API.Scale(machine.Namespace, "worker", 1), w.Tick(t.Context()))
				}
			}
			return nil
		}}
		late.Cluster = last
		if _, err := late.Handle(t.Context(), snapshot.Request{}); err != nil {
			t.Errorf("who read it before it was retired: %v", err)
		}
		rescue := last.happens // who read it decided nothing with the set that is newer: the next look does
		if rescue == nil {
			rescue = func() error { return w.Tick(t.Context()) }
		}
		if err := rescue(); err != nil {
			t.Fatal(err)
		}
		l, err := ledgerOf(memory.Get[*machine.MachineSet](w.API, machine.Namespace, "worker"))
		m := memory.Get[*machine.Machine](w.API, machine.Namespace, byHand.Name)
		if stays := m != nil && m.DeletionTimestamp == nil; err != nil || stays != rescued || l.Active.Has(1) != rescued || l.Next > 1 && !rescued {
			t.Errorf("%v, the ledger is %+v, it stays: %v, want %v", err, l, stays, rescued)
		}
	}
}

// A Machine of the set that people labelled with another ordinal, and deleted while an invocation had read it, and not yet the set for the
// second time, is not adopted at that ordinal: the one that came in its place would go for it (2a.6).
func TestMachineThatWasDeletedMeanwhileIsNotAdoptedAnew(t *testing.T) {
	t.Parallel()
	w := NewWorld(scalemachineset.Function)
	if err := errors.Join(w.API.Put(Set("worker", 2)), w.Tick(t.Context())); err != nil {
		t.Fatal(err)
	}
	machines := memory.List[*machine.Machine](w.API)
	labelled, released := machines[0], machines[1] // one that may be adopted has the set read again
	if err := errors.Join(
		memory.Patch(w.API, machine.Namespace, labelled.Name, func(m *machine.Machine) { m.Labels[machine.LabelOrdinal] = "4" }),
		memory.Patch(w.API, machine.Namespace, released.Name, func(m *machine.Machine) { m.OwnerReferences = nil }),
	); err != nil {
		t.Fatal(err)
	}
	late := w.Runner(scalemachineset.Function)
	late.Cluster = &between{Cluster: late.Cluster, of: "Machine", and: "MachineSet", happens: func() error {
		return errors.Join(w.API.Remove("Machine", machine.Namespace, labelled.Name, memory.Background), w.Tick(t.Context()))
	}}
	if _, err := late.Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
	l, err := ledgerOf(memory.Get[*machine.MachineSet](w.API, machine.Namespace, "worker"))
	stay := slices.DeleteFunc(memory.List[*machine.Machine](w.API), func(m *machine.Machine) bool { return m.DeletionTimestamp != nil })
	if err != nil || l.Next != 3 || !l.Active.Has(2) || len(stay) != 2 {
		t.Errorf("%v, the ledger is %+v with %d Machines that stay: want the one at ordinal 2 to stay, and no other", err, l, len(stay))
	}
}

// deletesNobody is a cluster to which no deletion gets through.
type deletesNobody struct{ cluster.Cluster }

// Apply implements [cluster.Cluster].
func (d deletesNobody) Apply(ctx context.Context, a plan.Action) error {
	if _, is := a.(plan.Delete); is {
		return errFault
	}
	return d.Cluster.Apply(ctx, a)
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

// An orphan that may not be adopted holds no scale-down up: idle Nodes go, to the minimum, also after people wanted more of them.
func TestOrphanThatMayNotBeAdoptedHoldsNoScaleDownUp(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	w.Functions = append(w.Functions, evaluateautoscale.Function)
	set := Set(setName, 3)
	orphan := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "by-hand", Labels: set.Labels}}
	orphan.Spec.ProviderSpec.Value = set.Spec.Template.Spec.ProviderSpec.Value
	if err := w.API.Put(append((&Play{}).autoscaling(), set, orphan)...); err != nil {
		t.Fatal(err)
	}
	for k := range 2 * 60 * 6 {
		if k == 60*6 {
			if err := w.API.Scale(machine.Namespace, setName, 3); err != nil {
				t.Fatal(err)
			}
		}
		scanThrough(t, w, func(c cluster.Cluster) cluster.Cluster { return deniesChanges{c, orphan.Name} })
	}
	if n := *memory.Get[*machine.MachineSet](w.API, machine.Namespace, setName).Spec.Replicas; n != 1 {
		t.Errorf("%d replicas: %s", n, state(w))
	}
	for _, n := range memory.List[*corev1.Node](w.API) {
		if len(n.Spec.Taints) > 0 {
			t.Errorf("node %s is tainted: %v", n.Name, n.Spec.Taints)
		}
	}
}

// Machines that run and that their set may not adopt were made: nobody gives them up, nor lets others go for them later (SPEC C50).
func TestOrphansThatRunAreNotGivenUp(t *testing.T) {
	t.Parallel()
	w := machineLayer()
	w.Functions = append(w.Functions, evaluateautoscale.Function)
	objects := (&Play{}).autoscaling()
	for _, o := range objects {
		if ca, ok := o.(*autoscaling.ClusterAutoscaler); ok {
			ca.Spec.ScaleDown.Enabled = false
		}
	}
	if err := w.API.Put(append(objects, Set(setName, 3))...); err != nil {
		t.Fatal(err)
	}
	for k := range 40 * 6 {
		if k == 10*6 {
			for _, m := range memory.List[*machine.Machine](w.API) {
				if err := memory.Patch(w.API, machine.Namespace, m.Name, func(m *machine.Machine) { m.OwnerReferences = nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
		scanThrough(t, w, func(c cluster.Cluster) cluster.Cluster {
			if k < 10*6 || k >= 30*6 {
				return c
			}
			return deniesAdoption{c}
		})
	}
	if n := len(memory.List[*machine.Machine](w.API)); n != 3 {
		t.Errorf("%d Machines are left of 3 that ran all the time: %s", n, state(w))
	}
}

// scanThrough lets ten seconds pass, then every function scan through what is made of its cluster.
func scanThrough(t *testing.T, w *World, of func(cluster.Cluster) cluster.Cluster) {
	t.Helper()
	w.Pass(10 * time.Second)
	if err := w.Kubelets(); err != nil {
		t.Fatal(err)
	}
	for _, f := range w.Functions {
		r := w.Runner(f)
		r.Cluster = of(r.Cluster)
		if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
			t.Fatal(f.Name, err)
		}
	}
}

// deniesAdoption is a cluster whose policy lets no set have another Machine.
type deniesAdoption struct{ cluster.Cluster }

func (d deniesAdoption) Apply(ctx context.Context, a plan.Action) error {
	if u, ok := a.(plan.Update); ok {
		if m, ok := u.Old.(*machine.Machine); ok && len(m.OwnerReferences) == 0 && len(u.New.GetOwnerReferences()) > 0 {
			return &cluster.RefusedError{Err: errors.New("denied by policy")}
		}
	}
	return d.Cluster.Apply(ctx, a)
}

// deniesChanges is a cluster whose policy lets nobody change the Machine of a name.
type deniesChanges struct {
	cluster.Cluster
	of string
}

func (d deniesChanges) Apply(ctx context.Context, a plan.Action) error {
	if u, ok := a.(plan.Update); ok && u.Old.GetName() == d.of {
		return &cluster.RefusedError{Err: errors.New("denied by policy")}
	}
	return d.Cluster.Apply(ctx, a)
}

// Labels that come back once the ledger has let a Machine go, and before its owner is taken off, make it no Machine that was chosen to go: the one
// that was made for it goes, which has no Node (2a.6, R-S5).
func TestLabelsThatComeBackBeforeTheReleaseKeepTheMachine(t *testing.T) {
	t.Parallel()
	w := NewWorld(scalemachineset.Function)
	if err := errors.Join(w.API.Put(Set("worker", 2)), w.Tick(t.Context())); err != nil {
		t.Fatal(err)
	}
	all := memory.List[*machine.Machine](w.API)
	change := func(name string, f func(*machine.Machine)) {
		if err := memory.Patch(w.API, machine.Namespace, name, f); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range all {
		change(m.Name, func(x *machine.Machine) { x.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: m.Name} })
	}
	change(all[0].Name, func(m *machine.Machine) { m.Labels = nil })
	r := w.Runner(scalemachineset.Function)
	r.Cluster = deniesChanges{r.Cluster, all[0].Name}
	if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
		t.Fatal(err)
	}
	change(all[0].Name, func(m *machine.Machine) { m.Labels = all[0].Labels })
	if err := w.Tick(t.Context()); err != nil {
		t.Fatal(err)
	}
	stay := 0
	for _, m := range memory.List[*machine.Machine](w.API) {
		if m.DeletionTimestamp == nil {
			stay++
			continue
		}
		if m.UID == all[0].UID || m.UID == all[1].UID {
			t.Errorf("%s goes, which nobody chose", m.Name)
		}
	}
	if stay != 2 {
		t.Errorf("%d Machines stay of 2 that are wanted", stay)
	}
}

// A set and its Machines are restored one by one, with other UIDs, where nobody writes spec.providerID on Nodes, as on libvirt and oVirt: the Machines
// take their instances over, are linked, and no health check finds them without a Node (R-S3, B62).
func TestRestoredMachinesWhoseNodesNameNoInstance(t *testing.T) {
	t.Parallel()
	w := clinic(t, 2, check("100%", nil))
	machines, nodes, before := memory.List[*machine.Machine](w.API), memory.List[*corev1.Node](w.API), w.Cloud.Instances()
	for _, n := range nodes {
		if err := memory.Patch(w.API, "", n.Name, func(n *corev1.Node) { n.Spec.ProviderID = "" }); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.API.Remove("MachineSet", machine.Namespace, "worker", memory.Orphan); err != nil {
		t.Fatal(err)
	}
	for _, m := range machines {
		err := errors.Join(memory.Patch(w.API, m.Namespace, m.Name, func(m *machine.Machine) { m.Finalizers = nil }), w.API.Remove("Machine", m.Namespace, m.Name, memory.Background))
		anew := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, Labels: m.Labels}, Spec: m.Spec}
		if err = errors.Join(err, w.API.Put(anew)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.API.Put(Set("worker", 2)); err != nil {
		t.Fatal(err)
	}
	w.Pass(3 * time.Minute)
	for range 6 * 20 { // without the kubelets, which say whose instance they run on here
		w.Pass(10 * time.Second)
		for _, f := range w.Functions {
			if _, err := w.Runner(f).Handle(t.Context(), snapshot.Request{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if after := w.Cloud.Instances(); running(w) != 2 || len(after) != len(before) || after[0].ID != before[0].ID || after[1].ID != before[1].ID {
		t.Errorf("%s, instances %+v, were %+v", state(w), after, before)
	}
	if n := deletions(w); n != 0 {
		t.Errorf("%d Machines were deleted as sick", n)
	}
}
