// SPDX-License-Identifier: Apache-2.0

package scheduling

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

const (
	blockDriver = "block.example.com"
	filesDriver = "files.example.com"
)

// storage makes classes, volumes, and claims in all states, in every namespace.
func (d *dice) storage() {
	d.classes()
	for _, n := range d.Nodes {
		d.csiNode(n)
	}
	for i := range 4 {
		d.Volumes = append(d.Volumes, d.volume(fmt.Sprintf("free-%d", i), i))
	}
	for _, ns := range d.Namespaces {
		for i := range 4 {
			d.claim(ns.Name, fmt.Sprintf("claim-%d", i))
		}
		d.oddClaim(ns.Name)
	}
	for _, v := range d.Volumes {
		if v.Spec.CSI != nil && v.Spec.ClaimRef != nil && d.odds(20) {
			d.Attachments = append(d.Attachments, &storagev1.VolumeAttachment{
				ObjectMeta: metav1.ObjectMeta{Name: "attach-" + v.Name},
				Spec: storagev1.VolumeAttachmentSpec{
					Attacher: v.Spec.CSI.Driver, NodeName: pick(d, d.Nodes...).Name, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &v.Name},
				},
			})
		}
	}
}

func (d *dice) classes() {
	wait, now := storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	class := func(name, provisioner string, mode *storagev1.VolumeBindingMode, topologies ...corev1.TopologySelectorTerm) {
		d.Classes = append(d.Classes, &storagev1.StorageClass{
			ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: mode, AllowedTopologies: topologies,
		})
	}
	in := func(key string, values ...string) corev1.TopologySelectorTerm {
		return corev1.TopologySelectorTerm{MatchLabelExpressions: []corev1.TopologySelectorLabelRequirement{{Key: key, Values: values}}}
	}
	class("wait", blockDriver, &wait)
	class("zonal", blockDriver, &wait, in(zone, "a", "b"))
	class("racked", filesDriver, &wait, in(rack, "1"), corev1.TopologySelectorTerm{}, in(zone, "c"))
	class("static", "kubernetes.io/no-provisioner", &wait)
	class("now", blockDriver, &now)
}

func (d *dice) csiNode(n *corev1.Node) {
	if d.odds(10) {
		return
	}
	c := &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: n.Name}}
	for _, name := range []string{blockDriver, filesDriver} {
		driver := storagev1.CSINodeDriver{Name: name, NodeID: n.Name}
		if d.odds(75) {
			driver.Allocatable = &storagev1.VolumeNodeResources{Count: new(pick(d, int32(1), 1, 1, 2, 3))}
		}
		c.Spec.Drivers = append(c.Spec.Drivers, driver)
	}
	d.CSINodes = append(d.CSINodes, c)
}

// volume returns a volume; no two have the same size, so that the smallest that will do is one.
func (d *dice) volume(name string, i int) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uidOf(name), Labels: map[string]string{"speed": pick(d, "fast", "slow")}}}
	v.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(fmt.Sprintf("%dGi", 1+i*3+d.IntN(3)))}
	v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce, corev1.ReadWriteMany}[:1+d.IntN(2)]
	v.Spec.StorageClassName = pick(d, "static", "static", "wait")
	v.Status.Phase = corev1.VolumeAvailable
	if d.odds(10) {
		v.Status.Phase = corev1.VolumeReleased
	}
	switch {
	case d.odds(15):
		v.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/data"}
	default:
		v.Spec.CSI = &corev1.CSIPersistentVolumeSource{Driver: pick(d, blockDriver, blockDriver, filesDriver), VolumeHandle: "handle-of-" + name}
	}
	if d.odds(80) {
		v.Labels[pick(d, zone, zone, corev1.LabelFailureDomainBetaZone)] = pick(d, "a", "b", "a__b", "a__b__c", "a__c", "a__")
	}
	if d.odds(8) {
		v.Labels[corev1.LabelTopologyRegion] = pick(d, "north", "north__south")
	}
	if d.odds(38) {
		key, values := zone, []string{"a", pick(d, "b", "c")}
		switch {
		case d.odds(15):
			key, values = host, []string{pick(d, d.Nodes...).Name}
		case d.odds(40):
			key, values = "disk", []string{"ssd"}
		}
		v.Spec.NodeAffinity = &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
			MatchExpressions: []corev1.NodeSelectorRequirement{{Key: key, Operator: corev1.NodeSelectorOpIn, Values: values}},
		}}}}
	}
	return v
}

