// SPDX-License-Identifier: Apache-2.0

package drainnode

import (
	"fmt"
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

const (
	// reasonQueued is of a drain that has not begun, because another control-plane Node goes first, or nobody knows which one does.
	reasonQueued = "Queued"
	// reasonAgain is of a drain that has begun, and waits for the turn of a later Node of the instance.
	reasonAgain = "QueuedAgain"
	// inVain is how long a late drain waits for the answers to its evictions. After that it ends together with them: an invocation whose
	// evictions a webhook keeps waiting never comes to know them all.
	inVain = 10 * time.Minute
	// fewPods is how many Pods a message names.
	fewPods = 5
)

// limitOf returns the longest that the drain of m may take, if m's annotation says so. The error is what is wrong with
// the annotation; then there is no limit.
func limitOf(m *machine.Machine) (limit time.Duration, limited bool, err error) {
	text, ok := m.Annotations[machine.AnnotationDrainTimeout]
	if !ok {
		return 0, false, nil
	}
	limit, err = time.ParseDuration(text)
	if err == nil && limit <= 0 {
		err = fmt.Errorf("%q is not more than nothing", text)
	}
	if err != nil {
		return 0, false, fmt.Errorf("metadata.annotations[%s]: %w", machine.AnnotationDrainTimeout, err)
	}
	return limit, true, nil
}

// begin writes down when a drain with a limit began; without a limit nobody has to know. Waiting for hooks, or for
// another control-plane Node, is not part of it: the limit begins anew with a later Node whose turn was waited for. What a clock that
// was ahead wrote down begins now (RELIABILITY G7).
func (d drain) begin(notes ...plan.Note) []plan.Sequence {
	limit, limited, _ := limitOf(d.m)
	have := d.begun()
	if !limited || have != nil && !d.waited(have) && !machine.TooFar(have.LastTransitionTime.Time, d.Now, 0) {
		return nil
	}
	next := d.deleting()
	forget(next)
	next.Status.Conditions = machine.SetCondition(next.Status.Conditions, machine.False(machine.ConditionDrained, machinev1beta1.ConditionSeverityInfo,
		"Draining", "ends at "+machine.Stamp(d.Now.Add(limit))+" at the latest"), d.Now)
	return []plan.Sequence{{Do: []plan.Action{plan.UpdateStatus{Old: d.m, New: next, Why: "drain within " + limit.String()}}, Notes: notes}}
}

// waited reports whether the drain as it stands did nothing but wait for the turn of d's Node, which has come. It is none of the first Node's
// that a later one waits.
func (d drain) waited(have *machine.Condition) bool {
	return have.Reason == reasonQueued || have.Reason == reasonAgain && d.later
}

// forget takes off m since when it is drained, so that this begins anew.
func forget(m *machine.Machine) {
	m.Status.Conditions = slices.DeleteFunc(m.Status.Conditions, func(c machine.Condition) bool { return c.Type == machine.ConditionDrained })
}

// late reports whether the drain has reached its limit. It ends with those Pods alone that this invocation has asked to leave, however many
// they are: who asks may have been away, or slow, until now.
func (d drain) late() bool { return d.overdue(0) }

// overdue reports whether the drain has been late for so long.
func (d drain) overdue(by time.Duration) bool {
	limit, limited, _ := limitOf(d.m)
	began := d.begun()
	return limited && began != nil && !d.Now.Before(began.LastTransitionTime.Add(limit).Add(by))
}

// timedOut ends the drain with what is left to do: no Pod is deleted against its budget, but the instance goes,
// because the user wants that more (RELIABILITY 2e).
func (d drain) timedOut(why string) []plan.Sequence {
	limit, _, _ := limitOf(d.m)
	message := fmt.Sprintf("after %v %s", limit, why)
	told := plan.Warning(d.m, "DrainTimedOut", "Node drain timed out: "+message).From(source)
	return d.set(machine.True(machine.ConditionDrained, "DrainTimedOut", message), []plan.Note{told})
}

// left names the Pods that have not left yet.
func (e eviction) left() string {
	var names []string
	add := func(p *corev1.Pod) { names = append(names, p.Namespace+"/"+p.Name) }
	for _, a := range slices.Concat(e.refused, e.untried) {
		add(a.Pod)
	}
	for _, p := range e.leaving {
		add(p)
	}
	if len(names) == 0 {
		return ""
	}
	return "pods " + plan.Few(names, fewPods)
}
