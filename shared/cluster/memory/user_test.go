// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 5e8, time.UTC)

func newServer() *memory.Server { return memory.New(func() time.Time { return noon }) }

func newMachine(name string) *machine.Machine {
	return &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: name}}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestPutStoresWhatItIsGiven(t *testing.T) {
	t.Parallel()
	s := newServer()
	m := newMachine("a")
	m.UID, m.Generation = "given", 7
	m.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour).Truncate(time.Second))
	m.DeletionTimestamp = &m.CreationTimestamp
	m.Finalizers = []string{machine.Finalizer}
	phase := machine.PhaseDeleting
	m.Status.Phase = &phase
	must(t, s.Put(m))
	got := memory.Get[*machine.Machine](s, machine.Namespace, "a")
	if got.ResourceVersion == "" {
		t.Error("it has no version")
	}
	got.ResourceVersion = ""
	if diff := cmp.Diff(m, got); diff != "" {
		t.Errorf("-put +got\n%s", diff)
	}
	must(t, memory.Patch(s, machine.Namespace, "a", func(m *machine.Machine) { m.Finalizers = nil }))
	if left := memory.List[*machine.Machine](s); len(left) != 0 {
		t.Errorf("without finalizers: %v", left)
	}
}

func TestPutFillsInWhatIsEmpty(t *testing.T) {
	t.Parallel()
	s := newServer()
	must(t, s.Put(newMachine("a"), newMachine("b")))
	a, b := memory.Get[*machine.Machine](s, machine.Namespace, "a"), memory.Get[*machine.Machine](s, machine.Namespace, "b")
	if a.UID == b.UID || a.Generation != 1 || !a.CreationTimestamp.Equal(&metav1.Time{Time: noon.Truncate(time.Second)}) {
		t.Errorf("metadata %+v and %+v", a.ObjectMeta, b.ObjectMeta)
	}
	must(t, s.Put(newMachine("a")))
	if again := memory.Get[*machine.Machine](s, machine.Namespace, "a"); again.UID != a.UID || again.Generation != 2 {
		t.Errorf("put over it: %+v", again.ObjectMeta)
	}
	if err := s.Put(newMachine("A")); err == nil {
		t.Error("a bad name is stored")
	}
}

func TestObjectsAreCopies(t *testing.T) {
	t.Parallel()
	s := newServer()
	m := newMachine("a")
	m.Labels = map[string]string{"a": "b"}
	must(t, s.Put(m))
	m.Labels["a"] = "changed"
	memory.Get[*machine.Machine](s, machine.Namespace, "a").Labels["a"] = "changed"
	memory.List[*machine.Machine](s)[0].Labels["a"] = "changed"
	must(t, memory.Patch(s, machine.Namespace, "a", func(m *machine.Machine) { m = m.DeepCopy(); m.Labels["a"] = "changed" }))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Data: map[string][]byte{"a": []byte("b")}}
	s.PutSecret(secret)
	secret.Data["a"][0] = 'x'
	data, _, err := s.As("f").Secret(t.Context(), "ns", "a")
	must(t, err)
	data["a"][0] = 'y'
	again, _, _ := s.As("f").Secret(t.Context(), "ns", "a")
	if got := memory.Get[*machine.Machine](s, machine.Namespace, "a"); got.Labels["a"] != "b" || string(again["a"]) != "b" {
		t.Errorf("labels %v, secret %s", got.Labels, again)
	}
}

func TestWritesAndAccesses(t *testing.T) {
	t.Parallel()
	s := newServer()
	f := s.As("f")
	must(t, s.Put(newMachine("a")))
	before := len(s.Writes())
	seen, err := f.Observe(t.Context(), snapshot.Snapshot{}, []snapshot.Query{snapshot.All("Machine"), snapshot.All("Pod")})
	must(t, err)
	if len(s.Writes()) != before {
		t.Error("reading writes")
	}
	m := seen.Machines[0]
	n := m.DeepCopy()
	n.Finalizers = []string{machine.Finalizer}
	must(t, f.Apply(t.Context(), plan.Update{Old: m, New: n}))
	_ = f.Apply(t.Context(), plan.Update{Old: m, New: n})
	must(t, f.Apply(t.Context(), plan.Update{Old: m, New: m})) // nothing is sent
	must(t, f.Tell(t.Context(), plan.Normal(m, "Update", "done")))
	var lines []string
	for _, w := range s.Writes()[before:] {
		lines = append(lines, w.String())
	}
	want := []string{
		"f patch machines openshift-machine-api a", "f patch machines openshift-machine-api a: object changed since it was observed",
		"f create events openshift-machine-api a.",
	}
	if len(lines) != 3 || lines[0] != want[0] || lines[1] != want[1] || lines[2][:len(want[2])] != want[2] {
		t.Errorf("writes %q", lines)
	}
	var accesses []string
	for _, a := range s.Accesses() {
		if a.Actor == "f" {
			accesses = append(accesses, fmt.Sprintf("%s %s/%s in %q", a.Verb, a.Group, a.Resource, a.Namespace))
		}
	}
	wantAccesses := []string{
		`create /events in "openshift-machine-api"`, `list /pods in ""`, `list machine.openshift.io/machines in "openshift-machine-api"`,
		`patch machine.openshift.io/machines in "openshift-machine-api"`,
	}
	if !slices.Equal(accesses, wantAccesses) {
		t.Errorf("accesses %q", accesses)
	}
}

