// SPDX-License-Identifier: Apache-2.0

package snapshot

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	configv1 "github.com/openshift/api/config/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// Add puts objects into s, replacing those of the same kind and name. It is for whoever builds a snapshot; an object
// of a kind that no function knows is reported as false.
func (s *Snapshot) Add(objects ...plan.Object) bool {
	known := true
	for _, o := range objects {
		known = s.add(o) && known
	}
	return known
}

func (s *Snapshot) add(o plan.Object) bool { //nolint:gocyclo // one line per kind
	switch o := o.(type) {
	case *machine.Machine:
		put(&s.Machines, o)
	case *machine.MachineSet:
		put(&s.MachineSets, o)
	case *machine.MachineHealthCheck:
		put(&s.HealthChecks, o)
	case *machine.LegacyHealthCheck:
		put(&s.LegacyHealthChecks, o)
	case *autoscaling.MachineAutoscaler:
		put(&s.MachineAutoscalers, o)
	case *autoscaling.ClusterAutoscaler:
		put(&s.ClusterAutoscalers, o)
	case *configv1.Infrastructure:
		put(&s.Infrastructures, o)
	case *corev1.Node:
		put(&s.Nodes, o)
	case *corev1.Namespace:
		put(&s.Namespaces, o)
	case *corev1.Pod:
		put(&s.Pods, o)
	case *corev1.ConfigMap:
		put(&s.ConfigMaps, o)
	case *corev1.PersistentVolume:
		put(&s.PersistentVolumes, o)
	case *corev1.PersistentVolumeClaim:
		put(&s.PersistentVolumeClaims, o)
	case *corev1.ReplicationController:
		put(&s.ReplicationControllers, o)
	case *corev1.PodTemplate:
		put(&s.PodTemplates, o)
	case *corev1.ResourceQuota:
		put(&s.ResourceQuotas, o)
	case *appsv1.Deployment:
		put(&s.Deployments, o)
	case *appsv1.DaemonSet:
		put(&s.DaemonSets, o)
	case *appsv1.ReplicaSet:
		put(&s.ReplicaSets, o)
	case *appsv1.StatefulSet:
		put(&s.StatefulSets, o)
	case *batchv1.Job:
		put(&s.Jobs, o)
	case *policyv1.PodDisruptionBudget:
		put(&s.DisruptionBudgets, o)
	case *certificatesv1.CertificateSigningRequest:
		put(&s.SigningRequests, o)
	case *schedulingv1.PriorityClass:
		put(&s.PriorityClasses, o)
	case *storagev1.StorageClass:
		put(&s.StorageClasses, o)
	case *storagev1.CSINode:
		put(&s.CSINodes, o)
	case *storagev1.VolumeAttachment:
		put(&s.VolumeAttachments, o)
	case *unstructured.Unstructured:
		return putForeign(&s.Foreign, o)
	default:
		return false
	}
	return true
}

// Objects yields every object of s, kind by kind, sorted within a kind.
func (s Snapshot) Objects() iter.Seq[plan.Object] {
	return func(yield func(plan.Object) bool) {
		for _, l := range s.lists() {
			if !l.each(yield) {
				return
			}
		}
	}
}

// Clone returns a copy of s that Add and Drop change without changing s. The objects themselves are shared.
func (s Snapshot) Clone() Snapshot {
	for _, l := range s.lists() {
		l.clone()
	}
	return s
}

// Drop removes the objects that q selects, because q is answered anew. The list of their kind is a new one from then on: what is
// added to it is in no copy of s.
func (s *Snapshot) Drop(q Query) {
	all := s.lists()
	at, ok := listAt[q.Kind]
	if !ok {
		at = len(all) - 1
	}
	version := all[at].drop(q)
	if q.Again && q.Name != "" { // see Changed
		former := make(map[plan.Ref]string, len(s.former)+1) // the other one may be a copy's
		maps.Copy(former, s.former)
		former[named(q.Kind, q.Namespace, q.Name)] = version
		s.former = former
	}
}

