// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// facts is what places depend on beside Pods and Nodes.
func (sc *scan) facts() *scheduling.Facts {
	return &scheduling.Facts{
		Namespaces: sc.Namespaces, Claims: sc.PersistentVolumeClaims, Volumes: sc.PersistentVolumes, Classes: sc.StorageClasses,
		CSINodes: sc.CSINodes, Attachments: sc.VolumeAttachments, GPUs: sc.gpus,
	}
}
