// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// volumes knows where the volumes of Pods can be used.
type volumes struct {
	claims  map[string]*corev1.PersistentVolumeClaim // by namespace/name
	volumes map[string]*corev1.PersistentVolume
	classes map[string]*storagev1.StorageClass
}

func newVolumes(s snapshot.Snapshot) volumes {
	v := volumes{map[string]*corev1.PersistentVolumeClaim{}, map[string]*corev1.PersistentVolume{}, map[string]*storagev1.StorageClass{}}
	for _, c := range s.PersistentVolumeClaims {
		v.claims[c.Namespace+"/"+c.Name] = c
	}
	for _, x := range s.PersistentVolumes {
		v.volumes[x.Name] = x
	}
	for _, c := range s.StorageClasses {
		v.classes[c.Name] = c
	}
	return v
}

// of is scheduling.Volumes: a claim that is bound ties its Pod to where the volume is, one that waits for its first
// consumer to where the class may make one.
func (v volumes) of(p *corev1.Pod) (on []*corev1.NodeSelector, why string) {
	for i := range p.Spec.Volumes {
		name := claimOf(p, &p.Spec.Volumes[i])
		if name == "" {
			continue
		}
		selector, why := v.claim(p.Namespace, name)
		if why != "" {
			return nil, why
		}
		if selector != nil {
			on = append(on, selector)
		}
	}
	return on, ""
}

// claimOf returns the name of the claim behind a volume, if there is one.
func claimOf(p *corev1.Pod, x *corev1.Volume) string {
	switch {
	case x.PersistentVolumeClaim != nil:
		return x.PersistentVolumeClaim.ClaimName
	case x.Ephemeral != nil:
		return p.Name + "-" + x.Name
	}
	return ""
}

func (v volumes) claim(namespace, name string) (*corev1.NodeSelector, string) {
	c := v.claims[namespace+"/"+name]
	if c == nil {
		return nil, fmt.Sprintf("persistentvolumeclaim %q not found", name)
	}
	if c.Spec.VolumeName != "" {
		x := v.volumes[c.Spec.VolumeName]
		switch {
		case x == nil:
			return nil, fmt.Sprintf("persistentvolume %q not found", c.Spec.VolumeName)
		case x.Spec.NodeAffinity == nil:
			return nil, ""
		}
		return x.Spec.NodeAffinity.Required, ""
	}
	var class *storagev1.StorageClass
	if c.Spec.StorageClassName != nil {
		class = v.classes[*c.Spec.StorageClassName]
	}
	if class == nil || class.VolumeBindingMode == nil || *class.VolumeBindingMode != storagev1.VolumeBindingWaitForFirstConsumer {
		return nil, "pod has unbound immediate PersistentVolumeClaims"
	}
	return allowed(class.AllowedTopologies), ""
}

// allowed turns the topologies of a class into a selector of Nodes.
func allowed(topologies []corev1.TopologySelectorTerm) *corev1.NodeSelector {
	if len(topologies) == 0 {
		return nil
	}
	s := &corev1.NodeSelector{}
	for _, t := range topologies {
		var term corev1.NodeSelectorTerm
		for _, e := range t.MatchLabelExpressions {
			term.MatchExpressions = append(term.MatchExpressions, corev1.NodeSelectorRequirement{Key: e.Key, Operator: corev1.NodeSelectorOpIn, Values: e.Values})
		}
		s.NodeSelectorTerms = append(s.NodeSelectorTerms, term)
	}
	return s
}
