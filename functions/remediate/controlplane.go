// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"
	"slices"
	"time"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// succeeded reports whether a control-plane Machine that was made since then has a Node that is Ready.
func (n network) succeeded(s snapshot.Snapshot, namespace string, since time.Time) bool {
	return slices.ContainsFunc(s.Machines, func(m *machine.Machine) bool {
		t := target{m: m, n: n.nodeOf(m)}
		return m.Namespace == namespace && m.DeletionTimestamp == nil && !m.CreationTimestamp.Time.Before(since) && ready(t.n) && t.controlPlane()
	})
}

// flight is what one check has in flight.
type flight struct {
	*check
	remediation
}

// masters returns what of the control plane is in flight, in whatever check: two at once would cost it its quorum (R-S10). A check that does
// nothing now counts with what it remembers.
func (d *decision) masters() []flight {
	var all []flight
	for _, c := range d.checks {
		for _, f := range c.next.InFlight {
			if f.ControlPlane {
				all = append(all, flight{c, f})
			}
		}
	}
	for _, c := range d.idle {
		for _, f := range c.record.InFlight {
			if t := c.target(f.UID); f.ControlPlane && c.wanted(f, t) && (!c.late(f) || c.binds(f, t)) {
				all = append(all, flight{c, f})
			}
		}
	}
	return all
}

// masterOut says which other Machine of the control plane holds up f of check c, which is in flight as well: it is gone or goes, with none Ready in
// its place, or was tried in vain, unless f was as well. Two checks may have put one in flight each at the same moment: the slot of the first is in
// the way of the second for half an hour only.
func (d *decision) masterOut(c *check, f remediation) string {
	tried := c.binds(f, c.target(f.UID))
	for _, other := range d.masters() {
		if other.UID != f.UID && (other.out(other.remediation) || !tried && other.binds(other.remediation, other.target(other.UID))) {
			return other.holds()
		}
	}
	return d.masterGoes(c.h.Namespace)
}

// masterGoes says which Machine of the control plane somebody else deleted that is still there, with none Ready in its place, or "". One that
// a check claimed is in its flight, until people end that (see [decision.claimant]). Where a check's flight cannot be read, a Machine of the
// control plane may be gone that nothing else tells of: it says that.
func (d *decision) masterGoes(namespace string) string {
	if i := slices.IndexFunc(d.idle, func(c *check) bool { return c.newer }); i >= 0 {
		return fmt.Sprintf(heldUnread, d.idle[i].name())
	}
	for _, m := range d.Machines {
		if m.Namespace != namespace || m.DeletionTimestamp == nil || d.claimant(m) {
			continue
		}
		t := target{m: m, n: d.network.nodeOf(m)}
		if t.controlPlane() && !d.network.succeeded(d.Snapshot, namespace, m.DeletionTimestamp.Time) {
			return fmt.Sprintf(heldGoing, m.Name)
		}
	}
	return ""
}

// remember wants a slot of the budget for who goes of the control plane without a check's doing: once it is gone nothing else tells that its
// successor is not Ready yet, whichever of the control plane a check looks after. Like any slot it counts for half an hour, as people may have made
// the successor first, or want none.
func (d *decision) remember() {
	for _, m := range d.Machines {
		if m.DeletionTimestamp == nil || d.budget.err != nil || d.claimed[m.UID] != nil || d.claimant(m) {
			continue
		}
		t := &target{m: m, n: d.network.nodeOf(m)}
		if t.controlPlane() && d.looks(m.Namespace) && !d.network.succeeded(d.Snapshot, m.Namespace, m.DeletionTimestamp.Time) {
			d.budget.take(t)
		}
	}
}

// looks reports whether a check looks after Machines of this control plane.
func (d *decision) looks(namespace string) bool {
	return slices.ContainsFunc(d.checks, func(c *check) bool {
		return c.h.Namespace == namespace && slices.ContainsFunc(c.targets, (*target).controlPlane)
	})
}

// claimant reports whether the check that claimed m is there still, and what it has in flight can be read. One of its name that was made since
// never had m in flight, so that nobody ended anything by its having nothing in flight.
func (d *decision) claimant(m *machine.Machine) bool {
	return slices.ContainsFunc(slices.Concat(d.checks, d.idle), func(c *check) bool {
		at := c.tried(&target{m: m})
		return !c.newer && !at.IsZero() && !at.Before(c.h.CreationTimestamp.Time)
	})
}

// holds says why another one of the control plane waits for f.
func (f flight) holds() string { return fmt.Sprintf(heldMaster, f.Machine, f.name()) }

// out reports whether f's Machine is gone or goes, whether the check still selects it or not.
func (c *check) out(f remediation) bool {
	m := c.Machine(c.h.Namespace, f.Machine)
	return m == nil || m.UID != f.UID || m.DeletionTimestamp != nil
}

// binds reports whether f holds up the control plane for however long it takes: its Machine is gone or goes, or the check tried something
// that did not help. That a kubelet is silent says nothing of the member of etcd beside it: with the next one the quorum may go, for good.
// People end it (R-S10).
func (c *check) binds(f remediation, t *target) bool {
	return f.ControlPlane && (c.out(f) || t != nil && !c.tried(t).IsZero())
}

// overdue reports whether f is in flight for nothing but the control plane any more.
func (c *check) overdue(f remediation) bool {
	t := c.target(f.UID)
	return c.late(f) && c.binds(f, t) && !c.escalates(f, t)
}

// latest returns when the step that f is at was begun, or tried once more: what binds the control plane is not let go by time, and comes to no
// other try by being put in flight again, as a worker does. A power-cycle that is the last step, was carried out and did not help is asked for
// every half hour.
func (c *check) latest(f remediation, t *target) time.Time {
	last := c.tried(t)
	_, wished := t.m.Annotations[machine.AnnotationExternalRepair]
	switch {
	case !f.ControlPlane || f.Step < len(c.policy.steps)-1 || c.does(f, t) != stepPowerCycle || last.Before(f.At.Time):
		return f.At.Time
	case machine.TooFar(last, c.Now, 0): // by a clock that was ahead (RELIABILITY G7)
	case wished || c.Now.Before(last.Add(releaseAfter)):
		return last
	}
	return c.Now
}
