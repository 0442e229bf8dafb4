// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// usualInFlight bounds the remediations under way of one check, unless its annotation does. Of control-plane Machines
// there is only ever one (R-S10).
const usualInFlight = 3

// vanishedPercent bounds them for Machines whose instance is gone, where that is more: nothing runs that waiting could spare, and half of a
// spot fleet shall be back within the hour. It is no more, in case that a cloud says so of what is only cut off.
const vanishedPercent = 10

// Why a sick Machine is not remediated now. Texts without counts: they stand on every Machine of a storm.
const (
	heldBack   = "not remediated: "
	heldOwner  = heldBack + "no controller would replace it"
	heldSkip   = heldBack + "annotation " + machine.AnnotationSkipRepair
	heldRuns   = heldBack + "its node is Ready, so the instance that was not found runs: delete the machine by hand if it shall go"
	heldFlight = heldBack + "as many as %s allows are in flight"
	heldMaster = heldBack + "another one of the control plane is in flight: %s of %s"
	heldGoing  = heldBack + "another one of the control plane is being deleted: %s"
	heldUnread = heldBack + "what %s has in flight cannot be read, and may be of the control plane"
	heldBudget = heldBack + "as many as configmap/" + machine.ConfigMapDisrupt + " allows at once are disrupted"
	heldHour   = heldBack + "as many as configmap/" + machine.ConfigMapDisrupt + " allows within an hour were disrupted"
	heldSlot   = heldBack + "another one of the control plane has the slot of configmap/" + machine.ConfigMapDisrupt + ": %s"
	heldClosed = heldBack + "%s is restricted: %s"
	heldSet    = heldBack + "none would come in its place: %s"
	heldVain   = heldBack + "its node is heard of, and what set %s makes does not come: see its machines without a node"
	heldNewer  = heldBack + "a newer version wrote the ledger of machineset %s, where none would come in its place"
	heldFailed = heldBack + "%d in a row of set %s never worked, next not before %s"
)

// admit works out what every check has in flight next: what is not over, and more where there is room. It is decided
// before anything is shown, so that every sick Machine shows why it is not remediated.
func (d *decision) admit() {
	for _, c := range d.checks {
		c.next, c.settled = c.settle()
		c.restriction = c.restricted(d.budget)
		c.giveWay()
		c.next.InFlight = slices.DeleteFunc(c.next.InFlight, func(f remediation) bool {
			t := c.target(f.UID)
			if t == nil {
				return false
			}
			if d.claimed[f.UID] != nil || !d.free(t.m, c.name()) { // another check was faster
				return true
			}
			d.claimed[f.UID] = c
			return false
		})
	}
	d.remember()
	for _, c := range d.checks {
		d.reserve(c)
	}
	for _, c := range d.checks {
		for _, t := range c.due() {
			d.enter(c, t)
		}
	}
}

// reserve wants slots for what is committed and not yet acted upon. The time of a step that waited begins anew.
func (d *decision) reserve(c *check) {
	for i, f := range c.next.InFlight {
		t := c.target(f.UID)
		switch {
		case t == nil || !t.sick(d.Now):
		case c.barred(f, t) != "":
			d.held[f.UID] = c.barred(f, t)
		case t.controlPlane() && d.masterOut(c, f) != "":
			d.held[f.UID] = d.masterOut(c, f)
		case !d.budget.take(t):
			d.held[f.UID] = d.budget.full(t)
		case c.waited(f, t):
			c.next.InFlight[i].At = metav1.NewTime(d.Now.Truncate(time.Second))
		}
	}
}

// enter puts a sick Machine in flight, or says why not.
func (d *decision) enter(c *check, t *target) {
	if d.claimed[t.m.UID] != nil || !d.free(t.m, c.name()) { // it is remediated, and says by whom
		return
	}
	step, at := c.entry(t)
	f := remediation{Machine: t.m.Name, UID: t.m.UID, At: metav1.NewTime(at), Step: step, ControlPlane: t.controlPlane()}
	owner := metav1.GetControllerOf(t.m)
	if set := machine.OwningSet(t.m); set != nil {
		f.Set = set.Name
	}
	if why := d.hindrance(c, t, f); why != "" {
		d.held[t.m.UID] = why
		return
	}
	if owner != nil && c.neverWorked(t) {
		c.next.Failing[owner.UID] = failure{Count: c.next.Failing[owner.UID].Count + 1, At: metav1.NewTime(d.Now)}
		c.keepTemplate(c.next.Seen, owner.UID)
	}
	if _, tried, _ := claimOn(t.m); f.Step > 0 && tried != c.does(f, t) {
		c.settled = append(c.settled, c.escalated(f, t))
	}
	c.next.InFlight = append(c.next.InFlight, f)
	d.claimed[t.m.UID] = c
	delete(d.held, t.m.UID)
}

// excused says why a sick Machine is nobody's to remediate (SPEC B7), or people do not want it to be, or "". A cloud that answered with
// empty lists for a while leaves a fleet that Failed for good and works: what runs is not drained for what was said once.
func (t *target) excused(now time.Time) string {
	until := machine.PreservedUntil(t.m, t.due)
	switch {
	case machine.IsPaused(t.m):
		return heldBack + machine.WhyPaused(t.m)
	case machine.Skipped(t.m):
		return heldSkip
	case now.Before(until):
		return heldBack + "preserved until " + machine.Stamp(until)
	case t.runs:
		return heldRuns
	}
	return ""
}

