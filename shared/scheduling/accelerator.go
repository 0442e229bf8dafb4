// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// AcceleratorLabel on a Node says that it has GPUs, and of which type: for limits and for readiness (SPEC B67, C42).
const AcceleratorLabel = "cluster-api/accelerator"

// Equipped reports whether a Node offers the GPUs that it is to have, by its set (nil: it is of none) or by its label. A
// Node turns ready before its driver and the device plugin are up, which takes minutes. Whole GPUs, parts of them and
// shares have names of their own: anything of the vendor will do, and anything at all where only the label speaks.
func Equipped(set *machine.MachineSet, n *corev1.Node) bool {
	if set != nil {
		a := set.Annotations
		if _, has := quantity(cmp.Or(a[machine.CapacityGPUCount], a[machine.AnnotationGPU])); has {
			vendor, _, _ := strings.Cut(machine.GPUType(a), "/")
			return offersDevices(n, func(domain string) bool { return domain == vendor })
		}
	}
	return n.Labels[AcceleratorLabel] == "" || offersDevices(n, func(domain string) bool { return !strings.HasSuffix(domain, "kubernetes.io") })
}

// offersDevices reports whether a Node offers anything that a device plugin of some vendor brings.
func offersDevices(n *corev1.Node, of func(domain string) bool) bool {
	for name, q := range n.Status.Allocatable {
		domain, _, device := strings.Cut(string(name), "/")
		if device && of(domain) && q.Sign() > 0 {
			return true
		}
	}
	return false
}
