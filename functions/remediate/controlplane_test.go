// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"log/slog"
	"strings"
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

// check is one of all Machines with such labels, which may be not Ready for five minutes, with such steps unless they are "".
func (w *ward) check(name string, selector map[string]string, steps string) {
	w.Helper()
	h := &machine.MachineHealthCheck{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: machine.Namespace}}
	if steps != "" {
		h.Annotations = map[string]string{machine.AnnotationSteps: steps}
	}
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

// ill makes a master's Node not Ready.
func (w *ward) ill(name string) {
	w.Helper()
	w.ok(memory.Patch(w.api, "", name, func(n *corev1.Node) {
		n.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "False", LastTransitionTime: metav1.NewTime(w.now)}}
	}))
}

// annotate puts an annotation on a Machine, or takes it off.
func (w *ward) annotate(name, key string, is bool) {
	w.Helper()
	w.ok(memory.Patch(w.api, machine.Namespace, name, func(m *machine.Machine) {
		delete(m.Annotations, key)
		if is {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, "")
		}
	}))
}

// triedInVain is a control plane of three of which one was power-cycled, and is ill as before.
func triedInVain(t *testing.T) *ward {
	t.Helper()
	w := wardOf(t)
	w.check("check", nil, "power-cycle=10m,replace")
	for _, n := range []string{"master-a", "master-b", "master-c"} {
		w.master(n, nil)
	}
	w.scans(10 * time.Second)
	w.ill("master-a")
	w.scans(6 * time.Minute)
	if !w.claimed("master-a") || !w.wished("master-a") {
		t.Fatal("no power-cycle of master-a was asked for")
	}
	return w
}

func (w *ward) claimed(name string) bool {
	return memory.Get[*machine.Machine](w.api, machine.Namespace, name).Annotations[machine.AnnotationRemediatedBy] != ""
}

// wished reports whether a power-cycle is to be carried out.
func (w *ward) wished(name string) bool {
	_, is := memory.Get[*machine.Machine](w.api, machine.Namespace, name).Annotations[machine.AnnotationExternalRepair]
	return is
}

func (w *ward) goes(name string) bool {
	m := memory.Get[*machine.Machine](w.api, machine.Namespace, name)
	return m == nil || m.DeletionTimestamp != nil
}

// Machines of the control plane that are known by the role of their Nodes alone are of it still when their Nodes are gone (R-S10).
func TestMastersWhoseNodesAreGoneGoOneByOne(t *testing.T) {
	t.Parallel()
	w := wardOf(t)
	w.check("check", nil, "")
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
	w.check("check", map[string]string{"zone": "b"}, "")
	for _, z := range []string{"a", "b", "c"} {
		w.master("master-"+z, map[string]string{machine.LabelRole: "master", "zone": z})
	}
	w.scans(10 * time.Second)
	w.ill("master-b")
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

// A master was power-cycled in vain. People pause it, to look at it, delete it, and let it go: no other one is taken meanwhile (R-S10).
func TestMasterThatPeoplePausedAndDeletedHoldsOthers(t *testing.T) {
	t.Parallel()
	w := triedInVain(t)
	w.annotate("master-a", machine.AnnotationPaused, true)
	w.scans(10 * time.Second)
	w.ok(w.api.Remove("Machine", machine.Namespace, "master-a", memory.Background))
	w.annotate("master-a", machine.AnnotationPaused, false)
	w.ill("master-b")
	w.scans(45 * time.Minute)
	if w.claimed("master-b") || w.goes("master-b") {
		t.Error("master-b is remediated while master-a goes")
	}
}

// A master was power-cycled in vain, and people keep it to look at it, whichever way they say so: nothing is done about it, and as it is ill
// as before, about no other one, until they take the flight off the check (R-S10).
func TestMasterTriedInVainThatPeopleKeepHoldsOthers(t *testing.T) {
	t.Parallel()
	for _, key := range []string{machine.AnnotationPaused, machine.AnnotationPreserve, machine.AnnotationSkipRepair} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			w := triedInVain(t)
			w.annotate("master-a", key, true)
			w.ill("master-b")
			w.scans(45 * time.Minute)
			if w.claimed("master-b") || w.goes("master-b") || w.goes("master-a") {
				t.Errorf("master-a was tried in vain; goes: %v, master-b is claimed: %v, goes: %v", w.goes("master-a"), w.claimed("master-b"), w.goes("master-b"))
			}
			if key != machine.AnnotationPaused && w.wished("master-a") {
				t.Error("whom people keep is still to be power-cycled")
			}
			if flight := memory.Get[*machine.MachineHealthCheck](w.api, machine.Namespace, "check").Annotations[machine.AnnotationInFlight]; strings.Contains(flight, "step") {
				t.Errorf("whom people keep is escalated: %s", flight)
			}
			w.ok(memory.Patch(w.api, machine.Namespace, "check", func(h *machine.MachineHealthCheck) { delete(h.Annotations, machine.AnnotationInFlight) }))
			w.scans(2 * time.Minute)
			if !w.claimed("master-b") {
				t.Error("master-b waits though people ended the flight of master-a")
			}
		})
	}
}

