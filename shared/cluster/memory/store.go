// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"
	"reflect"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// create stores a new object the way a POST does.
func (s *Server) create(r plan.Resource, o plan.Object) error {
	n, err := s.fresh(r, o)
	if err != nil {
		return refuse(err)
	}
	n.SetUID("")
	n.SetDeletionTimestamp(nil)
	n.SetDeletionGracePeriodSeconds(nil)
	n.SetGeneration(0)
	if r.Kind != "Node" { // a kubelet registers its Node with its status
		zero(n, "Status")
	}
	begin(n)
	if err := valid(r, n); err != nil {
		return err
	}
	at := name{n.GetNamespace(), n.GetName()}
	if _, ok := s.objects[r.Kind][at]; ok {
		return cluster.ErrExists
	}
	s.birth(r, n)
	s.store(r, at, n)
	s.collect(r, at)
	return nil
}

// birth fills in what the server gives to a new object, where it is not given already.
func (s *Server) birth(r plan.Resource, o plan.Object) {
	if o.GetUID() == "" {
		o.SetUID(s.uid())
	}
	if at := o.GetCreationTimestamp(); at.IsZero() {
		o.SetCreationTimestamp(metav1.NewTime(s.now()))
	}
	if o.GetGeneration() == 0 && counted(r.Kind) {
		o.SetGeneration(1)
	}
	o.SetResourceVersion(s.next())
}

// patch applies a merge patch the way a PATCH does.
func (s *Server) patch(r plan.Resource, at name, change map[string]any) error {
	old, ok := s.objects[r.Kind][at]
	if !ok {
		return cluster.ErrGone
	}
	n, err := canonical(r, old, change)
	if err != nil {
		return refuse(err)
	}
	return s.commit(r, at, old, n)
}