func TestScaleAndRemove(t *testing.T) {
	t.Parallel()
	s := newServer()
	set := &machine.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "set", UID: "set"}}
	owner := []metav1.OwnerReference{{APIVersion: "machine.openshift.io/v1beta1", Kind: "MachineSet", Name: "set", UID: "set"}}
	m := newMachine("a")
	m.OwnerReferences = owner
	must(t, s.Put(m, set))
	must(t, s.Scale(machine.Namespace, "set", 5))
	if got := memory.Get[*machine.MachineSet](s, machine.Namespace, "set"); *got.Spec.Replicas != 5 || got.Generation != 2 {
		t.Errorf("scaled: %+v", got)
	}
	before := memory.Get[*machine.MachineSet](s, machine.Namespace, "set").ResourceVersion
	must(t, s.Scale(machine.Namespace, "set", 5))
	if after := memory.Get[*machine.MachineSet](s, machine.Namespace, "set").ResourceVersion; after != before {
		t.Errorf("scaled to what it was: version %s became %s", before, after)
	}
	must(t, s.Remove("MachineSet", machine.Namespace, "set", memory.Orphan))
	if got := memory.Get[*machine.Machine](s, machine.Namespace, "a"); got == nil || len(got.OwnerReferences) != 0 {
		t.Errorf("orphaned: %+v", got)
	}
	m.UID, set.UID = "again", "set"
	must(t, s.Put(m, set))
	must(t, s.Remove("MachineSet", machine.Namespace, "set", memory.Background))
	if got := memory.Get[*machine.Machine](s, machine.Namespace, "a"); got != nil {
		t.Errorf("collected: %+v", got)
	}
	if err := s.Remove("MachineSet", machine.Namespace, "set", memory.Background); !errors.Is(err, cluster.ErrGone) {
		t.Errorf("once more: %v", err)
	}
}

func TestPodEndsWhenItsKubeletSaysSo(t *testing.T) {
	t.Parallel()
	s := newServer()
	must(t, s.Put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p"}, Spec: corev1.PodSpec{NodeName: "n"}}))
	must(t, s.Remove("Pod", "ns", "p", memory.Background))
	if p := memory.Get[*corev1.Pod](s, "ns", "p"); p == nil || p.DeletionTimestamp == nil {
		t.Fatalf("being deleted: %+v", p)
	}
	must(t, s.Remove("Pod", "ns", "p", memory.Force))
	if p := memory.Get[*corev1.Pod](s, "ns", "p"); p != nil {
		t.Errorf("ended: %+v", p)
	}
}

// TestBudgets are those cases that the real disruption controller does not leave standing long enough to be compared.
func TestBudgets(t *testing.T) {
	t.Parallel()
	always := policyv1.AlwaysAllow
	for _, tt := range []struct {
		name   string
		ready  corev1.ConditionStatus
		change func(*policyv1.PodDisruptionBudget)
		want   string
	}{
		{"not looked at yet", "True", func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }, "blocked for 10s"},
		{"failed to compute", "True", func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = -1 }, "refused"},
		{"too few healthy", "False", func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 0 }, "blocked for 0s"},
		{"too few healthy, but always", "False", func(b *policyv1.PodDisruptionBudget) {
			b.Status.CurrentHealthy = 0
			b.Spec.UnhealthyPodEvictionPolicy = &always
		}, "done"},
		{"of everything", "True", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = &metav1.LabelSelector{} }, "blocked for 0s"},
		{"of nothing", "True", func(b *policyv1.PodDisruptionBudget) { b.Spec.Selector = nil }, "done"},
		{"elsewhere", "True", func(b *policyv1.PodDisruptionBudget) { b.Namespace = "elsewhere" }, "done"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := newServer()
			p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "p", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{NodeName: "n"}}
			p.Status = corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: tt.ready}}}
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", Generation: 1}}
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: p.Labels}
			b.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 1, DesiredHealthy: 1, CurrentHealthy: 1}
			tt.change(b)
			must(t, s.Put(p, b))
			err := s.As("f").Apply(t.Context(), plan.Evict{Pod: p})
			got := "done"
			if blocked, ok := errors.AsType[*cluster.BlockedError](err); ok {
				got = fmt.Sprint("blocked for ", blocked.RetryAfter)
			} else if _, ok := errors.AsType[*cluster.RefusedError](err); ok {
				got = "refused"
			} else if err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestEventsInOrder(t *testing.T) {
	t.Parallel()
	s := newServer()
	must(t, s.Put(newMachine("a")))
	m := memory.Get[*machine.Machine](s, machine.Namespace, "a")
	for _, message := range []string{"z", "a", "z"} {
		must(t, s.As("f").Tell(t.Context(), plan.Normal(m, "Update", message)))
	}
	events := s.Events()
	if len(events) != 2 || events[0].Message != "z" || events[0].Count != 2 || events[0].Source.Component != "f" || events[1].Message != "a" {
		t.Errorf("events %+v", events)
	}
}

func BenchmarkUpdate(b *testing.B) {
	s := newServer()
	if err := s.Put(newMachine("a")); err != nil {
		b.Fatal(err)
	}
	f := s.As("f")
	for i := 0; b.Loop(); i++ {
		m := memory.Get[*machine.Machine](s, machine.Namespace, "a")
		n := m.DeepCopy()
		n.Annotations = map[string]string{"a": fmt.Sprint(i)}
		if err := f.Apply(b.Context(), plan.Update{Old: m, New: n}); err != nil {
			b.Fatal(err)
		}
	}
}
