// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// tells makes a health check find a Machine sick.
func (w *world) tells(t testing.TB, name string, since time.Time) {
	t.Helper()
	w.must(t, memory.Patch(w.Server, machine.Namespace, name, func(m *machine.Machine) {
		told := machine.False(machine.ConditionHealthy, "Warning", "UnhealthyCondition", "KernelDeadlock is True")
		m.Status.Conditions = machine.SetCondition(m.Status.Conditions, told, since)
	}))
}

// Of two Nodes of which one may go that one goes whose health check has it replaced next: its Pods move once, and nobody makes another Node in
// its place. Not so where its kubelet merely starts anew, nor where people keep it (RELIABILITY 2f, SPEC C57).
func TestSickNodeGoesBeforeOneThatWorks(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name        string
		told        time.Duration // ago; never if 0
		silent      bool
		annotations map[string]string
		balance     bool
		both        bool // may go, one after the other
		want        string
	}{
		{name: "nobody is sick", want: "works"},
		{name: "one is told to be sick", told: time.Minute, want: "ill"},
		{name: "one is told to be sick, and of a smaller set", told: time.Minute, balance: true, want: "ill"},
		{name: "one is told to be sick, and of a smaller set, and both may go", told: time.Minute, balance: true, both: true, want: "ill"},
		{name: "its kubelet starts anew", told: time.Minute, silent: true, want: "works"},
		{name: "its kubelet is silent", told: 6 * time.Minute, silent: true, want: "ill"},
		{name: "people look at it", told: time.Minute, annotations: map[string]string{machine.AnnotationPreserve: ""}, want: "works"},
	} {
		w := fresh(t, fmt.Sprintf("{scaleDown: {enabled: true}, balanceSimilarNodeGroups: %v}", tt.balance))
		w.pool(t, "large", 5, 6, nil, nil)
		w.pool(t, "small", 1, 6, nil, nil)
		little := map[bool]string{false: "1", true: "250m"}[tt.both]
		for name, cpu := range map[string]string{"works": little, "full-1": "3", "full-2": "3500m", "full-3": "3500m", "full-4": "3500m"} {
			w.idler(t, "large", name)
			w.must(t, w.Put(pod("default", "p-"+name, name, resources("cpu", cpu))))
		}
		w.idler(t, "small", "ill")
		w.must(t, w.Put(pod("default", "p-ill", "ill", resources("cpu", little))))
		if tt.told > 0 {
			w.tells(t, "ill", epoch.Add(-tt.told))
		}
		w.must(t, memory.Patch(w.Server, machine.Namespace, "ill", func(m *machine.Machine) { m.Annotations = tt.annotations }))
		if tt.silent {
			w.must(t, memory.Patch(w.Server, "", "ill", func(n *corev1.Node) {
				n.Status.Conditions[0].Status, n.Status.Conditions[0].LastTransitionTime = corev1.ConditionUnknown, metav1.NewTime(epoch.Add(-tt.told))
			}))
		}
		w.remember(t, autoscaling.State{Unneeded: map[types.UID]metav1.Time{
			"node-works": metav1.NewTime(epoch.Add(-2 * time.Hour)), "node-ill": metav1.NewTime(epoch.Add(-time.Hour)),
		}})
		w.scans(t, 1)
		if got := w.tainted(); !slices.Equal(got, []string{tt.want}) {
			t.Errorf("%s: %v go, want %s", tt.name, got, tt.want)
		}
	}
}

