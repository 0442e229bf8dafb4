// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/machine-functions/machine-functions/shared/provider/kubeapi"
)

// Object is what a Store keeps: a named bag of words.
type Object struct {
	Name    string
	Version string // the Store's; ordered, as numbers, like the writes that it stands for
	Labels  map[string]string
	Data    map[string]string
}

// Store keeps the state of the simulated cloud. It is consistent: what was written is read. It is safe for concurrent
// use.
type Store interface {
	// Create stores a new object; one of that name is ErrExists.
	Create(ctx context.Context, o Object) (Object, error)
	// Get returns the object of that name, or ErrGone.
	Get(ctx context.Context, name string) (Object, error)
	// List returns every object with all of these labels, sorted by name.
	List(ctx context.Context, labels map[string]string) ([]Object, error)
	// Update replaces the object if its version is still o.Version, else it answers ErrConflict, or ErrGone.
	Update(ctx context.Context, o Object) (Object, error)
	// Delete removes the object if its version is still o.Version, else it answers ErrConflict, or ErrGone.
	Delete(ctx context.Context, o Object) error
}

// What a Store answers beside its own errors.
var (
	ErrExists   = kubeapi.ErrExists
	ErrGone     = kubeapi.ErrGone
	ErrConflict = kubeapi.ErrConflict
)

// Memory is a Store in a map. The zero Memory is empty.
type Memory struct {
	mu      sync.Mutex
	objects map[string]Object
	writes  int
}

var _ Store = (*Memory)(nil)

// Create implements [Store].
func (m *Memory) Create(ctx context.Context, o Object) (Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, exists := m.objects[o.Name]; exists {
		return Object{}, ErrExists
	}
	return m.put(ctx, o)
}

// Get implements [Store].
func (m *Memory) Get(ctx context.Context, name string) (Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, exists := m.objects[name]
	if !exists {
		return Object{}, errors.Join(ctx.Err(), ErrGone)
	}
	return o.clone(), ctx.Err()
}

// List implements [Store].
func (m *Memory) List(ctx context.Context, labels map[string]string) ([]Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []Object
	for _, o := range m.objects {
		if o.has(labels) {
			all = append(all, o.clone())
		}
	}
	slices.SortFunc(all, func(a, b Object) int { return strings.Compare(a.Name, b.Name) })
	return all, ctx.Err()
}

// Update implements [Store].
func (m *Memory) Update(ctx context.Context, o Object) (Object, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.current(o); err != nil {
		return Object{}, err
	}
	return m.put(ctx, o)
}

// Delete implements [Store].
func (m *Memory) Delete(ctx context.Context, o Object) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := errors.Join(ctx.Err(), m.current(o)); err != nil {
		return err
	}
	delete(m.objects, o.Name)
	m.writes++
	return nil
}

// Writes returns how many writes there were.
func (m *Memory) Writes() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.writes
}

// current reports what speaks against a write to o. The caller holds the lock.
func (m *Memory) current(o Object) error {
	old, exists := m.objects[o.Name]
	switch {
	case !exists:
		return ErrGone
	case old.Version != o.Version:
		return ErrConflict
	}
	return nil
}

// put writes o. The caller holds the lock.
func (m *Memory) put(ctx context.Context, o Object) (Object, error) {
	if err := ctx.Err(); err != nil {
		return Object{}, err
	}
	if m.objects == nil {
		m.objects = map[string]Object{}
	}
	m.writes++
	o = o.clone()
	o.Version = strconv.Itoa(m.writes)
	m.objects[o.Name] = o
	return o.clone(), nil
}

func (o Object) clone() Object {
	o.Labels, o.Data = maps.Clone(o.Labels), maps.Clone(o.Data)
	return o
}

func (o Object) has(labels map[string]string) bool {
	for k, v := range labels {
		if have, ok := o.Labels[k]; !ok || have != v {
			return false
		}
	}
	return true
}
