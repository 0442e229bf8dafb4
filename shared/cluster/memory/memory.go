// SPDX-License-Identifier: Apache-2.0

// Package memory is an API server in memory: the same port as package kube, for tests and simulations.
//
// It behaves as the real one does for the kinds of plan.Resources, which package clustertest proves: resourceVersions,
// generations, status apart from spec, finalizers, preconditions, owners, evictions, Events. It knows the rules of
// metadata, not the schemas of specs: what is invalid there is accepted. Nothing else works on its objects: no
// scheduler, no kubelet, no disruption controller; garbage is collected at once.
package memory

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// Server holds the objects. It is safe for concurrent use; objects are copied on the way in and out.
type Server struct {
	// Trusting hands out the objects themselves, for readers who change nothing, and stores what the typed actions of
	// functions and Patch bring without a way through JSON: some twenty times as fast. It is set before the first call.
	Trusting bool

	clock func() time.Time

	mu       sync.Mutex
	version  int64 // of the latest write
	born     int64 // how many objects ever were: the next UID
	objects  map[plan.Kind]map[name]plan.Object
	sorted   map[plan.Kind][]name // the names of those kinds to which nothing was added, and of which nothing went, since they were sorted
	kinds    []plan.Resource      // of objects, sorted; fewer if some were added since
	secrets  map[name]*corev1.Secret
	events   map[name]*corev1.Event
	writes   []Write
	accesses map[Access]bool
}

type name struct{ namespace, name string }

// New returns an empty server. Its clock is what Now, creationTimestamps and deletionTimestamps come from.
func New(clock func() time.Time) *Server {
	s := &Server{
		clock:    clock,
		objects:  map[plan.Kind]map[name]plan.Object{},
		sorted:   map[plan.Kind][]name{},
		secrets:  map[name]*corev1.Secret{},
		events:   map[name]*corev1.Event{},
		accesses: map[Access]bool{},
	}
	for _, r := range plan.Resources() {
		s.objects[r.Kind] = map[name]plan.Object{}
	}
	return s
}

// Cluster is a server as one actor uses it.
type Cluster struct {
	server     *Server
	actor      string
	namespaces []string
}

var _ cluster.Cluster = (*Cluster)(nil)

// As returns the server as actor, a function's name, uses it; without namespaces it serves machine.Namespace.
func (s *Server) As(actor string, namespaces ...string) *Cluster {
	if len(namespaces) == 0 {
		namespaces = []string{machine.Namespace}
	}
	return &Cluster{server: s, actor: actor, namespaces: namespaces}
}

// Access is what an actor did to a resource, as RBAC sees it: resource is a plural, with its subresource where there
// is one.
type Access struct{ Actor, Verb, Group, Resource, Namespace string }

// Write is one attempt to change something.
type Write struct {
	Access
	Name string
	Err  error // what the actor was answered
}

// String returns one line for the message of a failed test.
func (w Write) String() string {
	line := strings.Join([]string{w.Actor, w.Verb, w.Resource, w.Namespace, w.Name}, " ")
	if w.Err != nil {
		line += ": " + w.Err.Error()
	}
	return line
}

// Writes returns every attempt so far to change something, in order; those of the functions below by the actor User.
// The result may be kept.
func (s *Server) Writes() []Write {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.writes)
}

// Forget forgets what Writes returned so far.
func (s *Server) Forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes = nil
}

// Accesses returns what every actor did so far, reading included, each once, sorted.
func (s *Server) Accesses() []Access {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Access, 0, len(s.accesses))
	for a := range s.accesses {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b Access) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	return all
}

// Events returns the Kubernetes Events that were told, in the order of their first telling.
func (s *Server) Events() []corev1.Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]corev1.Event, 0, len(s.events))
	for _, e := range s.events {
		all = append(all, *e.DeepCopy())
	}
	slices.SortFunc(all, func(a, b corev1.Event) int { return strings.Compare(string(a.UID), string(b.UID)) })
	return all
}

func (s *Server) access(actor, verb string, r plan.Resource, subresource, namespace string) Access {
	a := Access{Actor: actor, Verb: verb, Group: r.Group.Group, Resource: r.Plural, Namespace: namespace}
	if subresource != "" {
		a.Resource += "/" + subresource
	}
	s.accesses[a] = true
	return a
}

func (s *Server) wrote(actor, verb string, r plan.Resource, subresource string, at name, err error) error {
	s.writes = append(s.writes, Write{Access: s.access(actor, verb, r, subresource, at.namespace), Name: at.name, Err: err})
	return err
}

// next returns a resourceVersion that no object had before.
func (s *Server) next() string {
	s.version++
	return strconv.FormatInt(s.version, 10)
}

// uid returns a UID that no object had before, in order.
func (s *Server) uid() types.UID {
	s.born++
	return types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", s.born))
}

// now is the server's clock as its Date header would show it.
func (s *Server) now() time.Time { return s.clock().UTC().Truncate(time.Second) }
