// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/cluster/kube"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Again makes what functions ask of an API server in memory again, as the requests that it is on a cluster, and writes these
// down. What differs from an earlier one in nothing that a right depends on is not made again. It is safe for concurrent use.
type Again struct {
	recorder *Recorder
	mu       sync.RWMutex
	made     map[shape]bool
}

// NewAgain returns an Again without calls.
func NewAgain() *Again { return &Again{recorder: NewRecorder(), made: map[shape]bool{}} }

// Calls returns a copy of all calls.
func (a *Again) Calls() map[Call]bool { return a.recorder.Calls() }

// shape is what a right may depend on.
type shape struct {
	function        string
	does            reflect.Type
	kind            plan.Kind
	namespace, name string
	scoped          bool
}

// Asked makes one of snapshot.Query, plan.Action, plan.Note again, or the name of a Secret.
func (a *Again) Asked(function string, what any) {
	s := shapeOf(function, what)
	a.mu.RLock()
	done := a.made[s]
	a.mu.RUnlock()
	if done {
		return
	}
	once := NewRecorder() // a change that changes nothing is no request
	c, err := kube.New(once.Config(function), kube.Options{FieldManager: function})
	if err != nil {
		panic(err)
	}
	ask(context.Background(), c, what)
	for call := range once.Calls() {
		a.recorder.Add(call)
		a.mu.Lock()
		a.made[s] = true
		a.mu.Unlock()
	}
}

func shapeOf(function string, what any) shape {
	s := shape{function: function, does: reflect.TypeOf(what)}
	switch what := what.(type) {
	case snapshot.Query:
		s.about(what.Kind, what.Namespace, what.Name)
	case plan.Note:
		s.namespace = what.Object.Namespace
	case types.NamespacedName:
		s.about("Secret", what.Namespace, what.Name)
	case plan.Action:
		if o := plan.Subject(what); o != nil {
			s.about(plan.KindOf(o), o.GetNamespace(), o.GetName())
		}
	default:
		panic(fmt.Sprintf("%s asks for a %T", function, what))
	}
	return s
}

// ask makes it; what comes of it is in the record of c alone.
func ask(ctx context.Context, c cluster.Cluster, what any) {
	switch what := what.(type) {
	case snapshot.Query:
		_, _ = c.Observe(ctx, snapshot.Snapshot{}, []snapshot.Query{what})
	case plan.Note:
		_ = c.Tell(ctx, what)
	case types.NamespacedName:
		_, _, _ = c.Secret(ctx, what.Namespace, what.Name)
	case plan.Action:
		_ = c.Apply(ctx, what)
	}
}

// about remembers an object, and its name where a right may name it.
func (s *shape) about(kind plan.Kind, namespace, name string) {
	s.kind, s.namespace, s.scoped = kind, namespace, name != ""
	if slices.Contains([]plan.Kind{"ConfigMap", "Secret"}, kind) {
		s.name = name
	}
}
