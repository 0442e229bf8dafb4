// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	// holdFor is how long a remediation counts as under way at least.
	holdFor = time.Minute
	// releaseAfter is when it no longer does, unless a step follows or it binds the control plane (RELIABILITY 2f).
	releaseAfter = 30 * time.Minute
	// A set whose replacements never work gets the next one after failurePause, then after twice as long, and so on.
	failurePause = 15 * time.Minute
	failureLimit = 8 * time.Hour
	// forgetAfter is when a set is tried as if nothing had ever failed there.
	forgetAfter = 24 * time.Hour
)

// settle returns the record with what is over left out, with what was seen, and with the notes to tell about it.
func (c *check) settle() (record, []plan.Note) {
	next := record{Schema: recordSchema, Storm: c.storm()}
	var notes []plan.Note
	for _, f := range c.record.InFlight {
		f, flies, told := c.proceed(f)
		notes = append(notes, told...)
		if flies {
			next.InFlight = append(next.InFlight, f)
		}
	}
	next.Seen, next.Failing = c.sightings(), c.failing()
	c.templates(next)
	return next, notes
}

// proceed takes a remediation to its next step when the time for its step is over, which runs from the claim. It reports false when the remediation
// is over, is not wanted any more, or has held up others long enough.
func (c *check) proceed(f remediation) (next remediation, flies bool, notes []plan.Note) {
	t := c.target(f.UID)
	f.Set = replacing(f, t)
	if !c.wanted(f, t) {
		return f, false, nil
	}
	escalates := c.escalates(f, t)
	switch {
	case escalates && !c.Now.Before(f.At.Add(c.policy.steps[f.Step].timeout)):
		f.Step, f.At = f.Step+1, metav1.NewTime(c.Now.Truncate(time.Second))
		return f, true, []plan.Note{c.escalated(f, t)}
	case escalates || !c.late(f) || c.binds(f, t):
		return f, true, nil
	case t == nil:
		why := f.Machine + ": not over after " + releaseAfter.String() + ": others may go on" + c.missing(f)
		return f, false, []plan.Note{plan.Warning(c.object(c.h), "RemediationReleased", why)}
	}
	return f, false, []plan.Note{plan.Warning(t.m, "RemediationReleased", "not over after "+releaseAfter.String()+": others may go on"+block(t.m))}
}

// escalated tells that the step that f is at follows.
func (c *check) escalated(f remediation, t *target) plan.Note {
	return plan.Warning(t.m, "RemediationEscalated", "the next step is "+c.does(f, t)+": "+t.message)
}

// late reports whether f holds up others longer than a remediation may.
func (c *check) late(f remediation) bool { return !c.Now.Before(f.At.Add(releaseAfter)) }

// wanted reports whether f is under way, and people do not want anything else. Of the control plane they may keep what was tried in vain, but not
// have the next one taken by that: it stays ill.
func (c *check) wanted(f remediation, t *target) bool {
	return c.underWay(f, t) && (t == nil || !t.sick(c.Now) || t.excused(c.Now) == "" || c.binds(f, t))
}

// replacing returns the set that is waited for once the Machine is gone: one that was nobody's may have been adopted since it was put in
// flight, or come to another set (R-S10).
func replacing(f remediation, t *target) string {
	if t == nil {
		return f.Set
	}
	if set := machine.OwningSet(t.m); set != nil {
		return set.Name
	}
	return f.Set
}

// escalates reports whether a remediation that has begun has a step left, and its target is still unhealthy and not to be kept.
func (c *check) escalates(f remediation, t *target) bool {
	return f.Step < len(c.policy.steps)-1 && t != nil && t.reason != "" && t.excused(c.Now) == "" && c.began(f, t)
}

// began reports whether the step that f is at was claimed: until then nothing was tried.
func (c *check) began(f remediation, t *target) bool {
	return t.m.Annotations[machine.AnnotationRemediatedBy] == c.claim(f, t)
}

// waited reports whether a step with a timeout was held back until now, so that there would be less time for it.
func (c *check) waited(f remediation, t *target) bool {
	if f.Step >= len(c.policy.steps)-1 || c.began(f, t) || c.Now.Before(f.At.Add(holdFor)) {
		return false
	}
	return toldHeld(t) || !c.Now.Before(f.At.Add(c.policy.steps[f.Step].timeout))
}

// toldHeld reports whether a Machine says that it was not remediated at the last look.
func toldHeld(t *target) bool {
	told := machine.FindCondition(t.m.Status.Conditions, machine.ConditionHealthy)
	return told != nil && strings.Contains(told.Message, heldBack)
}

// missed reports whether a step with a timeout was not begun for as long as it may take, and nothing holds it back: its claim may be refused, and
// as its time begins anew each time, that would never be over.
func (c *check) missed(f remediation, t *target) bool {
	return f.Step < len(c.policy.steps)-1 && !c.began(f, t) && !toldHeld(t) && c.barred(f, t) == "" &&
		!c.Now.Before(f.At.Add(c.policy.steps[f.Step].timeout))
}