// claim makes a claim as most are: bound to a volume of its own, or waiting for its first Pod.
func (d *dice) claim(namespace, name string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uidOf(namespace + "-" + name), Annotations: map[string]string{}}}
	c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{pick(d, corev1.ReadWriteOnce, corev1.ReadWriteOnce, corev1.ReadWriteMany)}
	if d.odds(30) {
		c.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	}
	c.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(pick(d, "1Gi", "2Gi", "5Gi", "9Gi"))}
	d.Claims = append(d.Claims, c)
	if d.odds(80) {
		v := d.volume("of-"+namespace+"-"+name, 3)
		v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name, UID: c.UID}
		v.Status.Phase = corev1.VolumeBound
		d.Volumes = append(d.Volumes, v)
		c.Spec.VolumeName, c.Spec.StorageClassName = v.Name, &v.Spec.StorageClassName
		c.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
		c.Status.Phase = corev1.ClaimBound
		return c
	}
	c.Spec.StorageClassName = new(pick(d, "wait", "zonal", "racked", "static"))
	c.Status.Phase = corev1.ClaimPending
	if d.odds(10) {
		c.Annotations["volume.kubernetes.io/selected-node"] = pick(d, d.Nodes...).Name
	}
	if d.odds(20) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"speed": "fast"}}
	}
	if d.odds(20) { // set aside for it
		d.Volumes[d.IntN(4)].Spec.ClaimRef = &corev1.ObjectReference{Namespace: namespace, Name: name}
	}
	return c
}

// oddClaim makes one that no Pod can use.
func (d *dice) oddClaim(namespace string) {
	c := d.claim(namespace, "odd")
	switch d.IntN(6) {
	case 0:
		c.Status.Phase = corev1.ClaimLost
	case 1:
		c.DeletionTimestamp = &metav1.Time{Time: epoch}
		c.Finalizers = []string{"kubernetes.io/pvc-protection"}
	case 2:
		delete(c.Annotations, "pv.kubernetes.io/bind-completed")
	case 3:
		c.Spec.VolumeName, c.Spec.StorageClassName = "", new("now")
	case 4:
		c.Spec.VolumeName, c.Spec.StorageClassName = "", nil
	case 5:
		c.Spec.VolumeName, c.Annotations["pv.kubernetes.io/bind-completed"] = "gone", "yes"
	}
}

// mounts gives a Pod volumes.
func (d *dice) mounts(p *corev1.Pod) {
	add := func(source corev1.VolumeSource) {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("v%d", len(p.Spec.Volumes)), VolumeSource: source})
	}
	for range 1 + d.IntN(2)*d.IntN(2) {
		name := fmt.Sprintf("claim-%d", d.IntN(4))
		switch d.IntN(100) {
		case 0:
			name = "missing"
		case 1:
			name = "odd"
		}
		add(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}})
	}
	if d.odds(75) {
		disk := fmt.Sprintf("disk-%d", d.IntN(2))
		switch d.IntN(10) {
		case 0, 1, 2, 3:
			add(corev1.VolumeSource{GCEPersistentDisk: &corev1.GCEPersistentDiskVolumeSource{PDName: disk, ReadOnly: d.odds(30)}})
		case 4:
			add(corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{IQN: disk, TargetPortal: "t", ReadOnly: d.odds(30)}})
		case 5, 6, 7:
			add(corev1.VolumeSource{RBD: &corev1.RBDVolumeSource{CephMonitors: some(d, "m1", "m2", "m3"), RBDPool: "pool", RBDImage: disk, ReadOnly: d.odds(30)}})
		case 8:
			add(corev1.VolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: disk}})
		case 9:
			add(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}})
		}
	}
	if d.odds(10) {
		d.ephemeral(p)
	}
}

// ephemeral gives a Pod a claim that is made from its own spec.
func (d *dice) ephemeral(p *corev1.Pod) {
	p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "own", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}})
	if d.odds(5) {
		return // not made yet
	}
	c := d.claim(p.Namespace, p.Name+"-own")
	yes := true
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: p.Name, UID: p.UID, Controller: &yes}}
}
