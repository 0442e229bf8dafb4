// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// User is the actor, in Writes, of everything in this file: what people, kubelets and foreign controllers do.
const User = "user"

// Put stores objects as they are, status included, over what is there of the same name. Only what is empty in the
// metadata is filled in, and the resourceVersion is always new.
func (s *Server) Put(objects ...plan.Object) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		r, at, err := of(o)
		if err != nil {
			return err
		}
		if err := s.wrote(User, "create", r, "", at, s.put(r, at, o)); err != nil {
			return fmt.Errorf("put %s: %w", plan.NameOf(o), err)
		}
	}
	return nil
}

func (s *Server) put(r plan.Resource, at name, o plan.Object) error {
	n, err := s.fresh(r, o)
	if err != nil {
		return refuse(err)
	}
	withDefaults(n)
	if err := valid(r, n); err != nil {
		return err
	}
	if old, ok := s.objects[r.Kind][at]; ok && n.GetUID() == "" {
		n.SetUID(old.GetUID())
		n.SetCreationTimestamp(old.GetCreationTimestamp())
		n.SetGeneration(old.GetGeneration() + 1)
	}
	s.birth(r, n)
	s.store(r, at, n)
	return nil
}

// Get returns the object of T's kind, or T's zero value if there is none.
func Get[T plan.Object](s *Server, namespace, object string) T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var none T
	o, ok := s.objects[plan.KindOf(none)][name{namespace, object}]
	if !ok {
		return none
	}
	found, _ := s.out(o).(T)
	return found
}

// Object returns the object of a kind, or nil if there is none.
func (s *Server) Object(k plan.Kind, namespace, object string) plan.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[k][name{namespace, object}]
	if !ok {
		return nil
	}
	return s.out(o)
}

// List returns all objects of T's kind, sorted by namespace and name.
func List[T plan.Object](s *Server) []T {
	s.mu.Lock()
	defer s.mu.Unlock()
	var none T
	var all []T
	for _, at := range s.names(plan.KindOf(none)) {
		o, _ := s.out(s.objects[plan.KindOf(none)][at]).(T)
		all = append(all, o)
	}
	return all
}

// Objects returns all objects, sorted by kind, namespace and name.
func (s *Server) Objects() []plan.Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []plan.Object
	for _, r := range s.resources() {
		for _, at := range s.names(r.Kind) {
			all = append(all, s.out(s.objects[r.Kind][at]))
		}
	}
	return all
}

// Patch changes the object of T's kind, status included, whatever its resourceVersion. It keeps the other rules of the
// server: generation, finalizers, metadata.
func Patch[T plan.Object](s *Server, namespace, object string, change func(T)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var none T
	r, ok := plan.ResourceOf(plan.KindOf(none))
	if !ok {
		return fmt.Errorf("%T is not a kind that functions know", none)
	}
	at := name{namespace, object}
	return s.wrote(User, "patch", r, "", at, s.change(r, at, func(o plan.Object) {
		if o, ok := o.(T); ok {
			change(o)
		}
	}))
}

func (s *Server) change(r plan.Resource, at name, change func(plan.Object)) error {
	old, ok := s.objects[r.Kind][at]
	if !ok {
		return cluster.ErrGone
	}
	n := copyOf(old)
	change(n)
	if s.Trusting {
		if !plan.Same(old, n) {
			s.commitTrusted(r, at, old, n, "")
		}
		return nil
	}
	n, err := canonical(r, n, nil)
	if err != nil {
		return refuse(err)
	}
	return s.commit(r, at, old, n)
}

// Scale sets the replicas of a MachineSet, as kubectl scale does.
func (s *Server) Scale(namespace, set string, replicas int32) error {
	return Patch(s, namespace, set, func(m *machine.MachineSet) { m.Spec.Replicas = &replicas })
}

// Removal is what becomes of the things that a removed object owns, and of a Pod's time to end.
type Removal int

// Removals.
const (
	Background Removal = iota // what it owns is deleted too
	Orphan                    // what it owns stays, without owner
	Force                     // Background, and a Pod gets no time: what its kubelet says when it has stopped
)

// Remove deletes an object, or begins to if it has finalizers. One that is not there is ErrGone.
func (s *Server) Remove(k plan.Kind, namespace, object string, how Removal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, ok := plan.ResourceOf(k)
	if !ok {
		return fmt.Errorf("%q is not a kind that functions know", k)
	}
	at := name{namespace, object}
	o, ok := s.objects[k][at]
	if !ok {
		return s.wrote(User, "delete", r, "", at, cluster.ErrGone)
	}
	d := deletion{uid: o.GetUID()}
	switch how {
	case Background:
	case Orphan:
		s.release(d.uid)
	case Force:
		d.grace = new(int64)
	}
	return s.wrote(User, "delete", r, "", at, s.delete(r, at, d))
}

// PutSecret stores a Secret for Cluster.Secret to read.
func (s *Server) PutSecret(secret *corev1.Secret) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := secret.DeepCopy()
	n.ResourceVersion = s.next()
	s.secrets[name{n.Namespace, n.Name}] = n
	_ = s.wrote(User, "create", secrets, "", name{n.Namespace, n.Name}, nil)
}
