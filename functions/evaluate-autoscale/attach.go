// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// attachPrefix names, with the driver behind it, the resource that limits on attached volumes are planned with.
const attachPrefix = "attachable-volumes-csi-"

// withAttachLimits returns a snapshot in which volumes that a driver attaches to so many a Node only are a resource:
// Nodes offer as many as their CSINode says, Pods ask for as many as they have claims. What is not limited on a Node has
// the largest limit known of the driver: the next Node of a set is like the others. A volume that two Pods of a Node
// share counts twice: rather a Node too many than a Pod without a place.
func withAttachLimits(s snapshot.Snapshot) snapshot.Snapshot {
	limits, most := map[string]map[string]int64{}, map[string]int64{}
	for _, c := range s.CSINodes {
		for _, d := range c.Spec.Drivers {
			if d.Allocatable == nil || d.Allocatable.Count == nil {
				continue
			}
			if limits[c.Name] == nil {
				limits[c.Name] = map[string]int64{}
			}
			limits[c.Name][d.Name] = int64(*d.Allocatable.Count)
			most[d.Name] = max(most[d.Name], int64(*d.Allocatable.Count))
		}
	}
	if len(most) == 0 {
		return s
	}
	v := newVolumes(s)
	s.Pods = slices.Clone(s.Pods)
	used := map[string]bool{}
	for i, p := range s.Pods {
		if asks := v.attached(p, most); len(asks) > 0 {
			s.Pods[i] = asking(p, asks)
			for driver := range asks {
				used[driver] = true
			}
		}
	}
	if len(used) == 0 {
		return s
	}
	s.Nodes = slices.Clone(s.Nodes)
	for i, n := range s.Nodes {
		offers := map[string]int64{}
		for driver := range used {
			offers[driver] = most[driver]
			if own, ok := limits[n.Name][driver]; ok {
				offers[driver] = own
			}
		}
		s.Nodes[i] = offering(n, offers)
	}
	return s
}

// attached counts the claims of a Pod by driver, of the drivers that are limited.
func (v volumes) attached(p *corev1.Pod, limited map[string]int64) map[string]int64 {
	var asks map[string]int64
	for i := range p.Spec.Volumes {
		name := claimOf(p, &p.Spec.Volumes[i])
		if name == "" {
			continue
		}
		if driver := v.driver(p.Namespace, name); limited[driver] > 0 {
			if asks == nil {
				asks = map[string]int64{}
			}
			asks[driver]++
		}
	}
	return asks
}

// driver returns who attaches the volume of a claim, or will.
func (v volumes) driver(namespace, name string) string {
	c := v.claims[namespace+"/"+name]
	if c == nil {
		return ""
	}
	if x := v.volumes[c.Spec.VolumeName]; x != nil {
		if x.Spec.CSI == nil {
			return ""
		}
		return x.Spec.CSI.Driver
	}
	if c.Spec.StorageClassName != nil && v.classes[*c.Spec.StorageClassName] != nil {
		return v.classes[*c.Spec.StorageClassName].Provisioner
	}
	return ""
}

func asking(p *corev1.Pod, asks map[string]int64) *corev1.Pod {
	if len(p.Spec.Containers) == 0 {
		return p
	}
	next := p.DeepCopy()
	r := &next.Spec.Containers[0].Resources
	r.Requests = with(r.Requests, asks)
	return next
}

func offering(n *corev1.Node, offers map[string]int64) *corev1.Node {
	next := *n
	next.Status.Allocatable = with(n.Status.Allocatable, offers)
	return &next
}

func with(list corev1.ResourceList, more map[string]int64) corev1.ResourceList {
	out := maps.Clone(list)
	if out == nil {
		out = corev1.ResourceList{}
	}
	for driver, n := range more {
		out[corev1.ResourceName(attachPrefix+driver)] = *resource.NewQuantity(n, resource.DecimalSI)
	}
	return out
}

// withVolumes gives a template what the Nodes of the world offer of every driver, if its set says nothing of it.
func (sc *scan) withVolumes(n *corev1.Node) {
	most := map[string]int64{}
	for _, x := range sc.Nodes {
		for name, q := range x.Status.Allocatable {
			if driver, ok := driverOf(name); ok {
				if _, said := n.Status.Allocatable[name]; !said {
					most[driver] = max(most[driver], q.Value())
				}
			}
		}
	}
	if len(most) > 0 {
		n.Status.Allocatable = with(n.Status.Allocatable, most)
	}
}

func driverOf(name corev1.ResourceName) (string, bool) {
	if len(name) <= len(attachPrefix) || name[:len(attachPrefix)] != attachPrefix {
		return "", false
	}
	return string(name[len(attachPrefix):]), true
}
