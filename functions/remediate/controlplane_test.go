// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"log/slog"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// ward is a cluster with Machines of a control plane, checks of them, and a clock.
type ward struct {
	*testing.T
	api *memory.Server
	now time.Time
}

func wardOf(t *testing.T) *ward {
	t.Helper()
	w := &ward{T: t, now: time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)}
	w.api = memory.New(func() time.Time { return w.now })
	return w
}

func (w *ward) ok(err error) {
	w.Helper()
	if err != nil {
		w.Fatal(err)
	}
}

// scans are those of so long, one every ten seconds.
func (w *ward) scans(d time.Duration) {
	w.Helper()
	for end := w.now.Add(d); w.now.Before(end); {
		w.now = w.now.Add(10 * time.Second)
		r := &runner.Runner{Function: Function, Cluster: w.api.As(Function.Name), Log: slog.New(slog.DiscardHandler)}
		_, err := r.Handle(w.Context(), snapshot.Request{})
		w.ok(err)
	}
}

// check is one of all Machines with such labels, which may be not Ready for five minutes.
func (w *ward) check(selector map[string]string) {
	w.Helper()
	h := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Name: "check", Namespace: machine.Namespace}}
	h.Spec.Selector.MatchLabels = selector
	for _, s := range []corev1.ConditionStatus{"False", "Unknown"} {
		h.Spec.UnhealthyConditions = append(h.Spec.UnhealthyConditions, machinev1beta1.UnhealthyCondition{Type: "Ready", Status: s, Timeout: metav1.Duration{Duration: 5 * time.Minute}})
	}
	w.ok(w.api.Put(h))
}

// master is one that runs, and is linked to its Node, which alone says what it is unless the labels do.
func (w *ward) master(name string, labels map[string]string) {
	w.Helper()
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: name, Namespace: machine.Namespace, Labels: labels, Finalizers: []string{machine.Finalizer},
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "machine.openshift.io/v1", Kind: "ControlPlaneMachineSet", Name: "cluster", UID: "cpms", Controller: new(true)}},
	}}
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{machine.LabelMaster: ""}}}
	n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "True", LastTransitionTime: metav1.NewTime(w.now.Add(-time.Hour))}}
	w.ok(w.api.Put(m, n))
	n = memory.Get[*corev1.Node](w.api, "", name)
	w.ok(memory.Patch(w.api, machine.Namespace, name, func(m *machine.Machine) {
		m.Status.Phase = new(machine.PhaseRunning)
		m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: name, UID: n.UID}
		machine.NoteRole(m, n, w.now)
	}))
}

func (w *ward) goes(name string) bool {
	m := memory.Get[*machine.Machine](w.api, machine.Namespace, name)
	return m == nil || m.DeletionTimestamp != nil
}

// Machines of the control plane that are known by the role of their Nodes alone are of it still when their Nodes are gone (R-S10).
func TestMastersWhoseNodesAreGoneGoOneByOne(t *testing.T) {
	t.Parallel()
	w := wardOf(t)
	w.check(nil)
	for _, n := range []string{"cp-a", "cp-b", "cp-c"} {
		w.master(n, nil)
	}
	w.scans(10 * time.Second)
	for _, n := range []string{"cp-a", "cp-b"} {
		w.ok(w.api.Remove("Node", "", n, memory.Background))
	}
	w.scans(3 * time.Minute)
	if w.goes("cp-a") == w.goes("cp-b") {
		t.Errorf("of three of the control plane two have no Node, go: %v, %v, want one of them to go", w.goes("cp-a"), w.goes("cp-b"))
	}
}

// People deleted a master that no check selects. Once it is gone, no other one is taken before its successor is Ready, or half an hour is over.
func TestMasterBeyondEverySelectorHoldsOthersOnceItIsGone(t *testing.T) {
	t.Parallel()
	w := wardOf(t)
	w.check(map[string]string{"zone": "b"})
	for _, z := range []string{"a", "b", "c"} {
		w.master("master-"+z, map[string]string{machine.LabelRole: "master", "zone": z})
	}
	w.scans(10 * time.Second)
	w.ok(memory.Patch(w.api, "", "master-b", func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "False", LastTransitionTime: metav1.NewTime(w.now)}}
	}))
	w.scans(4 * time.Minute)
	w.ok(w.api.Remove("Machine", machine.Namespace, "master-a", memory.Background))
	w.scans(2 * time.Minute)
	if w.goes("master-b") {
		t.Fatal("it goes while master-a does")
	}
	w.ok(w.api.Remove("Node", "", "master-a", memory.Background))
	w.ok(memory.Patch(w.api, machine.Namespace, "master-a", func(m *machine.Machine) { m.Finalizers = nil }))
	w.scans(20 * time.Minute)
	if w.goes("master-b") {
		t.Error("master-b goes twenty minutes after master-a, in whose place none is Ready")
	}
	w.scans(15 * time.Minute)
	if !w.goes("master-b") {
		t.Error("master-b stays for longer than a slot counts")
	}
}
