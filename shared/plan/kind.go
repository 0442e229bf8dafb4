// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"reflect"
	"slices"
	"strings"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// Object is a Kubernetes object of one of the kinds below.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind names a kind of object, as in manifests. Where that word is taken by another group, or the kind is not in the
// table below, the name has version and group as well: "MachineHealthCheck.v1alpha1.healthchecking.openshift.io".
type Kind string

// Resource says where the objects of a Kind are served.
type Resource struct {
	Kind       Kind
	Group      schema.GroupVersion
	Plural     string
	Namespaced bool
	New        func() Object
}

// resources is the closed table of kinds that functions read or write. An entry here, a field in snapshot.Snapshot
// and a case in its Add make a new kind known.
var resources = []Resource{
	{"Machine", machineGroup, "machines", true, func() Object { return &machine.Machine{} }},
	{"MachineSet", machineGroup, "machinesets", true, func() Object { return &machine.MachineSet{} }},
	{"MachineHealthCheck", machineGroup, "machinehealthchecks", true, func() Object { return &machine.MachineHealthCheck{} }},
	{LegacyHealthCheck, schema.GroupVersion{Group: machine.LegacyGroup, Version: "v1alpha1"}, "legacymachinehealthchecks", true, func() Object { return &machine.LegacyHealthCheck{} }},
	{"MachineAutoscaler", schema.GroupVersion{Group: "autoscaling.openshift.io", Version: "v1beta1"}, "machineautoscalers", true, func() Object { return &autoscaling.MachineAutoscaler{} }},
	{"ClusterAutoscaler", schema.GroupVersion{Group: "autoscaling.openshift.io", Version: "v1"}, "clusterautoscalers", false, func() Object { return &autoscaling.ClusterAutoscaler{} }},
	{"Infrastructure", configv1.GroupVersion, "infrastructures", false, func() Object { return &configv1.Infrastructure{} }},
	{"Node", corev1.SchemeGroupVersion, "nodes", false, func() Object { return &corev1.Node{} }},
	{"Namespace", corev1.SchemeGroupVersion, "namespaces", false, func() Object { return &corev1.Namespace{} }},
	{"Pod", corev1.SchemeGroupVersion, "pods", true, func() Object { return &corev1.Pod{} }},
	{"ConfigMap", corev1.SchemeGroupVersion, "configmaps", true, func() Object { return &corev1.ConfigMap{} }},
	{"PodTemplate", corev1.SchemeGroupVersion, "podtemplates", true, func() Object { return &corev1.PodTemplate{} }},
	{"ResourceQuota", corev1.SchemeGroupVersion, "resourcequotas", true, func() Object { return &corev1.ResourceQuota{} }},
	{"PersistentVolume", corev1.SchemeGroupVersion, "persistentvolumes", false, func() Object { return &corev1.PersistentVolume{} }},
	{"PersistentVolumeClaim", corev1.SchemeGroupVersion, "persistentvolumeclaims", true, func() Object { return &corev1.PersistentVolumeClaim{} }},
	{"ReplicationController", corev1.SchemeGroupVersion, "replicationcontrollers", true, func() Object { return &corev1.ReplicationController{} }},
	{"DaemonSet", appsv1.SchemeGroupVersion, "daemonsets", true, func() Object { return &appsv1.DaemonSet{} }},
	{"Deployment", appsv1.SchemeGroupVersion, "deployments", true, func() Object { return &appsv1.Deployment{} }},
	{"ReplicaSet", appsv1.SchemeGroupVersion, "replicasets", true, func() Object { return &appsv1.ReplicaSet{} }},
	{"StatefulSet", appsv1.SchemeGroupVersion, "statefulsets", true, func() Object { return &appsv1.StatefulSet{} }},
	{"Job", batchv1.SchemeGroupVersion, "jobs", true, func() Object { return &batchv1.Job{} }},
	{"PodDisruptionBudget", policyv1.SchemeGroupVersion, "poddisruptionbudgets", true, func() Object { return &policyv1.PodDisruptionBudget{} }},
	{"CertificateSigningRequest", certificatesv1.SchemeGroupVersion, "certificatesigningrequests", false, func() Object { return &certificatesv1.CertificateSigningRequest{} }},
	{"PriorityClass", schedulingv1.SchemeGroupVersion, "priorityclasses", false, func() Object { return &schedulingv1.PriorityClass{} }},
	{"StorageClass", storagev1.SchemeGroupVersion, "storageclasses", false, func() Object { return &storagev1.StorageClass{} }},
	{"CSINode", storagev1.SchemeGroupVersion, "csinodes", false, func() Object { return &storagev1.CSINode{} }},
	{"VolumeAttachment", storagev1.SchemeGroupVersion, "volumeattachments", false, func() Object { return &storagev1.VolumeAttachment{} }},
}

// LegacyHealthCheck is the MachineHealthCheck of SPEC B61.
const LegacyHealthCheck Kind = "MachineHealthCheck.v1alpha1." + machine.LegacyGroup

var machineGroup = schema.GroupVersion{Group: "machine.openshift.io", Version: "v1beta1"}

// ResourceOf returns where objects of kind k are served, and whether k is known. Foreign kinds are.
func ResourceOf(k Kind) (Resource, bool) {
	i := slices.IndexFunc(resources, func(r Resource) bool { return r.Kind == k })
	if i < 0 {
		return foreign(k)
	}
	return resources[i], true
}

// GVK returns how manifests name the kind.
func (r Resource) GVK() schema.GroupVersionKind {
	word, _, _ := strings.Cut(string(r.Kind), ".")
	return r.Group.WithKind(word)
}

// Resources returns all kinds that functions read or write, but for the foreign ones.
func Resources() []Resource { return slices.Clone(resources) }

// kinds maps the Go type of an object to its kind.
var kinds = func() map[reflect.Type]Kind {
	m := make(map[reflect.Type]Kind, len(resources))
	for _, r := range resources {
		m[reflect.TypeOf(r.New())] = r.Kind
	}
	return m
}()

// KindOf returns the kind of o, or "" for a type that is not known. It works for nil pointers too.
func KindOf(o Object) Kind {
	if u, ok := o.(*unstructured.Unstructured); ok && u != nil {
		k, _ := KindFor(u.GroupVersionKind())
		return k
	}
	return kinds[reflect.TypeOf(o)]
}

// Name returns "kind/name" in lower case, as plans, logs and errors show it. The namespace stands between the two
// unless it is the one where Machines live.
func Name(k Kind, namespace, name string) string {
	parts := []string{strings.ToLower(string(k)), name}
	if namespace != "" && namespace != machine.Namespace {
		parts = slices.Insert(parts, 1, namespace)
	}
	return strings.Join(parts, "/")
}

// NameOf returns the Name of o.
func NameOf(o Object) string { return Name(KindOf(o), o.GetNamespace(), o.GetName()) }
