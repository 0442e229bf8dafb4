// SPDX-License-Identifier: Apache-2.0

package linknode

import (
	"log/slog"
	"testing"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/runner"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/scenario"
)

func TestScenarios(t *testing.T) {
	t.Parallel()
	scenario.Run(t, Function)
}

func TestProperties(t *testing.T) {
	t.Parallel()
	scenario.Properties(t, Function)
}

// A Node that names its Machine needs no list of Machines where that one is linked to it, and only then: else nobody would link it before the
// next scan, which is what its own event is for (B63).
func TestNodeThatNamesItsMachineIsLinkedByItsOwnEvent(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node-a", UID: "node-1", Annotations: map[string]string{machine.AnnotationMachine: machine.Namespace + "/a"}}}
	n.Spec.ProviderID = "kubemark://a"
	for _, c := range []struct {
		id     string
		linked types.UID
		want   bool
	}{
		{"kubemark://a", "node-1", true},
		{"kubemark://a", "node-0", false},
		{"kubemark://a", "", false},
		{"kubemark://b", "node-1", false},
	} {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "a"}}
		m.Spec.ProviderID = &c.id
		if c.linked != "" {
			m.Status.NodeRef = &corev1.ObjectReference{Name: n.Name, UID: c.linked}
		}
		s := snapshot.Snapshot{}
		s.Add(m)
		if hint, got := hintOf(s, n); got != c.want || hint != snapshot.One("Machine", machine.Namespace, "a") {
			t.Errorf("%+v: %v is enough: %v", c, hint, got)
		}
	}
}

// A Node of its Machine's name and instance needs no list of Machines, also when it is made anew; where the Machine has another Node, or gave
// the instance up, others may be meant (B63).
func TestNodeThatNobodyElseCanBeMeantBy(t *testing.T) {
	t.Parallel()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-a", UID: "node-2"}, Spec: corev1.NodeSpec{ProviderID: "kubemark://a"}}
	for _, c := range []struct {
		name, id, linked string
		lost, want       bool
	}{
		{"worker-a", "kubemark://a", "", false, true},
		{"worker-a", "kubemark://a", "worker-a", false, true},
		{"worker-a", "kubemark://a", "worker-a", true, true},
		{"worker-a", "kubemark://a", "", true, false},
		{"worker-a", "kubemark://a", "worker-b", false, false},
		{"worker-a", "kubemark://b", "", false, false},
		{"worker-b", "kubemark://a", "", false, false},
	} {
		m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Name: c.name}}
		m.Spec.ProviderID = &c.id
		if c.linked != "" {
			m.Status.NodeRef = &corev1.ObjectReference{Name: c.linked, UID: "node-1"}
		}
		if c.lost {
			m.Status.Phase = new(machine.PhaseFailed)
			m.Status.Conditions = []machine.Condition{{Type: machine.ConditionInstanceExists, Status: corev1.ConditionFalse, Reason: machinev1beta1.InstanceMissingReason}}
		}
		if got := named(m, n); got != c.want {
			t.Errorf("%+v: nobody else can be meant: %v", c, got)
		}
	}
}

// What a Node's role says of its Machine stays with the Machine, whose Node may be gone when that matters, until the Node says otherwise (B32).
func TestRoleOfTheNodeIsNoted(t *testing.T) {
	t.Parallel()
	api := memory.New(time.Now)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	m := &machine.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: "cp-a", UID: "m-1"}}
	m.Spec.ProviderID = new("kubemark://a")
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "cp-a", Labels: map[string]string{machine.LabelControlPlane: ""}}}
	n.Spec.ProviderID = "kubemark://a"
	ok(api.Put(m, n))
	after := func(writes int) *machine.Machine {
		t.Helper()
		before := len(api.Writes())
		for range 3 {
			r := &runner.Runner{Function: Function, Cluster: api.As(Function.Name), Log: slog.New(slog.DiscardHandler)}
			_, err := r.Handle(t.Context(), snapshot.Request{})
			ok(err)
		}
		if n := len(api.Writes()) - before; n != writes {
			t.Errorf("%d writes, want %d", n, writes)
		}
		return memory.Get[*machine.Machine](api, machine.Namespace, "cp-a")
	}
	if m := after(2); !machine.OfControlPlane(m, nil) {
		t.Errorf("it is not known to be of the control plane: %v", m.Status.Conditions)
	}
	ok(memory.Patch(api, "", "cp-a", func(n *corev1.Node) { delete(n.Labels, machine.LabelControlPlane) }))
	if m := after(1); machine.OfControlPlane(m, nil) {
		t.Errorf("it is known to be of the control plane: %v", m.Status.Conditions)
	}
	ok(memory.Patch(api, "", "cp-a", func(n *corev1.Node) { n.Labels = map[string]string{machine.LabelControlPlane: ""} }))
	ok(memory.Patch(api, machine.Namespace, "cp-a", func(m *machine.Machine) { m.Labels = map[string]string{machine.LabelRole: "master"} }))
	after(0) // it says so itself
}
