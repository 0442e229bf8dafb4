// SPDX-License-Identifier: Apache-2.0

package remediate

import (
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

// masterInFlight reports whether a Machine of the control plane is in flight, in whatever check: two at once would cost
// it its quorum (R-S10). A check that does nothing now counts with what it remembers.
func (d *decision) masterInFlight() bool {
	of := func(f remediation) bool { return f.ControlPlane }
	for _, c := range d.checks {
		if slices.ContainsFunc(c.next.InFlight, of) {
			return true
		}
	}
	for _, c := range d.idle {
		if slices.ContainsFunc(c.record.InFlight, func(f remediation) bool {
			return of(f) && d.Now.Before(f.At.Add(releaseAfter)) && !d.network.succeeded(d.Snapshot, c.h.Namespace, f.At.Time)
		}) {
			return true
		}
	}
	return false
}