// commit replaces old by n, or removes it if n gave up the last finalizer of an object being deleted.
func (s *Server) commit(r plan.Resource, at name, old, n plan.Object) error {
	if n.GetResourceVersion() != old.GetResourceVersion() {
		return cluster.ErrConflict
	}
	n.SetGeneration(old.GetGeneration())
	n.SetCreationTimestamp(old.GetCreationTimestamp())
	if old.GetDeletionTimestamp() != nil {
		n.SetDeletionTimestamp(old.GetDeletionTimestamp())
		n.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	if err := valid(r, n); err != nil {
		return err
	}
	if wrong := validation.ValidateObjectMetaAccessorUpdate(n, old, field.NewPath("metadata")); len(wrong) > 0 {
		return refuse(wrong.ToAggregate())
	}
	if equality.Semantic.DeepEqual(old, n) {
		return nil
	}
	if counted(r.Kind) && !equality.Semantic.DeepEqual(zero(old.DeepCopyObject(), "ObjectMeta", "Status"), zero(n.DeepCopyObject(), "ObjectMeta", "Status")) {
		n.SetGeneration(old.GetGeneration() + 1)
	}
	s.keep(r, at, n)
	if grace := old.GetDeletionGracePeriodSeconds(); old.GetDeletionTimestamp() != nil && len(n.GetFinalizers()) == 0 && (grace == nil || *grace == 0) {
		s.remove(r, at)
	}
	return nil
}

// keep stores o as it is, under a new resourceVersion.
func (s *Server) keep(r plan.Resource, at name, o plan.Object) {
	o.SetResourceVersion(s.next())
	s.store(r, at, o)
}

func (s *Server) store(r plan.Resource, at name, o plan.Object) {
	if s.objects[r.Kind] == nil {
		s.objects[r.Kind] = map[name]plan.Object{} // a foreign kind
	}
	if _, ok := s.objects[r.Kind][at]; !ok {
		delete(s.sorted, r.Kind)
	}
	s.objects[r.Kind][at] = o
}

// deletion is what a DELETE carries.
type deletion struct {
	uid     types.UID
	version string // empty: any
	grace   *int64
}

// delete removes an object, or begins to.
func (s *Server) delete(r plan.Resource, at name, d deletion) error {
	old, ok := s.objects[r.Kind][at]
	if !ok || old.GetUID() != d.uid {
		return cluster.ErrGone
	}
	if d.version != "" && d.version != old.GetResourceVersion() {
		return cluster.ErrConflict
	}
	n := copyOf(old)
	if pod, ok := n.(*corev1.Pod); ok {
		if grace := s.gracefully(pod, d.grace); grace != nil && *grace > 0 {
			if !equality.Semantic.DeepEqual(old, n) {
				s.keep(r, at, n)
			}
			return nil
		}
	}
	if len(n.GetFinalizers()) == 0 {
		s.remove(r, at)
		return nil
	}
	s.terminate(n, 0)
	if !equality.Semantic.DeepEqual(old, n) {
		s.keep(r, at, n)
	}
	return nil
}

// gracefully begins the deletion of a Pod, or shortens it. It returns how long its kubelet has for it by now.
func (s *Server) gracefully(pod *corev1.Pod, wanted *int64) *int64 {
	if pod.DeletionTimestamp == nil {
		grace := graceOf(pod, wanted)
		if grace > 0 {
			s.terminate(pod, grace)
		}
		return &grace
	}
	if have := pod.DeletionGracePeriodSeconds; have != nil && wanted != nil && *wanted < *have {
		at := metav1.NewTime(pod.DeletionTimestamp.Add(time.Duration(*wanted-*have) * time.Second))
		if now := metav1.NewTime(s.now()); at.Before(&now) {
			at = now
		}
		pod.DeletionTimestamp, pod.DeletionGracePeriodSeconds = &at, wanted
	}
	return pod.DeletionGracePeriodSeconds
}

// graceOf returns how long a Pod may take to end. One that no kubelet runs takes no time.
func graceOf(pod *corev1.Pod, wanted *int64) int64 {
	switch {
	case pod.Spec.NodeName == "", pod.Status.Phase == corev1.PodSucceeded, pod.Status.Phase == corev1.PodFailed:
		return 0
	case wanted != nil:
		return *wanted
	case pod.Spec.TerminationGracePeriodSeconds != nil:
		return *pod.Spec.TerminationGracePeriodSeconds
	}
	return 0
}

// terminate marks o as being deleted, if it is not so already.
func (s *Server) terminate(o plan.Object, grace int64) {
	if o.GetDeletionTimestamp() == nil {
		if o.GetGeneration() > 0 {
			o.SetGeneration(o.GetGeneration() + 1)
		}
		at := metav1.NewTime(s.now().Add(time.Duration(grace) * time.Second))
		o.SetDeletionTimestamp(&at)
	}
	o.SetDeletionGracePeriodSeconds(&grace)
}

// remove forgets an object, and what it alone owned.
func (s *Server) remove(r plan.Resource, at name) {
	uid := s.objects[r.Kind][at].GetUID()
	delete(s.objects[r.Kind], at)
	delete(s.sorted, r.Kind)
	s.version++
	s.orphaned(uid)
}

// canonical returns o with a merge patch applied, as it comes back from storage: through JSON, so that times have
// seconds and raw values sorted keys.
func canonical(r plan.Resource, o plan.Object, change map[string]any) (plan.Object, error) {
	if u, ok := o.(*unstructured.Unstructured); ok {
		n := u.DeepCopy()
		merge(n.Object, change)
		return n, nil
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, err
	}
	merge(tree, change)
	n := r.New()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(tree, n); err != nil {
		return nil, err
	}
	n.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	n.SetManagedFields(nil)
	return n, nil
}

// merge applies an RFC 7386 merge patch.
func merge(tree, change map[string]any) {
	for k, v := range change {
		inner, isMap := v.(map[string]any)
		switch below, ok := tree[k].(map[string]any); {
		case v == nil:
			delete(tree, k)
		case isMap && ok:
			merge(below, inner)
		case isMap:
			fresh := map[string]any{}
			merge(fresh, inner)
			tree[k] = fresh
		default:
			tree[k] = v
		}
	}
}

// zero empties fields of the struct behind o, where it has them; those of a foreign kind are content.
func zero(o runtime.Object, fields ...string) runtime.Object {
	if u, foreign := o.(*unstructured.Unstructured); foreign {
		for _, f := range fields {
			delete(u.Object, map[string]string{"ObjectMeta": "metadata", "Status": "status"}[f])
		}
		return o
	}
	v := reflect.ValueOf(o).Elem()
	for _, f := range fields {
		if f := v.FieldByName(f); f.IsValid() {
			f.SetZero()
		}
	}
	return o
}

func valid(r plan.Resource, o plan.Object) error {
	name := validation.NameIsDNSSubdomain
	if r.Kind == "CertificateSigningRequest" {
		name = func(name string, _ bool) []string { return content.IsPathSegmentName(name) }
	}
	wrong := validation.ValidateObjectMetaAccessor(o, r.Namespaced, name, field.NewPath("metadata"))
	if len(wrong) > 0 {
		return refuse(wrong.ToAggregate())
	}
	for _, f := range o.GetFinalizers() {
		if !custom(r) && !strings.Contains(f, "/") && f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			return refuse(fmt.Errorf("finalizer %q has no domain", f))
		}
	}
	return nil
}

func refuse(err error) error { return &cluster.RefusedError{Err: fmt.Errorf("invalid: %w", err)} }
