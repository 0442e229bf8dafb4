// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	apiserver "github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

// A drain that waits in the queue with a later Node of the instance has begun with the first one: it says so once, whatever it waited for
// before. No limit cuts the wait for another control-plane Node short, and none counts it: its Pods have their time (B32, B33, R-S14).
func TestDrainThatWaitsWithALaterNodeIsQuietAndEnds(t *testing.T) {
	t.Parallel()
	master := map[string]string{machine.LabelMaster: ""}
	for name, c := range map[string]struct {
		first     map[string]string // labels of the Node that the host was
		slot      string
		queued    bool // before the first Node had its turn
		limit     string
		waits     string
		otherName string // a control-plane Node that people work on
	}{
		"both of the control plane":            {first: master, otherName: "master-1", waits: "node master-1 is cordoned"},
		"both of the control plane, queued":    {first: master, otherName: "master-1", queued: true, waits: "node master-1 is cordoned"},
		"both of the control plane, a limit":   {first: master, otherName: "master-1", limit: "10m", waits: "node master-1 is cordoned"},
		"a worker first, barred":               {slot: "{}", waits: "nobody disrupts"},
		"a worker first, barred, with a limit": {slot: "{}", limit: "10m", waits: "nobody disrupts"},
		"a worker first, with a limit, queued": {otherName: "master-1", queued: true, limit: "10m", waits: "node master-1 is cordoned"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := apiserver.New(time.Now)
				put := func(o plan.Object) {
					if err := api.Put(o); err != nil {
						t.Fatal(err)
					}
				}
				node := func(name, id string, labels map[string]string, cordoned bool, ready corev1.ConditionStatus) {
					n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("node-" + name), Labels: labels}}
					n.Spec.ProviderID, n.Spec.Unschedulable = id, cordoned
					n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
					put(n)
				}
				node("former", "kubemark://master-0", c.first, true, corev1.ConditionUnknown)
				node("master-0", "kubemark://master-0", master, false, corev1.ConditionTrue)
				if c.otherName != "" {
					node(c.otherName, "kubemark://"+c.otherName, master, true, corev1.ConditionTrue)
				}
				if c.slot != "" {
					put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapDisrupt}, Data: map[string]string{slotKey: c.slot}})
				}
				m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "master-0", UID: "machine-0", Finalizers: []string{machine.Finalizer}}}
				m.DeletionTimestamp = new(metav1.Now())
				if c.limit != "" {
					m.Annotations = map[string]string{machine.AnnotationDrainTimeout: c.limit}
				}
				m.Spec.ProviderID, m.Status.Phase = new("kubemark://master-0"), new(machine.PhaseDeleting)
				m.Status.NodeRef = &corev1.ObjectReference{Kind: "Node", Name: "former", UID: "node-former"}
				began := time.Now()
				if c.queued {
					m.Status.Conditions = []machine.Condition{{
						Type: machine.ConditionDrained, Status: corev1.ConditionFalse, Reason: reasonQueued, LastTransitionTime: metav1.NewTime(began.Add(-time.Hour)),
					}}
				}
				put(m)
				r := &runner.Runner{Function: Function, Cluster: api.As("drain-node"), Log: slog.New(slog.DiscardHandler)}
				writes := 0
				for range 66 { // eleven minutes
					p, err := r.Handle(t.Context(), snapshot.Request{})
					if err != nil {
						t.Fatal(err)
					}
					writes += len(p.Actions())
					time.Sleep(10 * time.Second)
				}
				if writes > 4 { // the slot, the beginning, what it waits for
					t.Errorf("%d writes", writes)
				}
				got, _ := api.Object("Machine", machine.Namespace, "master-0").(*machine.Machine)
				have := machine.FindCondition(got.Status.Conditions, machine.ConditionDrained)
				if have == nil || have.Reason != reasonAgain || !have.LastTransitionTime.Time.Equal(began) || !strings.Contains(have.Message, c.waits) {
					t.Errorf("got %+v, want QueuedAgain since %v", have, began)
				}
				put(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: "p"}, Spec: corev1.PodSpec{NodeName: "master-0"}, Status: corev1.PodStatus{Phase: corev1.PodRunning}})
				if c.otherName != "" { // its turn comes
					put(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: c.otherName, UID: types.UID("node-" + c.otherName), Labels: master}})
				} else {
					put(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.ConfigMapDisrupt}})
				}
				scans := func() {
					for range 3 {
						if _, err := r.Handle(t.Context(), snapshot.Request{}); err != nil {
							t.Fatal(err)
						}
					}
				}
				scans()
				if p := apiserver.Get[*corev1.Pod](api, "default", "web"); p == nil || p.DeletionTimestamp == nil {
					t.Errorf("its turn came, and the Pod on it was not asked to leave: %+v", p)
				}
				if m, _ := api.Object("Machine", machine.Namespace, "master-0").(*machine.Machine); machine.Drained(m) {
					t.Errorf("its turn came, and the Pod on it was not waited for: %+v", m.Status.Conditions)
				}
				if err := apiserver.Patch(api, "default", "web", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }); err != nil {
					t.Fatal(err)
				}
				scans()
				if m, _ := api.Object("Machine", machine.Namespace, "master-0").(*machine.Machine); !machine.Drained(m) {
					t.Errorf("its turn came, and the drain does not end: %+v", m.Status.Conditions)
				}
			})
		})
	}
}

// A webhook may keep the evictions of a late drain waiting for longer than any invocation lasts: ten minutes later the drain ends together
// with them, whatever becomes of them. Before that their answers end it.
func TestLateDrainWhoseEvictionsGetNoAnswerEnds(t *testing.T) {
	t.Parallel()
	for late, ends := range map[time.Duration]bool{inVain - time.Second: false, inVain: true} {
		s, _, err := scenario.Load("testdata/limit-reached-while-nobody-looked.txtar")
		if err != nil {
			t.Fatal(err)
		}
		s.World.Now = s.World.Now.Add(late)
		seen, _, err := scenario.Observe(Function, s)
		if err != nil {
			t.Fatal(err)
		}
		asked, ended := 0, false
		for _, a := range Decide(seen).Actions() {
			switch a := a.(type) {
			case plan.Evict:
				asked++
			case plan.UpdateStatus:
				m, is := a.New.(*machine.Machine)
				ended = is && machine.Drained(m)
			}
		}
		if asked != 12 || ended != ends {
			t.Errorf("%v late: %d of 12 Pods asked, ended %t", late, asked, ended)
		}
	}
}
