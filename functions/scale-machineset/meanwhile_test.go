// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var errLost = errors.New("no answer")

// ranch is a cluster with the set worker, and people who change it.
type ranch struct {
	*testing.T
	api *memory.Server
}

func ranchOf(t *testing.T, n int32) ranch {
	t.Helper()
	return ranchBy(t, n, time.Now)
}

// ranchBy is a ranch by another clock.
func ranchBy(t *testing.T, n int32, now func() time.Time) ranch {
	t.Helper()
	api := memory.New(now)
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "worker", Namespace: machine.Namespace}}
	set.Spec.Replicas = &n
	set.Spec.Selector.MatchLabels = map[string]string{machine.LabelMachineSet: "worker"}
	set.Spec.Template.Labels = set.Spec.Selector.MatchLabels
	w := ranch{t, api}
	w.ok(api.Put(set))
	return w
}

// running is a ranch whose n Machines work.
func running(t *testing.T, n int32) ranch {
	t.Helper()
	w := ranchOf(t, n)
	w.ok(w.scan())
	for _, m := range w.machines() {
		w.ok(w.runs(m.Name))
	}
	return w
}

func (w ranch) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

func (w ranch) runner() *runner.Runner {
	return &runner.Runner{Function: Function, Cluster: w.api.As(Function.Name), Log: slog.New(slog.DiscardHandler)}
}

func (w ranch) scan() error {
	_, err := w.runner().Handle(w.Context(), snapshot.Request{})
	return err
}

// dies is a scan of who dies before it deletes anybody.
func (w ranch) dies() error {
	r := w.runner()
	r.Cluster = nobodyGoes{r.Cluster}
	if _, err := r.Handle(w.Context(), snapshot.Request{}); err == nil {
		return errors.New("nobody was to be deleted")
	}
	return nil
}

// late is a scan during which something happens after it read the Machines, and before it reads the set again.
func (w ranch) late(happens func() error) {
	w.Helper()
	r := w.runner()
	b := &meanwhile{Cluster: r.Cluster, happens: happens}
	r.Cluster = b
	_, err := r.Handle(w.Context(), snapshot.Request{})
	w.ok(err)
	if b.happens != nil {
		w.Fatal("the set was not read again")
	}
}

func (w ranch) scale(n int32) error { return w.api.Scale(machine.Namespace, "worker", n) }

func (w ranch) change(name string, f func(*machine.Machine)) error {
	return memory.Patch(w.api, machine.Namespace, name, f)
}

// runs says that the Machine works.
func (w ranch) runs(name string) error {
	return w.change(name, func(m *machine.Machine) {
		m.Spec.ProviderID = new("cloud://" + name)
		m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: name}
	})
}

func mark(m *machine.Machine) {
	metav1.SetMetaDataAnnotation(&m.ObjectMeta, machine.AnnotationDelete, "yes")
}

func (w ranch) set() *machine.MachineSet {
	return memory.Get[*machine.MachineSet](w.api, machine.Namespace, "worker")
}

func (w ranch) machines() []*machine.Machine { return memory.List[*machine.Machine](w.api) }

func (w ranch) at(k int) string { return machine.Name("worker", w.set().UID, k) }

func (w ranch) stays(name string) bool {
	m := memory.Get[*machine.Machine](w.api, machine.Namespace, name)
	return m != nil && m.DeletionTimestamp == nil
}

func (w ranch) state() (all []string) {
	all = append(all, w.set().Annotations[machine.AnnotationLedger])
	for _, m := range w.machines() {
		s := m.Name + "@" + m.Labels[machine.LabelOrdinal]
		if m.DeletionTimestamp != nil {
			s += " deleted"
		}
		all = append(all, s)
	}
	return all
}

// nobodyGoes is a cluster to which no deletion gets through.
type nobodyGoes struct{ cluster.Cluster }

func (d nobodyGoes) Apply(ctx context.Context, a plan.Action) error {
	if _, is := a.(plan.Delete); is {
		return errLost
	}
	return d.Cluster.Apply(ctx, a)
}

// meanwhile lets something happen once, before the set is read again; it counts what is read one by one.
type meanwhile struct {
	cluster.Cluster
	happens func() error
	one     int
}

func (b *meanwhile) Observe(ctx context.Context, s snapshot.Snapshot, queries []snapshot.Query) (snapshot.Snapshot, error) {
	if b.happens != nil && slices.ContainsFunc(queries, func(q snapshot.Query) bool { return q.Again }) {
		if err := b.happens(); err != nil {
			return s, err
		}
		b.happens = nil
	}
	for _, q := range queries {
		if q.Kind == "Machine" && q.Name != "" {
			b.one++
		}
	}
	return b.Cluster.Observe(ctx, s, queries)
}

