// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"cmp"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/plan"
)

// Collector is the actor of garbage collection in Writes.
const Collector = "garbage-collector"

// orphaned looks at everything that the object of this UID, which is gone, owned.
func (s *Server) orphaned(uid types.UID) {
	for _, r := range s.resources() {
		for _, at := range s.names(r.Kind) {
			if o, ok := s.objects[r.Kind][at]; ok && owns(uid, o) {
				s.collect(r, at)
			}
		}
	}
}

// collect deletes an object whose owners are all gone, in the background; if only some are, it drops these.
func (s *Server) collect(r plan.Resource, at name) {
	o := s.objects[r.Kind][at]
	refs := o.GetOwnerReferences()
	alive := slices.DeleteFunc(slices.Clone(refs), func(ref metav1.OwnerReference) bool { return s.dead(ref, at.namespace) })
	switch {
	case len(alive) == len(refs):
	case len(alive) == 0:
		_ = s.wrote(Collector, "delete", r, "", at, s.delete(r, at, deletion{uid: o.GetUID()}))
	default:
		n := copyOf(o)
		n.SetOwnerReferences(alive)
		s.keep(r, at, n)
		_ = s.wrote(Collector, "patch", r, "", at, nil)
	}
}

// dead reports whether an owner is gone. Of kinds that the server does not hold it knows nothing.
func (s *Server) dead(ref metav1.OwnerReference, namespace string) bool {
	r, ok := plan.ResourceOf(plan.Kind(ref.Kind))
	if !ok || r.Group.String() != ref.APIVersion {
		return false
	}
	if !r.Namespaced {
		namespace = ""
	}
	owner, ok := s.objects[r.Kind][name{namespace, ref.Name}]
	return !ok || owner.GetUID() != ref.UID
}

// release makes what an object owns its own master, as the policy Orphan asks.
func (s *Server) release(uid types.UID) {
	for _, r := range s.resources() {
		for _, at := range s.names(r.Kind) {
			o := s.objects[r.Kind][at]
			if !owns(uid, o) {
				continue
			}
			n := copyOf(o)
			n.SetOwnerReferences(slices.DeleteFunc(n.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == uid }))
			s.keep(r, at, n)
			_ = s.wrote(Collector, "patch", r, "", at, nil)
		}
	}
}

func owns(uid types.UID, o plan.Object) bool {
	return slices.ContainsFunc(o.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == uid })
}

// resources returns all kinds that there are objects of, or were. Nobody changes the result.
func (s *Server) resources() []plan.Resource {
	if len(s.kinds) == len(s.objects) { // to which kinds are only added
		return s.kinds
	}
	s.kinds = nil
	for _, k := range slices.Sorted(maps.Keys(s.objects)) {
		r, _ := plan.ResourceOf(k)
		s.kinds = append(s.kinds, r)
	}
	return s.kinds
}

// names returns the names of all objects of a kind, sorted. Nobody changes the result.
func (s *Server) names(k plan.Kind) []name {
	all, ok := s.sorted[k]
	if !ok {
		all = slices.SortedFunc(maps.Keys(s.objects[k]), func(a, b name) int {
			return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
		})
		s.sorted[k] = all
	}
	return all
}