// barred says why f waits, in flight or not, whatever else is in flight, or "".
func (c *check) barred(f remediation, t *target) string {
	switch excuse, why := t.excused(c.Now), c.resting(f, t); {
	case excuse != "":
		return excuse
	case c.lost(f, t):
		return heldOwner
	case why != "":
		return why
	case c.restriction.reason != "":
		return fmt.Sprintf(heldClosed, c.name(), c.restriction.reason)
	}
	return ""
}

// lost reports that f would delete a Machine that no controller replaces (B56).
func (c *check) lost(f remediation, t *target) bool {
	return metav1.GetControllerOf(t.m) == nil && c.does(f, t) == stepReplace
}

// resting says why no other Machine would come in the place of one that f would delete, or "": scale-machineset makes none
// for its set, or leaves it to a newer version (RELIABILITY G9), or the cloud has no room. Whoever is in flight has its set read.
func (c *check) resting(f remediation, t *target) string {
	if c.inVain(f, t) {
		return fmt.Sprintf(heldVain, f.Set)
	}
	set := c.MachineSet(c.h.Namespace, f.Set)
	if set == nil || c.does(f, t) != stepReplace {
		return ""
	}
	if why := machine.Unserved(set); why != "" {
		return fmt.Sprintf(heldSet, why)
	}
	if _, err := c.Records.Ledger(set); errors.Is(err, machine.ErrNewer) {
		return fmt.Sprintf(heldNewer, set.Name)
	}
	return ""
}

// hindrance says why a sick Machine is not put in flight, or "".
func (d *decision) hindrance(c *check, t *target, f remediation) string {
	failing := c.failingSet(t)
	switch {
	case c.barred(f, t) != "":
		return c.barred(f, t)
	case d.Now.Before(failing.pause()): // of no failure that is long over
		return fmt.Sprintf(heldFailed, failing.Count, metav1.GetControllerOf(t.m).Name, machine.Stamp(failing.pause()))
	case !c.room(t):
		return fmt.Sprintf(heldFlight, c.name())
	case t.controlPlane() && len(d.masters()) > 0:
		return d.masters()[0].holds()
	case t.controlPlane() && d.masterGoes(t.m.Namespace) != "":
		return d.masterGoes(t.m.Namespace)
	case !d.budget.foresee(t):
		return d.budget.full(t)
	}
	return ""
}

// failingSet returns what is known of the set of a Machine that never worked (R-B27).
func (c *check) failingSet(t *target) failure {
	owner := metav1.GetControllerOf(t.m)
	if owner == nil || !c.neverWorked(t) {
		return failure{}
	}
	return c.next.Failing[owner.UID]
}

// room reports whether one more Machine, t, may be in flight, and be missing, without more being unhealthy than may be.
func (c *check) room(t *target) bool {
	limit := usualInFlight
	switch {
	case c.policy.maxInFlight != "":
		share, err := machine.ParseShare(c.policy.maxInFlight, c.sum.machines)
		if err != nil {
			return false // policyOf read it
		}
		limit = share
	case t.vanished():
		limit = max(usualInFlight, c.sum.machines*vanishedPercent/100)
	}
	limit = min(c.sum.most, limit)
	return c.flying() < limit && c.sum.unhealthy()+c.gone() <= c.sum.most
}

// vanished reports whether nothing runs of a Machine: its cloud says that the instance is gone, and nobody hears of a Node.
func (t *target) vanished() bool {
	return machine.LostAt(t.m) != nil && (t.n == nil || machine.NodeUnreachable(t.n))
}

// due returns the sick Machines, those longest due first; whoever the check had its try with goes behind the others, the
// latest try last, and behind them who was in flight until now.
func (c *check) due() []*target {
	var due []*target
	for _, t := range c.targets {
		if t.sick(c.Now) {
			due = append(due, t)
		}
	}
	flew := func(t *target) int {
		if c.record.has(t.m.UID) {
			return 1
		}
		return 0
	}
	slices.SortStableFunc(due, func(a, b *target) int {
		return cmp.Or(cmp.Compare(flew(a), flew(b)), c.tried(a).Compare(c.tried(b)), a.due.Compare(b.due), cmp.Compare(a.m.Name, b.m.Name))
	})
	return due
}

// tried returns when the step began that the check claimed a Machine for; the zero time if it did not.
func (c *check) tried(t *target) time.Time {
	if by, _, at := claimOn(t.m); by == c.name() {
		return at
	}
	return time.Time{}
}

// claimOn returns what the claim on a Machine says: the check, what its step does, and when that began; nothing of what no check wrote.
func claimOn(m *machine.Machine) (by, does string, at time.Time) {
	fields := strings.Fields(m.Annotations[machine.AnnotationRemediatedBy])
	if len(fields) != 3 {
		return "", "", time.Time{}
	}
	at, err := time.Parse(time.RFC3339, fields[2])
	if err != nil {
		return "", "", time.Time{}
	}
	return fields[0], fields[1], at
}

// entry returns the step at which a Machine is put in flight, and since when. It goes on with the step that it was claimed for last, until that had
// its time, then with the next, whoever tried the former, and stays at the last. Its claim is taken off once it is well: until then nothing is tried
// again that did not help, however often a flight of it ends. A claim does not say which step of its kind it was: the last is meant.
func (c *check) entry(t *target) (step int, at time.Time) {
	by, does, tried := claimOn(t.m)
	for i, s := range slices.Backward(c.policy.steps) {
		switch {
		case s.does != does:
		case !c.Now.Before(tried.Add(cmp.Or(s.timeout, releaseAfter))):
			return min(i+1, len(c.policy.steps)-1), c.Now
		case by == c.name() && !tried.After(c.Now):
			return i, tried
		default:
			return 0, c.Now
		}
	}
	return 0, c.Now
}
