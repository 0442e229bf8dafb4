// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// GPUs are those of any vendor, and what a set says are its own; shares of GPUs and what is none are not counted.
func TestGPUsOfAnyVendor(t *testing.T) {
	t.Parallel()
	own := &machine.MachineSet{}
	own.Annotations = map[string]string{machine.CapacityGPUType: "example.com/npu"}
	for _, tt := range []struct {
		name  string
		sets  []*machine.MachineSet
		has   map[corev1.ResourceName]int64
		want  corev1.ResourceName
		count int64
	}{
		{"none", nil, map[corev1.ResourceName]int64{"cpu": 8, "rdma/hca": 1000}, "", 0},
		{"driver that is not up", nil, map[corev1.ResourceName]int64{GPU: 0}, "", 0},
		{"of one vendor", nil, map[corev1.ResourceName]int64{GPU: 4, "nvidia.com/mig-1g.5gb": 28}, GPU, 4},
		{"of another", nil, map[corev1.ResourceName]int64{"amd.com/gpu": 8, GPU: 0}, "amd.com/gpu", 8},
		{"that a set names", []*machine.MachineSet{own}, map[corev1.ResourceName]int64{"example.com/npu": 2}, "example.com/npu", 2},
		{"that no set names", nil, map[corev1.ResourceName]int64{"example.com/npu": 2}, "", 0},
		{"as many of each", []*machine.MachineSet{own}, map[corev1.ResourceName]int64{"example.com/npu": 2, "amd.com/gpu": 2}, "amd.com/gpu", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			list := corev1.ResourceList{}
			for name, n := range tt.has {
				list[name] = *resource.NewQuantity(n, resource.DecimalSI)
			}
			if got, count := GPUsOf(tt.sets).In(list); got != tt.want || count != tt.count {
				t.Errorf("got %d of %q, want %d of %q", count, got, tt.count, tt.want)
			}
		})
	}
}