// Two checks have a master in flight each, as what one of them had there was put back from a backup. One of the two is power-cycled, in vain:
// however long that lasts, the other one is not taken beside it (R-S10).
func TestMasterTriedInVainHoldsWhoIsInFlightInAnotherCheck(t *testing.T) {
	t.Parallel()
	w := wardOf(t)
	for _, z := range []string{"a", "b", "c"} {
		w.master("master-"+z, map[string]string{machine.LabelRole: "master", "zone": z})
		w.check("check-"+z, map[string]string{"zone": z}, "power-cycle")
	}
	w.scans(10 * time.Second)
	w.ill("master-c")
	w.scans(6 * time.Minute)
	w.ill("master-b")
	w.scans(10 * time.Minute)
	at, uid := w.now.Format(time.RFC3339), string(memory.Get[*machine.Machine](w.api, machine.Namespace, "master-b").UID)
	w.ok(memory.Patch(w.api, machine.Namespace, "check-b", func(h *machine.MachineHealthCheck) {
		metav1.SetMetaDataAnnotation(&h.ObjectMeta, machine.AnnotationInFlight, `{"schema":1,"inFlight":[{"machine":"master-b","uid":"`+uid+`","at":"`+at+`","controlPlane":true}]}`)
	}))
	w.scans(time.Hour)
	if !w.claimed("master-c") || w.claimed("master-b") {
		t.Errorf("claimed are: master-c %v, master-b %v; want the first alone", w.claimed("master-c"), w.claimed("master-b"))
	}
}

// Two masters were power-cycled in vain, each by a check of its own: neither waits for the other for ever, and one of them is replaced (R-S10).
func TestMastersTriedInVainAreReplacedOneByOne(t *testing.T) {
	t.Parallel()
	w := wardOf(t)
	for _, z := range []string{"a", "b", "c"} {
		w.master("master-"+z, map[string]string{machine.LabelRole: "master", "zone": z})
		w.check("check-"+z, map[string]string{"zone": z}, "power-cycle=10m,replace")
	}
	w.scans(10 * time.Second)
	w.ill("master-a")
	w.ill("master-b")
	at := w.now.Format(time.RFC3339)
	for _, z := range []string{"a", "b"} {
		uid := string(memory.Get[*machine.Machine](w.api, machine.Namespace, "master-"+z).UID)
		w.ok(memory.Patch(w.api, machine.Namespace, "check-"+z, func(h *machine.MachineHealthCheck) {
			metav1.SetMetaDataAnnotation(&h.ObjectMeta, machine.AnnotationInFlight,
				`{"schema":1,"inFlight":[{"machine":"master-`+z+`","uid":"`+uid+`","at":"`+at+`","controlPlane":true}]}`)
		}))
		w.ok(memory.Patch(w.api, machine.Namespace, "master-"+z, func(m *machine.Machine) {
			metav1.SetMetaDataAnnotation(&m.ObjectMeta, machine.AnnotationRemediatedBy, "machinehealthcheck/check-"+z+" power-cycle "+at)
		}))
	}
	w.scans(time.Hour)
	if w.goes("master-a") == w.goes("master-b") {
		t.Errorf("go: master-a %v, master-b %v, want one of them", w.goes("master-a"), w.goes("master-b"))
	}
}
