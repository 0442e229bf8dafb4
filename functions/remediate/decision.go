// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// decision is all checks of one call of Decide, with what they have in common.
type decision struct {
	snapshot.Snapshot
	whole   bool // all Machines and Nodes were read: only then anything is remediated
	network network
	checks  []*check
	idle    []*check // that remediate nothing now, and stand behind their claims: paused, or not understood
	done    int      // checks that are being deleted
	budget  *budget
	// claimed says which check remediates a Machine; held says why a sick one is not remediated now.
	claimed map[types.UID]*check
	held    map[types.UID]string
}

func newDecision(s snapshot.Snapshot) *decision {
	d := &decision{Snapshot: s, whole: s.Has(snapshot.All("Machine")), network: networkOf(s), claimed: map[types.UID]*check{}, held: map[types.UID]string{}}
	for _, h := range s.HealthChecks {
		d.add(newCheck(s, h, nil, d.network))
	}
	rules := s.ConfigMap(machine.Namespace, machine.ConfigMapUnhealthy)
	for _, l := range s.LegacyHealthChecks {
		h, err := translate(l, rules)
		c, failed := newCheck(s, h, l, d.network)
		if err != nil { // nothing is known of when a Machine is sick
			c.targets, c.byUID = nil, nil
		}
		d.add(c, cmp.Or(failed, err))
	}
	d.budget = budgetOf(s, d.over)
	return d
}

// add adds a check, unless people paused it (B50) or are done with it.
func (d *decision) add(c *check, err error) {
	_, paused := c.h.Annotations[machine.AnnotationPaused]
	switch {
	case c.h.DeletionTimestamp != nil:
		d.done++
	case paused:
		c.idles = restriction{machine.ReasonPaused, "nothing is remediated: annotation " + machine.AnnotationPaused}
		d.idle = append(d.idle, c)
	case err != nil:
		c.idles = restriction{"NotUnderstood", "nothing is remediated: " + err.Error()}
		d.idle = append(d.idle, c)
	default:
		d.checks = append(d.checks, c)
	}
}

// verdicts returns for every Machine that a check looks at what is said about it. Where only idle checks look, it is also
// said that they are.
func (d *decision) verdicts() map[*machine.Machine]verdict {
	all := worst(d.checks)
	for _, c := range d.idle {
		for m, v := range worst([]*check{c}) {
			if have, known := all[m]; known && (have.reason != "" || v.reason == "") {
				continue
			}
			all[m] = v
			if v.reason != "" {
				d.held[m.UID] = fmt.Sprintf(heldClosed, c.name(), c.idles.reason)
			}
		}
	}
	return all
}

// over reports that a slot of the budget is not needed any more: its Machine is gone, or it was ours and the Machine
// recovered. One of ours for the control plane is until another Machine is Ready in its place.
func (d *decision) over(slot machine.Slot) bool {
	m := d.Machine(slot.Namespace, slot.Machine)
	if m == nil || m.UID != slot.UID {
		return !slot.ControlPlane || slot.By != name || d.network.succeeded(d.Snapshot, slot.Namespace, slot.At.Time)
	}
	return slot.By == name && m.DeletionTimestamp == nil && d.claimed[m.UID] == nil &&
		!slices.ContainsFunc(d.idle, func(c *check) bool { return c.standsBehind(m.UID) })
}

// claim is what stands on a Machine that a check remediates: check, step, begin of the step, or of its latest try.
func (c *check) claim(f remediation, t *target) string {
	return strings.Join([]string{c.name(), c.does(f, t), machine.Stamp(c.latest(f, t))}, " ")
}

// free reports whether no other check than the named one remediates m: none that has it in flight stands behind its
// claim. One that is idle does as well, and what it began goes on; one whose record only a newer version understands may
// (RELIABILITY G9).
func (d *decision) free(m *machine.Machine, asks string) bool {
	by := claimantOf(m)
	if by == "" || by == asks {
		return true
	}
	for _, other := range d.checks {
		if other.name() == by && other.record.has(m.UID) {
			return false
		}
	}
	return !slices.ContainsFunc(d.idle, func(c *check) bool { return c.name() == by && c.standsBehind(m.UID) })
}

// standsBehind reports whether an idle check has a Machine in flight, as far as its record can be read.
func (c *check) standsBehind(uid types.UID) bool { return c.newer || c.record.has(uid) }
