// SPDX-License-Identifier: Apache-2.0

package sim

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/cluster/memory"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// causedByCheck holds R-S6 and R-S10 for what remediate deletes. Who began before people took the check away may act for it still.
func (p *Play) causedByCheck(q *proc, m *machine.Machine) {
	if q.id <= p.unchecked {
		return
	}
	h := p.checkWith(m)
	var node *corev1.Node
	if m.Status.NodeRef != nil { // hosts' Nodes have the hosts' names
		node = memory.Get[*corev1.Node](p.API, "", m.Status.NodeRef.Name)
	}
	switch {
	case h == nil:
		p.violate("R-S6", "%s deletes %s, though there is no check", q, m.Name)
	case !flights(h)[m.UID]:
		p.violate("R-S6", "%s deletes %s, which no check has in flight", q, m.Name)
	case p.cycledByPeople(m):
		p.violate("R-S6", "%s deletes %s, whose host people power-cycle", q, m.Name)
	case p.unmended(m):
		p.violate("R-S6", "%s deletes %s, whose template nobody mended", q, m.Name)
	case p.unserved(q, m):
		p.violate("R-S6", "%s deletes %s, which nobody replaces", q, m.Name)
	case !p.hasSlot(q, m.UID):
		p.violate("R-S10", "%s deletes %s, which has no slot of the budget", q, m.Name)
	case machine.Phase(m) == machine.PhaseRunning && node != nil && isNodeOf(m, node) && machine.NodeReady(node) && !p.mayAil(m) && !p.limited: // no room was left for it
		p.violate("R-S6", "%s deletes %s, which is well", q, m.Name)
	}
	switch {
	case p.Checked > 0 && isMaster(m):
		p.watchDowned(q, m)
	case h != nil:
		p.watchOut(q, m, h)
	}
}

// mayAil reports whether somebody who read m before may have seen that it was ill, though it is well now: its instance was, or was to be
// power-cycled, or times are not what they were.
func (p *Play) mayAil(m *machine.Machine) bool {
	return p.ailed[machine.ProviderID(m)] || p.reset || p.restored || p.Cycles && p.minds[m.UID] > 0
}
