// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"cmp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// maxInFlight bounds the remediations under way of one check; of control-plane Machines there is only ever one.
	maxInFlight             = 3
	maxInFlightControlPlane = 1
	// A third of the Nodes, and at least three, that nobody hears of are a broken network, not illness.
	partitionPercent = 33
	partitionNodes   = 3
)

// sum is how many Machines a check sees, and what follows.
type sum struct {
	machines, healthy, sick int
	most                    int // unhealthy ones allowed
	network                 network
}

// network is how much of the whole cluster is heard of.
type network struct{ unreachable, nodes int }

func (s sum) unhealthy() int { return s.machines - s.healthy }
func (s sum) tooMany() bool  { return s.unhealthy() > s.most }
func (s sum) allowed() bool  { return !s.tooMany() && !s.network.partitioned() }

func (n network) partitioned() bool {
	return n.unreachable >= partitionNodes && n.unreachable*100 >= n.nodes*partitionPercent
}

// count counts as healthy only what has a Node, needs nothing now nor when a timer ends, and is neither deleted nor
// repaired elsewhere (B53, R-B26).
func (c check) count() sum {
	s := sum{machines: len(c.targets), network: c.network}
	for _, t := range c.targets {
		_, repaired := t.m.Annotations[machine.AnnotationExternalRepair]
		switch {
		case t.sick(c.Now):
			s.sick++
		case t.reason == "" && t.n != nil && t.m.DeletionTimestamp == nil && !repaired:
			s.healthy++
		}
	}
	if most, err := maxUnhealthy(c.h, s.machines); err == nil {
		s.most = most
	}
	return s
}

// networkOf counts the Nodes that nothing is heard of. One that vanished counts like them (R-B23).
func networkOf(s snapshot.Snapshot) network {
	net := network{nodes: len(s.Nodes)}
	for _, n := range s.Nodes {
		if machine.NodeUnreachable(n) {
			net.unreachable++
		}
	}
	for _, m := range s.Machines {
		if m.DeletionTimestamp == nil && m.Status.NodeRef != nil && nodeOf(s, m) == nil {
			net.unreachable++
			net.nodes++
		}
	}
	return net
}

// admit adds the Machines to remediate next: those longest due first, as many as there is room for (RELIABILITY 2f).
func (c check) admit(r record, s sum) record {
	if !s.allowed() || s.unhealthy()+c.gone(r) > s.most {
		return r
	}
	limit := min(s.most, maxInFlight)
	if slices.ContainsFunc(c.targets, controlPlane) {
		limit = min(limit, maxInFlightControlPlane)
	}
	due := c.due(r)
	r.InFlight = slices.Clone(r.InFlight)
	for _, t := range due[:max(0, min(len(due), limit-len(r.InFlight)))] {
		f := remediation{Machine: t.m.Name, UID: t.m.UID, At: metav1.NewTime(c.Now)}
		if owner := metav1.GetControllerOf(t.m); owner != nil && owner.Kind == "MachineSet" {
			f.Set = owner.Name
		}
		r.InFlight = append(r.InFlight, f)
	}
	return r
}

// gone counts the remediations whose Machine is not among the selected any more.
func (c check) gone(r record) int {
	n := 0
	for _, f := range r.InFlight {
		if !slices.ContainsFunc(c.targets, func(t target) bool { return t.m.UID == f.UID }) {
			n++
		}
	}
	return n
}

// due returns the sick Machines that can be remediated and are not yet, those longest due first.
func (c check) due(r record) []target {
	var due []target
	for _, t := range c.targets {
		if t.sick(c.Now) && !r.has(t.m) && (owned(t.m) || c.external()) {
			due = append(due, t)
		}
	}
	slices.SortStableFunc(due, func(a, b target) int {
		return cmp.Or(a.due.Compare(b.due), cmp.Compare(a.m.Name, b.m.Name))
	})
	return due
}

func controlPlane(t target) bool {
	return t.m.Labels[machine.LabelRole] == "master" || t.n != nil && machine.IsControlPlane(t.n)
}
