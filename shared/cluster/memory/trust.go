// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"maps"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// adopted returns what a change of before into after leaves behind, if the server is trusting and before is the very object that it holds,
// or did until somebody else changed it: then the merge patch that package kube would send changes nothing but what differs, and the
// result is after, with the status or with everything but the status of before. nil sends the patch its usual way.
func (s *Server) adopted(r plan.Resource, at name, before, after plan.Object, subresource string) plan.Object {
	version := before.GetResourceVersion()
	if held := s.objects[r.Kind][at]; !s.Trusting || held != before && held != nil && held.GetResourceVersion() == version || after.GetResourceVersion() != version {
		return nil
	}
	status := subresource != ""
	switch old := before.(type) {
	case *machine.Machine:
		return merged(old, after, status, func(to, from *machine.Machine) { to.Status = from.Status })
	case *machine.MachineSet:
		return merged(old, after, status, func(to, from *machine.MachineSet) { to.Status = from.Status })
	case *machine.MachineHealthCheck:
		return merged(old, after, status, func(to, from *machine.MachineHealthCheck) { to.Status = from.Status })
	case *corev1.Node:
		return merged(old, after, status, func(to, from *corev1.Node) { to.Status = from.Status })
	case *corev1.ConfigMap:
		if n, ok := after.(*corev1.ConfigMap); ok && !status {
			return shallow(n)
		}
	}
	return nil
}

// fresh returns a new object as it comes back from storage. A trusting server takes a copy of what it is given for that.
func (s *Server) fresh(r plan.Resource, o plan.Object) (plan.Object, error) {
	if !s.Trusting {
		return canonical(r, o, nil)
	}
	n := copyOf(o)
	n.SetManagedFields(nil)
	return n, nil
}

// merged takes the status from the one and everything else from the other. nil if they are of different kinds.
func merged[T any, O interface {
	*T
	plan.Object
}](before O, after plan.Object, status bool, setStatus func(to, from *T)) plan.Object {
	given, ok := after.(O)
	if !ok {
		return nil
	}
	if status {
		n := shallow((*T)(before))
		setStatus(n, given)
		return O(n)
	}
	n := shallow((*T)(given))
	setStatus(n, before)
	return O(n)
}

func shallow[T any](o *T) *T {
	n := *o
	return &n
}

// adopt stores n, which is nobody else's, in the place of old.
func (c *Cluster) adopt(r plan.Resource, at name, old, n plan.Object, subresource string) error {
	s := c.server
	if subresource != "" && plan.Same(statusOf(old), statusOf(n)) {
		return nil
	}
	if subresource == "" && maps.Equal(old.GetAnnotations(), n.GetAnnotations()) && plan.Same(old, n) { // most changes are of records
		return nil
	}
	switch s.objects[r.Kind][at] {
	case nil:
		return s.wrote(c.actor, "patch", r, subresource, at, cluster.ErrGone)
	case old:
		s.commitTrusted(r, at, old, n, subresource)
		return s.wrote(c.actor, "patch", r, subresource, at, nil)
	default:
		return s.wrote(c.actor, "patch", r, subresource, at, cluster.ErrConflict)
	}
}

// commitTrusted is commit for objects that were made of what is stored: their metadata is what it was but for labels,
// annotations, finalizers and owners.
func (s *Server) commitTrusted(r plan.Resource, at name, old, n plan.Object, subresource string) {
	if counted(r.Kind) && subresource == "" && !plan.Same(specOf(old), specOf(n)) {
		n.SetGeneration(old.GetGeneration() + 1)
	}
	s.keep(r, at, n)
	if grace := old.GetDeletionGracePeriodSeconds(); old.GetDeletionTimestamp() != nil && len(n.GetFinalizers()) == 0 && (grace == nil || *grace == 0) {
		s.remove(r, at)
	}
}

// statusOf returns what a change of the status may differ in.
func statusOf(o plan.Object) any {
	switch o := o.(type) {
	case *machine.Machine:
		return &o.Status
	case *machine.MachineSet:
		return &o.Status
	case *machine.MachineHealthCheck:
		return &o.Status
	case *corev1.Node:
		return &o.Status
	}
	return o
}

// specOf returns what generations count.
func specOf(o plan.Object) any {
	switch o := o.(type) {
	case *machine.Machine:
		return &o.Spec
	case *machine.MachineSet:
		return &o.Spec
	case *machine.MachineHealthCheck:
		return &o.Spec
	}
	return nil
}

// Backup returns what restores every object as it is now, at the resourceVersion that it has; versions that were given
// since are not given again. The server must be trusting: then no object is ever changed in place.
func (s *Server) Backup() (restore func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := map[plan.Kind]map[name]plan.Object{}
	for k, objects := range s.objects {
		kept[k] = maps.Clone(objects)
	}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		for k := range s.objects {
			s.objects[k] = maps.Clone(kept[k])
			if s.objects[k] == nil {
				s.objects[k] = map[name]plan.Object{}
			}
		}
		clear(s.sorted)
		s.version++
	}
}
