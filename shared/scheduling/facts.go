// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Facts is what the scheduler's answer depends on beside Pods and Nodes. A World without Facts knows of no volumes and
// takes every namespace for one that a selector may mean.
type Facts struct {
	Namespaces  []*corev1.Namespace
	Claims      []*corev1.PersistentVolumeClaim
	Volumes     []*corev1.PersistentVolume
	Classes     []*storagev1.StorageClass
	CSINodes    []*storagev1.CSINode
	Attachments []*storagev1.VolumeAttachment
	GPUs        GPUs                  // nil: those of the vendors that are known
	Coming      []corev1.ResourceList // what new Nodes would have to give
}

func (f *Facts) coming() []corev1.ResourceList {
	if f == nil {
		return nil
	}
	return f.Coming
}

func (f *Facts) gpus() GPUs {
	if f == nil || f.GPUs == nil {
		return vendors
	}
	return f.GPUs
}

// spaces is the labels of namespaces by name. Nil: they are not known.
type spaces map[string]labels.Set

func (f *Facts) spaces() spaces {
	if f == nil || f.Namespaces == nil {
		return nil
	}
	s := spaces{}
	for _, n := range f.Namespaces {
		s[n.Name] = n.Labels
	}
	return s
}

// SelectsNamespaces reports whether a Pod has a required rule about Pods of namespaces that it selects by their labels:
// then Facts should have all Namespaces.
func SelectsNamespaces(p *corev1.Pod) bool {
	a := p.Spec.Affinity
	if a == nil {
		return false
	}
	terms := apartTerms(p)
	if a.PodAffinity != nil {
		terms = slices.Concat(terms, a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution)
	}
	return slices.ContainsFunc(terms, func(t corev1.PodAffinityTerm) bool {
		return t.NamespaceSelector != nil && !selectorOf(t.NamespaceSelector).Empty()
	})
}

// selected returns the names of the namespaces that a selector means.
func (s spaces) selected(selector labels.Selector) (names []string) {
	for name, set := range s {
		if selector.Matches(set) {
			names = append(names, name)
		}
	}
	return names
}

// storage is the facts about volumes, for looking up.
type storage struct {
	claims   map[string]*corev1.PersistentVolumeClaim // by namespace/name
	volumes  map[string]*corev1.PersistentVolume
	byClass  map[string][]*corev1.PersistentVolume // that no claim has, sorted by name
	reserved map[string][]*corev1.PersistentVolume // by claim that is not bound; sorted by name
	classes  map[string]*storagev1.StorageClass
	limits   map[string]map[string]int64  // by node, by CSI driver: volumes that can be attached
	attached map[string]map[string]string // by node: the driver of each volume that is attached
	limited  map[string]bool              // drivers that have a limit anywhere
}

func (f *Facts) storage() *storage {
	if f == nil {
		return nil
	}
	st := &storage{
		claims: map[string]*corev1.PersistentVolumeClaim{}, volumes: map[string]*corev1.PersistentVolume{},
		byClass: map[string][]*corev1.PersistentVolume{}, reserved: map[string][]*corev1.PersistentVolume{}, classes: map[string]*storagev1.StorageClass{},
		limits: map[string]map[string]int64{}, attached: map[string]map[string]string{}, limited: map[string]bool{},
	}
	for _, c := range f.Claims {
		st.claims[c.Namespace+"/"+c.Name] = c
	}
	for _, v := range f.Volumes {
		st.offer(v)
	}
	for _, lists := range []map[string][]*corev1.PersistentVolume{st.byClass, st.reserved} {
		for _, list := range lists {
			slices.SortFunc(list, func(a, b *corev1.PersistentVolume) int { return cmp.Compare(a.Name, b.Name) })
		}
	}
	for _, c := range f.Classes {
		st.classes[c.Name] = c
	}
	for _, c := range f.CSINodes {
		st.limits[c.Name] = attachLimits(c)
		for driver := range st.limits[c.Name] {
			st.limited[driver] = true
		}
	}
	for _, a := range f.Attachments {
		st.attach(a)
	}
	return st
}

// offer takes a volume for one that a claim may be bound to, unless one is already.
func (st *storage) offer(v *corev1.PersistentVolume) {
	st.volumes[v.Name] = v
	if ref := v.Spec.ClaimRef; ref != nil {
		key := ref.Namespace + "/" + ref.Name
		if claim := st.claims[key]; claim != nil && claim.Spec.VolumeName == "" {
			st.reserved[key] = append(st.reserved[key], v)
		}
		return
	}
	class := className(v.Annotations, v.Spec.StorageClassName)
	st.byClass[class] = append(st.byClass[class], v)
}

// className is the class of a claim or a volume: the annotation of old comes before the field.
func className(annotations map[string]string, field string) string {
	if name, ok := annotations[corev1.BetaStorageClassAnnotation]; ok {
		return name
	}
	return field
}

func attachLimits(c *storagev1.CSINode) map[string]int64 {
	limits := map[string]int64{}
	for _, d := range c.Spec.Drivers {
		if d.Allocatable != nil && d.Allocatable.Count != nil {
			limits[d.Name] = int64(*d.Allocatable.Count)
		}
	}
	return limits
}

func (st *storage) attach(a *storagev1.VolumeAttachment) {
	if a.Spec.Attacher == "" || a.Spec.Source.PersistentVolumeName == nil {
		return
	}
	v := st.volumes[*a.Spec.Source.PersistentVolumeName]
	if v == nil || v.Spec.CSI == nil {
		return
	}
	if st.attached[a.Spec.NodeName] == nil {
		st.attached[a.Spec.NodeName] = map[string]string{}
	}
	st.attached[a.Spec.NodeName][handleOf(a.Spec.Attacher, v.Spec.CSI.VolumeHandle)] = a.Spec.Attacher
}

// handleOf names a volume uniquely.
func handleOf(driver, handle string) string { return driver + "/" + handle }
