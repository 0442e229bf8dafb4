// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

const (
	// looksApart is how far apart two looks are at what is not believed at the first: a Node that is gone, a condition
	// that is due already when it is first seen (RELIABILITY 2f).
	looksApart = time.Minute
	// With a timeout shorter than shortTimeout there is no time for that: the Node of a spot instance that is reclaimed
	// has two minutes left.
	shortTimeout    = time.Minute
	looksApartShort = 10 * time.Second
	// terminating is the condition of a Node whose instance the cloud is about to take away, as an agent on it heard (SPEC B60).
	terminating = corev1.NodeConditionType("Terminating")
	// firstWord is how much later than its Node a kubelet's first word may be: they are of two clocks.
	firstWord = 10 * time.Second
	// startupDefault is how long a Machine may be without a Node unless its check says otherwise (B48).
	startupDefault = 10 * time.Minute
	// cycledFor is how long a power-cycle may take where a Machine may start for ever: nobody may carry out what people wished, or have
	// forgotten, and hosts that check their memory boot in half an hour.
	cycledFor = time.Hour
)

// Reasons of a Machine's health condition.
const (
	reasonFailed   = "MachineFailed"
	reasonInvalid  = "InvalidConfiguration"
	reasonNotFound = "NodeNotFound"
	reasonStartup  = "NodeStartup"
	reasonNode     = "UnhealthyNode"
	// reasonAnother is of one that is healthy by another Node than the linked one.
	reasonAnother = "AnotherNode"
	// reasonDoubted is of one of which nobody knows whether a Node that is heard of is its own.
	reasonDoubted = "AmbiguousNode"
)

// verdict is what a check says about a Machine. Without a reason it is: healthy.
type verdict struct {
	reason  string
	message string    // facts with absolute times, so that waiting changes nothing; of what is healthy: by which other Node
	due     time.Time // when the Machine is sick; zero: not by waiting
	early   bool      // not worth telling yet
	sight   string    // what has to be seen twice; empty: once is enough
	young   bool      // not yet for looksApart: it makes no storm
	cycled  bool      // its host is power-cycled, and not by a step of the check
	leaves  bool      // its instance is about to be taken away, whatever is done
	runs    bool      // it Failed because the cloud did not show its instance, whose Node is Ready all the same
}

func (v verdict) sick(now time.Time) bool { return !v.due.IsZero() && now.After(v.due) }

// judge applies B51 in its order. A Machine that is being deleted is judged no more.
func (c *check) judge(m *machine.Machine, n *corev1.Node) verdict {
	updated := m.CreationTimestamp.Time
	if m.Status.LastUpdated != nil {
		updated = m.Status.LastUpdated.Time
	}
	switch {
	case m.DeletionTimestamp != nil:
		return verdict{}
	case hopeless(m) && !c.outlived(m): // its replacement would fail as well (R-B27)
		return verdict{reason: reasonInvalid, message: "the spec can never work, a replacement would not help"}
	case machine.Phase(m) == machine.PhaseFailed:
		v := verdict{reason: reasonFailed, message: "phase Failed since " + machine.Stamp(updated), due: updated}
		if v.runs = machine.LostAt(m) != nil && ready(n); v.runs {
			if ill := c.conditions(m, n); ill.reason != "" {
				return ill
			}
		}
		if hopeless(m) {
			v.message += ", made before its set's template was changed"
		}
		if machine.TooFar(updated, c.Now, 0) { // by a clock that was ahead (RELIABILITY G7)
			v.due = c.Now.Add(-time.Second)
		}
		return v
	case n == nil && c.network.found[m].Doubted() != nil: // what runs there is not nobody's: link-node tells why it is not linked
		return verdict{reason: reasonDoubted, message: "node " + c.network.found[m].Doubted().Name + " may be its, or another machine's"}
	case n == nil && m.Status.NodeRef == nil:
		return c.starting(m, updated)
	case n == nil:
		since, before := c.record.seen(m, reasonNotFound, c.Now)
		v := verdict{reason: reasonNotFound, due: since.Add(looksApart), sight: reasonNotFound, early: !before}
		v = c.startsOver(m, v, reasonNotFound, since)
		v.message = "node " + m.Status.NodeRef.Name + " not found" + v.span(since)
		return v
	}
	return c.conditions(m, n)
}

// startup returns how long a Machine may be without a Node.
func (c *check) startup() time.Duration {
	if t := c.h.Spec.NodeStartupTimeout; t != nil {
		return t.Duration
	}
	return startupDefault
}

// starting judges a Machine without a Node; it is told about once half of its time is gone. Where a clock that was ahead wrote since
// when it is, that counts from the first look (RELIABILITY G7).
func (c *check) starting(m *machine.Machine, since time.Time) verdict {
	timeout := c.startup()
	if timeout <= 0 { // never sick, but not healthy either (B53)
		return verdict{reason: reasonStartup, message: "no node yet", early: true}
	}
	sight := ""
	if machine.TooFar(since, c.Now, 0) {
		sight = reasonStartup
		since, _ = c.record.seen(m, sight, c.Now)
	}
	v := verdict{reason: reasonStartup, due: since.Add(timeout), sight: sight}
	v.message = "no node" + v.span(since)
	v.early = c.Now.Before(since.Add(timeout / 2))
	return v
}

