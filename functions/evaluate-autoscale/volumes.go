// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// facts is what places depend on beside Pods and Nodes.
func (sc *scan) facts() *scheduling.Facts {
	var coming []corev1.ResourceList
	for _, g := range sc.groups {
		if g.known {
			coming = append(coming, g.template.Status.Allocatable)
		}
	}
	return &scheduling.Facts{
		Namespaces: sc.Namespaces, Claims: sc.PersistentVolumeClaims, Volumes: sc.PersistentVolumes, Classes: sc.StorageClasses,
		CSINodes: sc.CSINodes, Attachments: sc.VolumeAttachments, GPUs: sc.gpus, Coming: coming,
	}
}

// unclaimed returns the spec of Pods that do not exist yet without the volumes whose claims are made with each of them: nobody has made these
// claims, and their volumes are made where a Pod goes.
func unclaimed(spec corev1.PodSpec) corev1.PodSpec {
	spec.Volumes = slices.DeleteFunc(slices.Clone(spec.Volumes), func(v corev1.Volume) bool { return v.Ephemeral != nil })
	return spec
}