// underWay reports whether a Machine is not healthy yet or going, or gone without its set having all Machines ready
// again. In the place of a control-plane Machine another one has to be Ready, whoever makes it (R-S10).
func (c *check) underWay(f remediation, t *target) bool {
	if t != nil {
		return t.m.DeletionTimestamp != nil || t.reason != "" || t.recovering
	}
	if c.Now.Before(f.At.Add(holdFor)) {
		return true
	}
	if f.ControlPlane {
		return !c.network.succeeded(c.Snapshot, c.h.Namespace, f.At.Time)
	}
	set := c.MachineSet(c.h.Namespace, f.Set)
	return set != nil && (set.Spec.Replicas == nil || c.readyOf(set)+c.sickOf(set) < int(*set.Spec.Replicas))
}

// readyOf counts the Machines of a set that are Ready, as they were read: the set's status may be older, for as long as nobody writes it,
// and would go on calling whole what is replaced no more.
func (c *check) readyOf(set *machine.MachineSet) int {
	n := 0
	for _, m := range c.Machines {
		if m.DeletionTimestamp == nil && machine.Controls(set, m) && ready(c.network.nodeOf(m)) {
			n++
		}
	}
	return n
}

// sickOf counts the Machines of a set that are not Ready for a reason of their own: they wait for their turn, or nobody
// may remediate them, so nobody can wait for them.
func (c *check) sickOf(set *machine.MachineSet) int {
	n := 0
	for _, t := range c.targets {
		if machine.Controls(set, t.m) && (t.sick(c.Now) || t.reason == reasonInvalid) && !ready(t.n) {
			n++
		}
	}
	return n
}

// missing is what a set lacks in whose Machine's place none is Ready.
func (c *check) missing(f remediation) string {
	set := c.MachineSet(c.h.Namespace, f.Set)
	if set == nil || set.Spec.Replicas == nil {
		return ""
	}
	return fmt.Sprintf("; of machineset %s %d of %d are ready", set.Name, c.readyOf(set), *set.Spec.Replicas)
}

// block is what keeps a Machine from going: Pods, or hooks before the drain or after it.
func block(m *machine.Machine) string {
	for _, t := range []machinev1beta1.ConditionType{machine.ConditionDrainable, machine.ConditionDrained, machine.ConditionTerminable} {
		if c := machine.FindCondition(m.Status.Conditions, t); c != nil && c.Status == corev1.ConditionFalse && c.Message != "" && m.DeletionTimestamp != nil {
			return "; " + c.Message
		}
	}
	return ""
}

func (c *check) sightings() map[types.UID]sighting {
	seen := map[types.UID]sighting{}
	for _, t := range c.targets {
		if t.sight == "" || len(seen) >= maxSightings {
			continue
		}
		at, _ := c.record.seen(t.m, t.sight, c.Now)
		seen[t.m.UID] = sighting{What: t.sight, At: metav1.NewTime(at)}
	}
	return seen
}

// failing keeps what is known of sets whose Machines never worked, until one does, or the set makes others.
func (c *check) failing() map[types.UID]failure {
	failing := map[types.UID]failure{}
	for set, f := range c.record.Failing {
		if c.Now.Before(f.At.Add(forgetAfter)) && !c.works(set, f.At.Time) && !c.another(set) {
			failing[set] = f
		}
	}
	return failing
}

// works reports whether a Machine that a set made since then, or that was repaired since, has a Node and is well.
func (c *check) works(set types.UID, since time.Time) bool {
	repaired := func(t *target) bool {
		return slices.ContainsFunc(c.record.InFlight, func(f remediation) bool { return f.UID == t.m.UID && !f.At.Time.Before(since) })
	}
	return slices.ContainsFunc(c.targets, func(t *target) bool {
		owner := metav1.GetControllerOf(t.m)
		return owner != nil && owner.UID == set && (!t.m.CreationTimestamp.Time.Before(since) || repaired(t)) &&
			t.n != nil && t.reason == "" && t.m.DeletionTimestamp == nil
	})
}

// pause returns until when a set with failures waits for its next remediation.
func (f failure) pause() time.Time {
	return f.At.Add(min(failurePause<<min(max(0, f.Count-1), 10), failureLimit))
}

// storm returns the storm that the check is in, or was in until a moment ago: more Machines are ill than may be, or
// the network is broken.
func (c *check) storm() *storm {
	s, now := c.record.Storm, metav1.NewTime(c.Now.Truncate(time.Second))
	raging := c.sum.most > 0 && c.sum.ill() > c.sum.most || c.network.partitioned()
	switch {
	case c.policy.cooldown == 0:
		return nil
	case raging && s == nil:
		return &storm{Since: now}
	case raging:
		return &storm{Since: s.Since}
	case s != nil && s.Over == nil:
		return &storm{Since: s.Since, Over: &now}
	case s != nil && !c.Now.Before(s.Over.Add(c.policy.cooldown)):
		return nil
	}
	return s
}