// startsOver gives a Machine whose host is power-cycled the time of one that starts, from the first look at what it lacks: the Node is taken
// away with the power, and a host boots for long. Whom the check has claimed is under its steps, which have times of their own.
func (c *check) startsOver(m *machine.Machine, v verdict, what string, first time.Time) verdict {
	_, wished := m.Annotations[machine.AnnotationExternalRepair]
	v.cycled = (wished || machine.Restarting(m)) && claimantOf(m) != c.name()
	if !v.cycled {
		return v
	}
	v.sight = what
	if until := first.Add(cmp.Or(c.startup(), cycledFor)); until.After(v.due) {
		v.due = until
	}
	return v
}

// conditions judges a Node; of several conditions that match, the one that is due first speaks.
func (c *check) conditions(m *machine.Machine, n *corev1.Node) verdict {
	var first verdict
	for _, u := range c.h.Spec.UnhealthyConditions {
		have := machine.NodeCondition(n, u.Type)
		if have == nil || have.Status != u.Status {
			continue
		}
		what := fmt.Sprintf("%s=%s", u.Type, u.Status)
		since := have.LastTransitionTime.Time
		seen, before := c.record.seen(m, what, c.Now)
		unknown := since.IsZero() || machine.TooFar(since, c.Now, 0)
		if unknown { // nobody wrote it, or a clock that was ahead: it counts from the first look (RELIABILITY G7)
			since = seen
		}
		v := verdict{reason: reasonNode, due: since.Add(u.Timeout.Duration), young: c.Now.Before(since.Add(looksApart)), leaves: leaves(m, u)}
		v.message = fmt.Sprintf("node %s has %s", n.Name, what)
		if apart := c.apart(m, u, v, since, before); apart > 0 || unknown {
			v.sight, v.early = what, !before
			if twice := seen.Add(apart); twice.After(v.due) {
				v.due = twice
			}
		}
		if v = c.startsOver(m, v, what, seen); v.cycled {
			v.early = !before
		}
		v.message += v.span(since)
		if first.reason == "" || v.due.Before(first.due) {
			first = v
		}
	}
	return first
}

// leaves reports whether a condition says that an instance is about to be taken away, of a Machine whose instance may be, by a check that wastes
// no time over it (SPEC B60).
func leaves(m *machine.Machine, u machinev1beta1.UnhealthyCondition) bool {
	_, may := m.Labels[machine.LabelInterruptible]
	return may && u.Type == terminating && u.Status == corev1.ConditionTrue && u.Timeout.Duration < shortTimeout
}

// ready reports whether there is a Node and it is Ready.
func ready(n *corev1.Node) bool { return n != nil && machine.NodeReady(n) }

// neverReady reports whether n was not Ready since it registered: what a kubelet says of itself first is that it is not,
// and the time of that stays until it is.
func neverReady(n *corev1.Node) bool {
	ready := machine.NodeCondition(n, corev1.NodeReady)
	return ready != nil && ready.Status != corev1.ConditionTrue && !n.CreationTimestamp.IsZero() &&
		!ready.LastTransitionTime.After(n.CreationTimestamp.Add(firstWord))
}

// apart is how far apart two looks at a condition must be; zero if one is enough: with a long timeout the Machine told
// of it well before it was due. What is due at the first look already was nowhere to be seen until then: the Node's clock
// may be behind, or nobody looked.
func (c *check) apart(m *machine.Machine, u machinev1beta1.UnhealthyCondition, v verdict, since time.Time, before bool) time.Duration {
	told := machine.FindCondition(m.Status.Conditions, machine.ConditionHealthy)
	switch {
	case u.Timeout.Duration < shortTimeout:
		return looksApartShort
	case before:
		return looksApart
	case v.due.After(c.Now.Add(looksApart)), told != nil && strings.HasPrefix(told.Message, v.message+sinceWhen(since)):
		return 0
	}
	return looksApart
}

// hopeless reports whether m Failed because what it asks for can never work.
func hopeless(m *machine.Machine) bool {
	return machine.Phase(m) == machine.PhaseFailed && m.Status.ErrorReason != nil && *m.Status.ErrorReason == machinev1beta1.InvalidConfigurationMachineError
}

// span tells since when, and until when; while nobody remembers the first look, which would move, neither.
func (v verdict) span(since time.Time) string {
	text := ""
	if !v.early {
		text = sinceWhen(since)
	}
	if !v.early && !v.due.IsZero() {
		text += ", due " + machine.Stamp(v.due)
	}
	if v.cycled {
		text += ", while its host is power-cycled"
	}
	return text
}

func sinceWhen(t time.Time) string { return " since " + machine.Stamp(t) }
