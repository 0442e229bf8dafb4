// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"testing"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider/kubemark"
)

// linked returns a Machine of bare metal whose host worker-2 runs, with that host.
func linked() (machine.Machine, metal3v1alpha1.BareMetalHost) {
	id := "baremetalhost:///machines/worker-2/host-uid"
	m := machine.Machine{ObjectMeta: metav1.ObjectMeta{
		Name: "set-x2x7k", Namespace: "machines", UID: "m-1",
		Labels:      map[string]string{machine.LabelMachineSet: "set", machine.LabelRole: "worker"},
		Annotations: map[string]string{machine.AnnotationBareMetalHost: "machines/worker-2", machine.AnnotationInstanceState: "provisioning"},
	}}
	m.Spec.ProviderID = &id
	m.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: "192.0.2.1"}, {Type: corev1.NodeHostName, Address: "worker-2.lab"},
	}
	var h metal3v1alpha1.BareMetalHost
	h.Namespace, h.Name, h.Spec.Online, h.Spec.BMC.Address = "machines", "worker-2", true, "redfish://192.0.2.99"
	h.Spec.ConsumerRef = &corev1.ObjectReference{Kind: "Machine", Name: m.Name}
	h.Status.Provisioning.State, h.Status.PoweredOn = metal3v1alpha1.StateProvisioned, true
	h.Status.HardwareDetails = &metal3v1alpha1.HardwareDetails{CPU: metal3v1alpha1.CPU{Count: 104}, RAMMebibytes: 1 << 10}
	return m, h
}

func worldOf(m machine.Machine, h metal3v1alpha1.BareMetalHost, nodes ...corev1.Node) world {
	return world{machines: []machine.Machine{m}, hosts: map[string]metal3v1alpha1.BareMetalHost{h.Namespace + "/" + h.Name: h}, nodes: nodes}
}

// A host's kubelet registers under the host's own name, as big as the host, without a provider id (S61, E34).
func TestKubeletOfAHostRegisters(t *testing.T) {
	t.Parallel()
	m, h := linked()
	moves := worldOf(m, h).moves()
	if len(moves) != 1 || moves[0].node.UID != "" {
		t.Fatalf("moves %+v", moves)
	}
	n := moves[0].node
	cpu, memory := n.Status.Capacity.Cpu().Value(), n.Status.Capacity.Memory().Value()
	if n.Name != "worker-2.lab" || n.Spec.ProviderID != "" || cpu != 104 || memory != 1<<30 || n.Labels["node-role.kubernetes.io/worker"] != "" {
		t.Errorf("registered %+v", n)
	}
	if again := worldOf(m, h, *n).moves(); len(again) != 0 {
		t.Errorf("a kubelet that registered does it again: %+v", again)
	}
}

// Every other instance's kubelet knows its provider id, and is as big as its set says.
func TestKubeletOfAnInstanceRegisters(t *testing.T) {
	t.Parallel()
	m, _ := linked()
	id := "openstack:///i-1"
	m.Spec.ProviderID, m.Annotations = &id, map[string]string{machine.AnnotationInstanceState: "ACTIVE"}
	m.Labels[machine.LabelZone] = "nova"
	w := world{machines: []machine.Machine{m}}
	for vcpu, want := range map[string]int64{"": 4, "8": 8} {
		set := machine.MachineSet{}
		set.Annotations = map[string]string{machine.AnnotationVCPU: vcpu}
		w.sets = map[string]machine.MachineSet{"set": set}
		n := w.newNode(&m)
		if n.Spec.ProviderID != id || n.Status.Capacity.Cpu().Value() != want || n.Labels[corev1.LabelTopologyZone] != "nova" {
			t.Errorf("with %q: %+v", vcpu, n)
		}
	}
	if moves := w.moves(); len(moves) != 1 {
		t.Errorf("moves %+v", moves)
	}
}

// A kubelet lives as long as its instance, and says so when it is shut down (S63).
func TestKubeletFollowsItsInstance(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*machine.Machine, *metal3v1alpha1.BareMetalHost)
		want   kubemark.Kubelet
	}{
		{"it runs", func(*machine.Machine, *metal3v1alpha1.BareMetalHost) {}, kubemark.KubeletReady},
		{"it is written", func(_ *machine.Machine, h *metal3v1alpha1.BareMetalHost) {
			h.Status.Provisioning.State = metal3v1alpha1.StateProvisioning
		}, kubemark.KubeletStopped},
		{"it is off", func(_ *machine.Machine, h *metal3v1alpha1.BareMetalHost) { h.Status.PoweredOn = false }, kubemark.KubeletStopped},
		{"it is cleaned", func(_ *machine.Machine, h *metal3v1alpha1.BareMetalHost) {
			h.Status.Provisioning.State, h.Spec.Online, h.Status.PoweredOn = metal3v1alpha1.StateDeprovisioning, false, false
		}, kubemark.KubeletUnready},
		{"it is drained and will go", func(m *machine.Machine, _ *metal3v1alpha1.BareMetalHost) {
			now := metav1.Now()
			m.DeletionTimestamp = &now
			m.Status.Conditions = []machine.Condition{machine.True(machine.ConditionDrained, "", "")}
		}, kubemark.KubeletUnready},
		{"an installer's host has no power that anybody knows of", func(_ *machine.Machine, h *metal3v1alpha1.BareMetalHost) {
			h.Spec.BMC.Address, h.Status.PoweredOn, h.Status.Provisioning.State = "", false, metal3v1alpha1.StateUnmanaged
		}, kubemark.KubeletReady},
	}
	for _, tt := range tests {
		m, h := linked()
		n := *worldOf(m, h).newNode(&m)
		n.UID = "n-1"
		tt.change(&m, &h)
		if got := worldOf(m, h).kubelet(&m); got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.want)
		}
		if moves := worldOf(m, h, n).moves(); (len(moves) == 0) != (tt.want == kubemark.KubeletReady) {
			t.Errorf("%s: %+v", tt.name, moves)
		}
	}
}

// What nobody registered is nobody's: a Node of the same name is left alone, a Node that somebody deleted stays away, and
// one whose Machine is gone is not kept alive.
func TestKubeletsAreTheirNodesOwn(t *testing.T) {
	t.Parallel()
	m, h := linked()
	foreign := corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "worker-2.lab", UID: "foreign"}}
	if moves := worldOf(m, h, foreign).moves(); len(moves) != 0 {
		t.Errorf("a foreign Node is touched: %+v", moves)
	}
	n := *worldOf(m, h).newNode(&m)
	n.UID = "n-1"
	if moves := (world{nodes: []corev1.Node{foreign, n}}).moves(); len(moves) != 1 || moves[0].kubelet != kubemark.KubeletStopped || moves[0].node.UID != "n-1" {
		t.Errorf("without its Machine: %+v", moves)
	}
	m.Status.NodeRef = &corev1.ObjectReference{Name: "worker-2.lab"}
	if moves := worldOf(m, h).moves(); len(moves) != 0 {
		t.Errorf("a deleted Node comes back: %+v", moves)
	}
	m.Annotations[machine.AnnotationPoweredOff] = ""
	if moves := worldOf(m, h).moves(); len(moves) != 1 || moves[0].node.UID != "" {
		t.Errorf("a kubelet that starts again does not register: %+v", moves)
	}
}
