// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/machine-functions/machine-functions/shared/machine"
)

func TestEquipped(t *testing.T) {
	t.Parallel()
	labeled := func(n *corev1.Node) { n.Labels[AcceleratorLabel] = "t4" }
	with := func(name corev1.ResourceName, amount string) func(*corev1.Node) {
		return func(n *corev1.Node) { n.Status.Allocatable[name] = resource.MustParse(amount) }
	}
	nvidia, amd := map[string]string{machine.CapacityGPUCount: "1"}, map[string]string{machine.AnnotationGPU: "2", machine.CapacityGPUType: "amd.com/gpu"}
	told := map[string]string{machine.AnnotationGPU: "2", machine.AnnotationGPUType: "amd.com/gpu"}
	tests := []struct {
		name        string
		annotations map[string]string
		node        Node
		want        bool
	}{
		{"nobody speaks of GPUs", nil, aNode("n", "4", "8Gi"), true},
		{"its set does", nvidia, aNode("n", "4", "8Gi"), false},
		{"the device plugin counts none", nvidia, aNode("n", "4", "8Gi", with(GPU, "0")), false},
		{"the device plugin is up", nvidia, aNode("n", "4", "8Gi", with(GPU, "1")), true},
		{"it offers parts of them", nvidia, aNode("n", "4", "8Gi", with("nvidia.com/mig-1g.5gb", "7")), true},
		{"that of another vendor", amd, aNode("n", "4", "8Gi", with(GPU, "1")), false},
		{"that of another vendor than its cloud tells", told, aNode("n", "4", "8Gi", with(GPU, "1")), false},
		{"the one that its cloud tells", told, aNode("n", "4", "8Gi", with("amd.com/gpu", "2")), true},
		{"the right one", amd, aNode("n", "4", "8Gi", with("amd.com/gpu", "2")), true},
		{"its label does", nil, aNode("n", "4", "8Gi", labeled), false},
		{"what every Node has is no device", nil, aNode("n", "4", "8Gi", labeled, with("hugepages-2Mi", "1Gi"), with("attachable-volumes.kubernetes.io/x", "9")), false},
		{"some device is there", nil, aNode("n", "4", "8Gi", labeled, with("habana.ai/gaudi", "8")), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Equipped(aSet(tt.annotations), tt.node.Node); got != tt.want {
				t.Errorf("got %v", got)
			}
			if len(tt.annotations) == 0 && Equipped(nil, tt.node.Node) != tt.want {
				t.Error("a Node of no set is seen otherwise")
			}
		})
	}
}
