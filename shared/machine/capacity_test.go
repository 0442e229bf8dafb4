// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"maps"
	"testing"
)

// What the old keys say is copied as it is meant; what cannot be, as a number that no Node can have, is left out, so that a set is not
// taken for one without memory or of negative size (SPEC B88).
func TestOldKeysOfCapacity(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ old, want map[string]string }{
		"all": {
			map[string]string{AnnotationVCPU: "4", AnnotationMemoryMb: "8192", AnnotationGPU: "2", AnnotationMaxPods: "110"},
			map[string]string{CapacityCPU: "4", CapacityMemory: "8589934592", CapacityGPUCount: "2", CapacityGPUType: ResourceGPU, CapacityMaxPods: "110"},
		},
		"none":                       {nil, map[string]string{}},
		"empty":                      {map[string]string{AnnotationVCPU: "", AnnotationMemoryMb: "", AnnotationGPU: "", AnnotationMaxPods: ""}, map[string]string{}},
		"GPUs of a kind":             {map[string]string{AnnotationGPU: "1", AnnotationGPUType: "amd.com/gpu"}, map[string]string{CapacityGPUCount: "1", CapacityGPUType: "amd.com/gpu"}},
		"no GPUs":                    {map[string]string{AnnotationGPU: "0", AnnotationGPUType: "amd.com/gpu"}, map[string]string{CapacityGPUCount: "0"}},
		"fewer than no GPUs":         {map[string]string{AnnotationGPU: "-1"}, map[string]string{}},
		"GPUs that are no number":    {map[string]string{AnnotationGPU: "one"}, map[string]string{}},
		"no memory":                  {map[string]string{AnnotationMemoryMb: "0"}, map[string]string{}},
		"less than no memory":        {map[string]string{AnnotationMemoryMb: "-1"}, map[string]string{}},
		"memory that is no number":   {map[string]string{AnnotationMemoryMb: "8Gi"}, map[string]string{}},
		"more memory than bytes":     {map[string]string{AnnotationMemoryMb: "8796093022208"}, map[string]string{}},
		"more memory than any count": {map[string]string{AnnotationMemoryMb: "99999999999999999999"}, map[string]string{}},
	} {
		if got := CopiedCapacity(c.old); !maps.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
