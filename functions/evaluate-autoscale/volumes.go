// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// facts is what places depend on beside Pods and Nodes.
func facts(s snapshot.Snapshot) *scheduling.Facts {
	return &scheduling.Facts{
		Namespaces: s.Namespaces, Claims: s.PersistentVolumeClaims, Volumes: s.PersistentVolumes, Classes: s.StorageClasses,
		CSINodes: s.CSINodes, Attachments: s.VolumeAttachments,
	}
}
