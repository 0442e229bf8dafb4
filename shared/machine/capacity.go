// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"strconv"
)

// ResourceGPU is what sets with GPUs are thought to offer where nobody names another resource (SPEC B88).
const ResourceGPU = "nvidia.com/gpu"

// GPUType returns the resource that a set's Nodes offer their GPUs as, by its annotations: what a person says, else its cloud.
func GPUType(a map[string]string) string {
	return cmp.Or(a[CapacityGPUType], a[AnnotationGPUType], ResourceGPU)
}

// CopiedCapacity returns what the old keys among the annotations of a set say about capacity, under the new keys (SPEC B88).
// What cannot be read is left out.
func CopiedCapacity(a map[string]string) map[string]string {
	out := map[string]string{}
	put := func(key, value string) {
		if value != "" {
			out[key] = value
		}
	}
	put(CapacityCPU, a[AnnotationVCPU])
	if mb, err := strconv.ParseInt(a[AnnotationMemoryMb], 10, 64); err == nil && 0 < mb && mb < 1<<40 {
		put(CapacityMemory, strconv.FormatInt(mb<<20, 10))
	}
	if n, err := strconv.ParseInt(a[AnnotationGPU], 10, 64); err == nil && n >= 0 {
		put(CapacityGPUCount, a[AnnotationGPU])
		if n > 0 {
			put(CapacityGPUType, cmp.Or(a[AnnotationGPUType], ResourceGPU))
		}
	}
	put(CapacityMaxPods, a[AnnotationMaxPods])
	return out
}