// People mark a Machine and scale down by one, as their tools do (B45). Whoever had read the Machines before, and reads the set after that, takes
// no other.
func TestMarkedMachineGoesAlsoByAnOlderList(t *testing.T) {
	t.Parallel()
	w := running(t, 3)
	w.ok(w.scale(2))
	w.late(func() error { return errors.Join(w.change(left(w), mark), w.scale(1)) }) // it has committed the first, and is about to carry it out
	w.ok(w.scan())
	for _, m := range w.machines() {
		if m.DeletionTimestamp == nil && m.Annotations[machine.AnnotationDelete] != "" {
			t.Errorf("%s is marked and stays: %v", m.Name, w.state())
		}
	}
}

// left is the last of those that stand at an ordinal.
func left(w ranch) string {
	l, _ := machine.ParseLedger(w.set().Annotations[machine.AnnotationLedger])
	return l.Name("worker", l.Active[len(l.Active)-1])
}

// A Machine that came and runs since the Machines were read was not "never created": people mark another one, which goes.
func TestMachineThatCameMeanwhileWasCreated(t *testing.T) {
	t.Parallel()
	w := running(t, 2)
	w.ok(w.scale(1))
	w.ok(w.dies())
	w.late(func() error {
		err := errors.Join(w.scale(3), w.scan(), w.runs(w.at(2)), w.runs(w.at(3)))
		return errors.Join(err, w.change(w.at(1), mark), w.scale(2))
	})
	w.ok(w.scan())
	if !w.stays(w.at(2)) || !w.stays(w.at(3)) || w.stays(w.at(1)) {
		t.Errorf("want the marked one to go: %v", w.state())
	}
}

// A Machine that people made, the set adopted, and retired as the autoscaler's victim, all after the Machines were read, stays retired.
func TestMachineThatWasAdoptedAndRetiredMeanwhileStaysRetired(t *testing.T) {
	t.Parallel()
	w := ranchOf(t, 2)
	w.ok(w.scan())
	w.ok(w.scale(1))
	w.ok(w.dies())
	w.late(func() error {
		byHand := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "by-hand", Labels: w.set().Spec.Template.Labels}}
		err := errors.Join(w.scale(2), w.api.Put(byHand), w.scan(), w.runs("by-hand"))
		uid := memory.Get[*machine.Machine](w.api, machine.Namespace, "by-hand").UID
		err = errors.Join(err, memory.Patch(w.api, machine.Namespace, "worker", func(s *machine.MachineSet) {
			s.Spec.Replicas = new(int32(1))
			metav1.SetMetaDataAnnotation(&s.ObjectMeta, machine.AnnotationVictims, `[{"name":"by-hand","uid":"`+string(uid)+`","plan":"p"}]`)
		}))
		return errors.Join(err, w.dies(), w.scale(2))
	})
	w.ok(w.scan())
	l, err := machine.ParseLedger(w.set().Annotations[machine.AnnotationLedger])
	if w.ok(err); w.stays("by-hand") || l.Next != 4 {
		t.Errorf("by-hand stays: %v, want it to go, and one in its place: %v", w.stays("by-hand"), w.state())
	}
}

// Machines that people took out of the set for good, labels and all, are nothing that its later work has to look at one by one.
func TestThoseThatLeftAreNotReadOneByOne(t *testing.T) {
	t.Parallel()
	w := ranchOf(t, 60)
	for range 4 {
		w.ok(w.scan())
	}
	for i, m := range w.machines() {
		if i < 58 {
			w.ok(w.change(m.Name, func(m *machine.Machine) { m.Labels = nil }))
		}
	}
	w.ok(w.scale(2))
	for range 4 {
		w.ok(w.scan())
	}
	w.ok(w.scale(1))
	r := w.runner()
	b := &meanwhile{Cluster: r.Cluster}
	r.Cluster = b
	_, err := r.Handle(t.Context(), snapshot.Request{})
	if w.ok(err); b.one > 20 {
		t.Errorf("%d Machines were read one by one", b.one)
	}
}

// deniesOwners is a cluster whose policy lets no set have another Machine.
type deniesOwners struct{ cluster.Cluster }

func (d deniesOwners) Apply(ctx context.Context, a plan.Action) error {
	if u, ok := a.(plan.Update); ok {
		if m, ok := u.Old.(*machine.Machine); ok && len(m.OwnerReferences) == 0 && len(u.New.GetOwnerReferences()) > 0 {
			return &cluster.RefusedError{Err: errors.New("denied by policy")}
		}
	}
	return d.Cluster.Apply(ctx, a)
}

// Nor are those that the set may not adopt.
func TestThoseThatMayNotBeAdoptedAreNotReadOneByOne(t *testing.T) {
	t.Parallel()
	w := ranchOf(t, 60)
	for range 4 {
		w.ok(w.scan())
	}
	for _, m := range w.machines() {
		w.ok(w.change(m.Name, func(m *machine.Machine) { m.OwnerReferences = nil }))
	}
	for i := range 3 {
		r := w.runner()
		b := &meanwhile{Cluster: deniesOwners{r.Cluster}}
		r.Cluster = b
		_, err := r.Handle(t.Context(), snapshot.Request{})
		if w.ok(err); b.one > 20 {
			t.Errorf("scan %d: %d Machines were read one by one", i, b.one)
		}
	}
}