// listAt is which of the lists of a snapshot has the objects of a kind; those of a foreign kind are in the last.
var listAt = func() map[plan.Kind]int {
	at := map[plan.Kind]int{}
	for i, l := range new(Snapshot).lists() {
		if k := l.kind(); k != "" {
			at[k] = i
		}
	}
	return at
}()

// Hold puts in place of what q selects a list that is sorted by namespace and name, because q is answered in full. It is
// Drop and Add at once, for long lists: where q selects all objects of its kind, none of them is looked at.
func (s *Snapshot) Hold(q Query, objects []plan.Object) {
	if q == All(q.Kind) {
		for _, l := range s.lists() {
			if l.hold(q.Kind, objects) {
				return
			}
		}
	}
	s.Drop(q)
	s.Add(objects...)
}

// lists returns the lists of s, which change with s.
func (s *Snapshot) lists() [28]list {
	return [28]list{
		listOf(&s.Machines), listOf(&s.MachineSets), listOf(&s.HealthChecks), listOf(&s.MachineAutoscalers),
		listOf(&s.ClusterAutoscalers), listOf(&s.Infrastructures), listOf(&s.Nodes), listOf(&s.Namespaces), listOf(&s.Pods), listOf(&s.SigningRequests),
		listOf(&s.ConfigMaps), listOf(&s.PersistentVolumes), listOf(&s.PersistentVolumeClaims),
		listOf(&s.ReplicationControllers), listOf(&s.DaemonSets), listOf(&s.ReplicaSets), listOf(&s.StatefulSets),
		listOf(&s.Jobs), listOf(&s.DisruptionBudgets), listOf(&s.PriorityClasses), listOf(&s.StorageClasses),
		listOf(&s.CSINodes), listOf(&s.VolumeAttachments), listOf(&s.LegacyHealthChecks), listOf(&s.PodTemplates), listOf(&s.ResourceQuotas), listOf(&s.Deployments), foreign{listOf(&s.Foreign)},
	}
}

// list is one of the lists of a snapshot.
type list interface {
	each(yield func(plan.Object) bool) bool
	clone()
	kind() plan.Kind                    // "": several
	drop(Query) (version string)        // of the last that went; empty if none did
	hold(plan.Kind, []plan.Object) bool // false: of another kind
}

type sorted[T plan.Object] struct{ all *[]T }

func listOf[T plan.Object](all *[]T) sorted[T] { return sorted[T]{all} }

func (l sorted[T]) each(yield func(plan.Object) bool) bool {
	for _, o := range *l.all {
		if !yield(o) {
			return false
		}
	}
	return true
}

func (l sorted[T]) clone() { *l.all = slices.Clone(*l.all) }

func (l sorted[T]) hold(k plan.Kind, objects []plan.Object) bool {
	var none T
	if plan.KindOf(none) != k {
		return false
	}
	held := make([]T, 0, len(objects))
	for _, o := range objects {
		if o, ok := o.(T); ok {
			held = append(held, o)
		}
	}
	*l.all = held
	return true
}

func (l sorted[T]) kind() plan.Kind {
	var none T
	return plan.KindOf(none)
}

func (l sorted[T]) drop(q Query) (version string) {
	*l.all = slices.DeleteFunc(slices.Clone(*l.all), func(o T) bool {
		if !q.Selects(o) {
			return false
		}
		version = o.GetResourceVersion()
		return true
	})
	return version
}

// put inserts o into a sorted list; in order it is an append.
func put[T plan.Object](all *[]T, o T) {
	if n := len(*all); n == 0 || before((*all)[n-1], o.GetNamespace(), o.GetName()) < 0 {
		*all = append(*all, o)
		return
	}
	i, ok := search(*all, o.GetNamespace(), o.GetName())
	if ok {
		(*all)[i] = o
		return
	}
	*all = slices.Insert(*all, i, o)
}

func search[T plan.Object](all []T, namespace, name string) (int, bool) {
	return slices.BinarySearchFunc(all, name, func(o T, name string) int { return before(o, namespace, name) })
}

func before(o plan.Object, namespace, name string) int {
	return cmp.Or(cmp.Compare(o.GetNamespace(), namespace), cmp.Compare(o.GetName(), name))
}
