// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// disk is a volume named in a Pod's spec that two Pods of one Node cannot both have, unless both only read it.
type disk struct {
	kind     string
	name     string   // of the disk
	monitors []string // of Ceph: two volumes are the same if they share one
	reads    bool
}

func disksOf(p *corev1.Pod) (all []disk) {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		switch {
		case v.GCEPersistentDisk != nil:
			all = append(all, disk{kind: "gce", name: v.GCEPersistentDisk.PDName, reads: v.GCEPersistentDisk.ReadOnly})
		case v.AWSElasticBlockStore != nil:
			all = append(all, disk{kind: "aws", name: v.AWSElasticBlockStore.VolumeID})
		case v.ISCSI != nil:
			all = append(all, disk{kind: "iscsi", name: v.ISCSI.IQN, reads: v.ISCSI.ReadOnly})
		case v.RBD != nil:
			all = append(all, disk{kind: "rbd", name: v.RBD.RBDPool + "/" + v.RBD.RBDImage, monitors: v.RBD.CephMonitors, reads: v.RBD.ReadOnly})
		}
	}
	return all
}

// collide reports whether two lists of disks cannot be on one Node.
func collide(a, b []disk) bool {
	return slices.ContainsFunc(a, func(x disk) bool {
		return slices.ContainsFunc(b, func(y disk) bool {
			return x.kind == y.kind && x.name == y.name && (!x.reads || !y.reads) &&
				(x.kind != "rbd" || slices.ContainsFunc(x.monitors, func(m string) bool { return slices.Contains(y.monitors, m) }))
		})
	})
}
