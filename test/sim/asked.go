// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Asked is told of all that functions ask of an API server: a snapshot.Query, a plan.Action, a plan.Note, or the
// types.NamespacedName of a Secret. It is set before there is a world; nil: nobody is told.
var Asked func(function string, what any)

// heard is the API server of a world for one function, of which Asked is told.
type heard struct {
	*memory.Cluster
	function string
}

// as returns the API server for a function.
func (w *World) as(function string) heard {
	return heard{w.API.As(function, w.Namespaces...), function}
}

func (h heard) tell(what any) {
	if Asked != nil {
		Asked(h.function, what)
	}
}

// Observe implements cluster.Cluster.
func (h heard) Observe(ctx context.Context, s snapshot.Snapshot, queries []snapshot.Query) (snapshot.Snapshot, error) {
	for _, q := range queries {
		h.tell(q)
	}
	return h.Cluster.Observe(ctx, s, queries)
}

// Apply implements cluster.Cluster.
func (h heard) Apply(ctx context.Context, a plan.Action) error {
	h.tell(a)
	return h.Cluster.Apply(ctx, a)
}

// Tell implements cluster.Cluster.
func (h heard) Tell(ctx context.Context, n plan.Note) error {
	h.tell(n)
	return h.Cluster.Tell(ctx, n)
}

// Secret implements cluster.Cluster.
func (h heard) Secret(ctx context.Context, namespace, name string) (map[string][]byte, string, error) {
	h.tell(types.NamespacedName{Namespace: namespace, Name: name})
	return h.Cluster.Secret(ctx, namespace, name)
}
