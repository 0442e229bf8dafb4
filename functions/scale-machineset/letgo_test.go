// SPDX-License-Identifier: Apache-2.0

package scalemachineset

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// failing is a set of six, of which five run and one failed so often that its successor is made only now.
func failing(t *testing.T, times int, now *time.Time) ranch {
	t.Helper()
	w := ranchBy(t, 6, func() time.Time { return *now })
	for range 3 {
		w.ok(w.scan())
	}
	for k := range 5 {
		w.ok(w.runs(w.at(k)))
	}
	for k := range times {
		name := w.at(5 + k)
		w.ok(w.change(name, func(m *machine.Machine) { m.Status.ErrorMessage = new("it failed"); m.Finalizers = nil }))
		w.ok(w.change(name, func(m *machine.Machine) { m.Finalizers = []string{machine.Finalizer} }))
		w.ok(w.api.Remove("Machine", machine.Namespace, name, memory.Background))
		w.ok(w.scan())
		w.ok(w.change(name, func(m *machine.Machine) { m.Finalizers = nil }))
		*now = now.Add(11 * time.Minute)
		w.ok(w.scan())
	}
	for k := range 5 {
		w.ok(w.change(w.at(k), func(m *machine.Machine) { m.Labels = nil }))
	}
	w.ok(w.scan())
	return w
}

// Labels that most lost hold creations up for a minute, also where a Machine that failed before has a successor which comes to run in it.
func TestPauseForLostLabelsIsNotForgiven(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	w := failing(t, 7, &now)
	before := len(w.machines())
	now = now.Add(10 * time.Second)
	w.ok(w.runs(w.at(12)))
	for range 3 {
		w.ok(w.scan())
	}
	if n := len(w.machines()); n > before {
		t.Errorf("%d are made ten seconds after the labels went: %v", n-before, w.state())
	}
}

// What is told of such a pause is why it is.
func TestPauseForLostLabelsIsToldAsThat(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	w := failing(t, 1, &now)
	if m := w.set().Status.ErrorMessage; m == nil || !strings.Contains(*m, "labels") {
		t.Errorf("told is %v: %v", *m, w.state())
	}
}

// A Machine without an owner whose Node is of the control plane is not adopted by a set of workers, nor deleted by it (B32).
func TestMasterByItsNodeIsNotAdopted(t *testing.T) {
	t.Parallel()
	w := ranchOf(t, 0)
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-a", Labels: map[string]string{machine.LabelControlPlane: ""}}}
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "cp-a", Labels: w.set().Spec.Template.Labels, Finalizers: []string{machine.Finalizer}}}
	w.ok(w.api.Put(m))
	w.ok(w.runs("cp-a"))
	w.ok(w.change("cp-a", func(m *machine.Machine) { machine.NoteRole(m, n, time.Now()) })) // as link-node does
	for range 3 {
		w.ok(w.scan())
	}
	if !w.stays("cp-a") {
		t.Errorf("the Machine of a control-plane Node goes: %v", w.state())
	}
}

// A Machine that a backup brought back to a retired ordinal goes, and that is told of it, also where the same invocation wrote the ledger for
// another reason.
func TestWhoGoesIsToldAlsoBesideAnotherCommit(t *testing.T) {
	t.Parallel()
	w := running(t, 2)
	old := memory.Get[*machine.Machine](w.api, machine.Namespace, w.at(1)).DeepCopy()
	w.ok(w.scale(1))
	for range 3 {
		w.ok(w.scan())
	}
	gone := w.at(0)
	if w.stays(w.at(0)) {
		gone = w.at(1)
	}
	w.ok(w.change(gone, func(m *machine.Machine) { m.Finalizers = nil }))
	old.Name, old.UID, old.ResourceVersion = gone, "", ""
	k := "1"
	if gone == w.at(0) {
		k = "0"
	}
	old.Labels[machine.LabelOrdinal] = k
	w.ok(w.api.Put(old))
	w.ok(w.scale(3))
	before := len(w.api.Events())
	w.ok(w.scan())
	if w.stays(gone) {
		t.Fatalf("it stays: %v", w.state())
	}
	for _, e := range w.api.Events()[before:] {
		t.Log(e.InvolvedObject.Kind, e.InvolvedObject.Name, e.Reason, e.Message)
		if e.InvolvedObject.Name == gone {
			return
		}
	}
	t.Errorf("nobody is told that %s goes: %v", gone, w.state())
}

// Whoever goes is named.
func TestEachOfManyThatGoIsNamed(t *testing.T) {
	t.Parallel()
	w := ranchOf(t, 30)
	for range 3 {
		w.ok(w.scan())
	}
	for _, m := range w.machines() {
		w.ok(w.runs(m.Name))
	}
	w.ok(w.scale(5))
	for range 4 {
		w.ok(w.scan())
	}
	told := ""
	for _, e := range w.api.Events() {
		told += e.InvolvedObject.Name + " " + e.Message + "\n"
	}
	silent, gone := 0, 0
	for _, m := range w.machines() {
		if m.DeletionTimestamp != nil {
			gone++
			if !strings.Contains(told, m.Name) {
				silent++
			}
		}
	}
	if silent > 0 {
		t.Errorf("%d of %d that go are named nowhere", silent, gone)
	}
}
