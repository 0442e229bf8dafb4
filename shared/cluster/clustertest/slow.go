// SPDX-License-Identifier: Apache-2.0

package clustertest

import (
	"context"
	"slices"
	"time"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// SlowReads is an API server whose reads take so long.
type SlowReads struct {
	cluster.Cluster
	Takes time.Duration
}

// Observe answers after a while.
func (s SlowReads) Observe(ctx context.Context, seen snapshot.Snapshot, q []snapshot.Query) (snapshot.Snapshot, error) {
	time.Sleep(s.Takes)
	return s.Cluster.Observe(ctx, seen, q)
}

// NodeLists counts how often all Nodes are read, by scans and by events.
type NodeLists struct {
	cluster.Cluster
	ByScans, ByEvents int
}

// Observe counts what was answered.
func (c *NodeLists) Observe(ctx context.Context, s snapshot.Snapshot, q []snapshot.Query) (snapshot.Snapshot, error) {
	seen, err := c.Cluster.Observe(ctx, s, q)
	all := slices.ContainsFunc(q, func(q snapshot.Query) bool { return q.Kind == "Node" && q.Name == "" && q.Labels == "" })
	switch {
	case all && s.Request.Scan():
		c.ByScans++
	case all:
		c.ByEvents++
	}
	return seen, err
}
