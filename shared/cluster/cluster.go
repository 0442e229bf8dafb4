// SPDX-License-Identifier: Apache-2.0

// Package cluster is the port to the Kubernetes API: read objects, carry out actions, tell notes.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Cluster is safe for concurrent use. Nothing it answers comes from a cache (RELIABILITY G2).
type Cluster interface {
	// Observe answers the queries in their order, into a copy of s with the answered queries marked; s.Now becomes the
	// server's clock, s.Served the namespaces that are read. A list is complete or an error. An object that is not there is
	// an answer, not an error; so is one of the machine layer's own in a namespace that is not served, and a foreign object
	// (plan.Foreign) that the function may not read, because a deployment grants these or does not.
	Observe(ctx context.Context, s snapshot.Snapshot, queries []snapshot.Query) (snapshot.Snapshot, error)
	// Apply carries out one action that concerns objects; every write carries the UID and resourceVersion that the
	// action saw. Its errors are [ErrConflict], [ErrExists], [ErrGone], a [*BlockedError], a [*RefusedError], or
	// unclassified: then it may or may not have happened.
	Apply(ctx context.Context, a plan.Action) error
	// Tell records a Kubernetes Event, or counts up the one told before.
	Tell(ctx context.Context, n plan.Note) error
	// Ready is nil if the server answers. Until it was nil once, it is an error too that the server forbids to list Machines in a namespace
	// that the deployment serves: the error names it.
	Ready(ctx context.Context) error
	// Secret reads one Secret with its resourceVersion. A Secret that is not there is ErrGone.
	Secret(ctx context.Context, namespace, name string) (data map[string][]byte, version string, err error)
}

// Conditions that other packages branch on.
var (
	ErrConflict = errors.New("object changed since it was observed")
	ErrExists   = errors.New("object exists")
	ErrGone     = errors.New("object is gone")
)

// BlockedError is an eviction that a disruption budget, or a webhook that cannot be asked, does not allow now.
type BlockedError struct {
	RetryAfter time.Duration
	Message    string
}

// Error returns the server's message.
func (e *BlockedError) Error() string { return e.Message }

// RefusedError is a definite no of the API server: invalid, forbidden, denied by a policy. Repeating cannot help.
type RefusedError struct{ Err error }

// Error returns the server's message.
func (e *RefusedError) Error() string { return fmt.Sprintf("refused: %v", e.Err) }

// Unwrap returns the cause.
func (e *RefusedError) Unwrap() error { return e.Err }