// Nobody moves to a Node that its health check has replaced next, whoever makes its Machines, and little as it may be used (RELIABILITY 2f).
func TestNobodyMovesToASickNode(t *testing.T) {
	t.Parallel()
	for _, other := range []string{"3", "1"} { // used too much to go, or not
		for _, set := range []string{"s", "fixed"} {
			for _, is := range []string{"well", "ill", "kept"} {
				w := fresh(t, "{scaleDown: {enabled: true}}")
				w.pool(t, "s", 2, 4, nil, nil)
				w.pool(t, "fixed", 1, 4, nil, nil)
				w.must(t, w.Remove("MachineAutoscaler", machine.Namespace, "fixed", memory.Background))
				w.idler(t, "s", "works")
				w.idler(t, set, "other")
				bare := pod("default", "q", "other", resources("cpu", other)) // nobody would make it anew, so that it stays
				bare.OwnerReferences = nil
				w.must(t, w.Put(pod("default", "p", "works", resources("cpu", "1")), bare))
				if is != "well" {
					w.tells(t, "other", epoch.Add(-time.Minute))
				}
				if is == "kept" {
					w.must(t, memory.Patch(w.Server, machine.Namespace, "other", func(m *machine.Machine) { m.Annotations = map[string]string{machine.AnnotationSkipRepair: ""} }))
				}
				w.remember(t, autoscaling.State{Unneeded: map[types.UID]metav1.Time{"node-works": metav1.NewTime(epoch.Add(-time.Hour))}})
				w.scans(t, 1)
				if got := w.tainted(); (len(got) == 0) != (is == "ill") {
					t.Errorf("a Node of set %s that is %s, with a Pod of %s cores: %v go", set, is, other, got)
				}
			}
		}
	}
}

// A sick Node that does not go yet keeps none that goes: it is not due, or it or its set cannot be changed, or of its set nobody has chosen who goes.
// As long as its health check merely tells of it, both would stay (SPEC C57).
func TestSickNodeThatStaysKeepsNoOther(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		idle time.Duration // so long nobody needs it; of others nobody knows it yet
		hold func(*world)
		pass time.Duration
		want string
	}{
		{name: "it is due", idle: time.Hour, want: "ill"},
		{name: "nobody needs it since now"},
		{name: "its set has a longer time", idle: time.Hour, hold: func(w *world) {
			w.must(t, memory.Patch(w.Server, machine.Namespace, "warm", func(s *machine.MachineSet) {
				s.Annotations[autoscaling.OptionsPrefix+"scaledownunneededtime"] = "24h"
			}))
		}},
		{name: "it cannot be changed", idle: time.Hour, hold: func(w *world) { w.freeze("ill") }, pass: 15 * time.Minute}, // its removal is taken back first
		{name: "its set cannot be changed", idle: time.Hour, hold: func(w *world) {
			w.freeze("warm")
			w.must(t, memory.Patch(w.Server, machine.Namespace, "warm", func(ma *autoscaling.MachineAutoscaler) { ma.Spec.MaxReplicas = 6 }))
		}},
		{name: "nobody has chosen", idle: time.Hour, hold: func(w *world) {
			w.idler(t, "warm", "full")
			w.must(t, w.Put(pod("default", "f", "full", resources("cpu", "3500m"))))
		}},
	} {
		w := fresh(t, "{scaleDown: {enabled: true}}")
		w.pool(t, "s", 1, 4, nil, nil)
		w.pool(t, "warm", 1, 4, nil, nil)
		w.idler(t, "s", "works")
		w.idler(t, "warm", "ill")
		w.must(t, w.Put(pod("default", "p", "ill", resources("cpu", "1"))))
		w.tells(t, "ill", epoch.Add(-5*time.Hour))
		unneeded := map[types.UID]metav1.Time{"node-works": metav1.NewTime(epoch.Add(-2 * time.Hour))}
		if tt.idle > 0 {
			unneeded["node-ill"] = metav1.NewTime(epoch.Add(-tt.idle))
		}
		w.once(t) // the bounds
		w.remember(t, autoscaling.State{Unneeded: unneeded})
		if tt.hold != nil {
			tt.hold(w)
		}
		w.pass(t, max(tt.pass, 10*time.Second))
		if got, want := w.tainted(), cmp.Or(tt.want, "works"); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %v go, want %s", tt.name, got, want)
		}
	}
}
