// SPDX-License-Identifier: Apache-2.0

package simulator

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	metal3v1alpha1 "github.com/metal3-io/baremetal-operator/apis/metal3.io/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider/kubemark"
)

const (
	annotationMachineUID = "machine-functions.dev/machine-uid" // whose kubelet registered the Node
	defaultMaxPods       = "250"
)

// active are the clouds' words for an instance that runs, in small letters.
var active = []string{"active", "running", "poweredon", "provisioned", "externally provisioned", "unmanaged", "up"}

// moves returns what has to change, in the order of the Machines. A kubelet registers when its instance starts: a Node that
// somebody deleted stays away, unless the instance was off since. Nodes that it did not register are not its own, whatever they are called.
func (w world) moves() []move {
	var all []move
	own, taken := map[string]*corev1.Node{}, map[string]bool{}
	for i := range w.nodes {
		n := &w.nodes[i]
		taken[n.Name] = true
		if uid := n.Annotations[annotationMachineUID]; uid != "" {
			own[uid] = n
		}
	}
	for i := range w.machines {
		m := &w.machines[i]
		n, registered := own[string(m.UID)]
		delete(own, string(m.UID))
		want := w.kubelet(m)
		switch {
		case registered && kubeletOf(n) != want:
			all = append(all, move{n, want})
		case !registered && want == kubemark.KubeletReady && (m.Status.NodeRef == nil || machine.Restarting(m)) && len(m.Status.Addresses) > 0:
			if n := w.newNode(m); !taken[n.Name] {
				taken[n.Name] = true
				all = append(all, move{n, want})
			}
		}
	}
	for i := range w.nodes { // the rest have no Machine any more
		n := &w.nodes[i]
		if own[n.Annotations[annotationMachineUID]] == n && kubeletOf(n) != kubemark.KubeletStopped {
			all = append(all, move{n, kubemark.KubeletStopped})
		}
	}
	return all
}

func kubeletOf(n *corev1.Node) kubemark.Kubelet {
	return kubemark.Kubelet(cmp.Or(n.Labels[labelKubelet], string(kubemark.KubeletReady)))
}

// kubelet returns what the kubelet of m's instance does: it reports that it is not ready while the instance is shut down,
// as kubelets do that shut down gracefully, and nothing once it is off.
func (w world) kubelet(m *machine.Machine) kubemark.Kubelet {
	going := m.DeletionTimestamp != nil && machine.Drained(m) && len(m.Spec.LifecycleHooks.PreTerminate) == 0
	state := m.Annotations[machine.AnnotationInstanceState]
	if h := w.host(m); h != nil {
		state = string(h.Status.Provisioning.State)
		unpowered := h.Spec.BMC.Address != "" && !h.Status.PoweredOn // what has no BMC tells nothing of its power
		going = going || !h.Spec.Online
		if unpowered && state != string(metal3v1alpha1.StateDeprovisioning) {
			return kubemark.KubeletStopped
		}
	}
	switch {
	case going:
		return kubemark.KubeletUnready
	case slices.Contains(active, strings.ToLower(state)):
		return kubemark.KubeletReady
	}
	return kubemark.KubeletStopped
}

// host returns the host that m has claimed, or nil.
func (w world) host(m *machine.Machine) *metal3v1alpha1.BareMetalHost {
	h, ok := w.hosts[m.Annotations[machine.AnnotationBareMetalHost]]
	if !ok || h.Spec.ConsumerRef == nil || h.Spec.ConsumerRef.Name != m.Name {
		return nil
	}
	return &h
}

// newNode returns the Node that the kubelet of m's instance registers: under the instance's own name (SPEC S61, S77). Of a
// host no kubelet knows the provider id (E34).
func (w world) newNode(m *machine.Machine) *corev1.Node {
	name := cmp.Or(address(m, corev1.NodeInternalDNS), address(m, corev1.NodeHostName), m.Name)
	providerID := machine.ProviderID(m)
	if machine.BareMetalHost(providerID) != "" {
		providerID = ""
	}
	capacity, arch := w.capacity(m)
	labels := map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: arch,
		"node-role.kubernetes.io/" + cmp.Or(m.Labels[machine.LabelRole], "worker"): "",
	}
	for label, of := range map[string]string{
		corev1.LabelInstanceTypeStable: machine.LabelInstanceType,
		corev1.LabelTopologyRegion:     machine.LabelRegion, corev1.LabelTopologyZone: machine.LabelZone,
	} {
		if v := m.Labels[of]; v != "" {
			labels[label] = v
		}
	}
	return &corev1.Node{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Labels: labels, Annotations: map[string]string{annotationFake: "fake", annotationMachineUID: string(m.UID)},
		},
		Spec: corev1.NodeSpec{ProviderID: providerID},
		Status: corev1.NodeStatus{
			Capacity: capacity, Allocatable: capacity, Addresses: slices.Clone(m.Status.Addresses),
			NodeInfo: corev1.NodeSystemInfo{Architecture: arch, OperatingSystem: "linux"},
		},
	}
}

func address(m *machine.Machine, of corev1.NodeAddressType) string {
	i := slices.IndexFunc(m.Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == of })
	if i < 0 {
		return ""
	}
	return m.Status.Addresses[i].Address
}

// capacity returns how big m's instance is: a host as it was inspected, any other as its set is annotated, else 4 CPUs
// and 16 GiB.
func (w world) capacity(m *machine.Machine) (corev1.ResourceList, string) {
	a := w.sets[m.Labels[machine.LabelMachineSet]].Annotations
	cpu, memory, pods := cmp.Or(a[machine.AnnotationVCPU], "4"), int64(16<<10), cmp.Or(a[machine.AnnotationMaxPods], defaultMaxPods)
	if n, err := strconv.ParseInt(a[machine.AnnotationMemoryMb], 10, 64); err == nil {
		memory = n
	}
	if h := w.host(m); h != nil && h.Status.HardwareDetails != nil {
		if d := h.Status.HardwareDetails; d.CPU.Count > 0 && d.RAMMebibytes > 0 {
			cpu, memory = strconv.Itoa(d.CPU.Count), int64(d.RAMMebibytes)
		}
	}
	all := corev1.ResourceList{corev1.ResourceMemory: *resource.NewQuantity(memory<<20, resource.BinarySI)}
	for name, value := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourcePods: pods, gpu: a[machine.AnnotationGPU]} {
		if q, err := resource.ParseQuantity(value); err == nil && !q.IsZero() {
			all[name] = q
		}
	}
	return all, cmp.Or(a[machine.AnnotationArch], "amd64")
}
