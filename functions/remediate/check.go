// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// check is one MachineHealthCheck in one decision, with the Machines that it selects.
type check struct {
	snapshot.Snapshot
	h           *machine.MachineHealthCheck // of a legacy check: what it was translated to
	legacy      *machine.LegacyHealthCheck  // or nil
	selector    labels.Selector
	policy      policy
	external    external
	stored      string // the record as it is stored
	record      record // as it counts now
	newer       bool   // the record is of a version that this one does not understand
	next        record // as it has to be
	settled     []plan.Note
	targets     []*target
	byUID       map[types.UID]*target // of the targets: a storm makes hundreds of them be asked for hundreds of times
	sum         sum
	restriction restriction // why nothing at all is remediated
	idles       restriction // why the check is not even asked
	network     network
	left        withdrawal // of its requests
}

// target is one Machine with what the check says about it.
type target struct {
	m *machine.Machine
	n *corev1.Node
	verdict
	recovering bool // healthy again, but not yet for as long as the check's healthy delay
	requested  bool // there is an object that asks somebody else to remediate it
}

// newCheck reads a check. Its error names what cannot be understood; a record that cannot be is kept as it is.
func newCheck(s snapshot.Snapshot, h *machine.MachineHealthCheck, legacy *machine.LegacyHealthCheck, net network) (*check, error) {
	c := &check{Snapshot: s, h: h, legacy: legacy, network: net, byUID: map[types.UID]*target{}}
	var err error
	if c.record, err = parseRecord(h.Annotations[machine.AnnotationInFlight]); err != nil {
		c.newer = true
		return c, fmt.Errorf("annotation %s: %w", machine.AnnotationInFlight, err)
	}
	c.stored, c.record = c.record.String(), c.record.bounded(s.Now)
	if err = understand(h); err != nil {
		return c, err
	}
	if c.selector, err = metav1.LabelSelectorAsSelector(&h.Spec.Selector); err != nil { // an empty one selects all (B48)
		return c, fmt.Errorf("spec.selector: %w", err)
	}
	if c.external, err = externalOf(h); err != nil {
		err = fmt.Errorf("spec.remediationTemplate: %w", err)
	} else {
		c.policy, err = policyOf(h)
	}
	for _, m := range s.Machines { // also for a check that is not understood, to say so on them
		if m.Namespace == h.Namespace && c.selector.Matches(labels.Set(m.Labels)) {
			t := c.look(m)
			c.targets, c.byUID[m.UID] = append(c.targets, t), t
		}
	}
	c.sum = c.count()
	return c, err
}

func (c *check) look(m *machine.Machine) *target {
	n := c.network.nodeOf(m)
	t := &target{m: m, n: n, verdict: c.judge(m, n), requested: c.request(m) != nil}
	if linked := c.network.found[m].Best; t.reason == "" && n != linked {
		t.message = fmt.Sprintf("node %s is Ready on the same instance as node %s, which the machine is linked to", n.Name, linked.Name)
	}
	healthy := machine.FindCondition(m.Status.Conditions, machine.ConditionHealthy)
	if t.reason == "" && c.policy.healthyDelay > 0 && healthy != nil { // what was never ill carries no condition
		t.recovering = healthy.Status != corev1.ConditionTrue || c.Now.Before(healthy.LastTransitionTime.Add(c.policy.healthyDelay))
	}
	return t
}

// name returns how plans and people call the check.
func (c *check) name() string { return plan.NameOf(c.object(c.h)) }

// object returns h, or the legacy check that it was translated from with h's metadata and status.
func (c *check) object(h *machine.MachineHealthCheck) plan.Object {
	if c.legacy == nil {
		return h
	}
	l := c.legacy.DeepCopy()
	l.ObjectMeta, l.Status = h.ObjectMeta, h.Status
	return l
}

// target returns the Machine of this UID, if the check selects it, or nil.
func (c *check) target(uid types.UID) *target { return c.byUID[uid] }

// does returns what the step that f is at does about its Machine. What Failed has no host to power on and off (B57).
func (c *check) does(f remediation, t *target) string {
	for _, s := range c.policy.steps[min(f.Step, len(c.policy.steps)-1):] {
		if s.does != stepPowerCycle || machine.Phase(t.m) != machine.PhaseFailed {
			return s.does
		}
	}
	return stepReplace
}

// maxUnhealthy returns how many of so many Machines may be unhealthy; a percentage is rounded down (B54), the default
// is all of them (B48).
func maxUnhealthy(h *machine.MachineHealthCheck, machines int) (int, error) {
	if h.Spec.MaxUnhealthy == nil {
		return machines, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(h.Spec.MaxUnhealthy, machines, false)
	switch {
	case err != nil:
		return 0, fmt.Errorf("%q: want a number or a percentage", h.Spec.MaxUnhealthy.StrVal)
	case n < 0:
		return 0, fmt.Errorf("%v is less than nothing", h.Spec.MaxUnhealthy)
	}
	return n, nil
}

func (t *target) controlPlane() bool {
	return machine.OfControlPlane(t.m, t.n)
}

// neverWorked reports whether a Machine never had a Node, or one that was never Ready, or never as far as anybody saw.
func (c *check) neverWorked(t *target) bool {
	return t.n == nil && t.m.Status.NodeRef == nil || t.n != nil && (neverReady(t.n) || c.silentSoon(t))
}

// silentSoon reports whether nothing is heard of a Node that was found unhealthy when it had just registered, and ever since: that its kubelet
// is silent took away since when it was not Ready. So was one whose Machine was unhealthy before already, because a new one may take so long
// to get its Node; else it had one that worked.
func (c *check) silentSoon(t *target) bool {
	made, told := t.n.CreationTimestamp.Time, machine.FindCondition(t.m.Status.Conditions, machine.ConditionHealthy)
	if !machine.NodeUnreachable(t.n) || told == nil || told.Status != corev1.ConditionFalse {
		return false
	}
	since := told.LastTransitionTime.Time
	soon, late := since.Before(made.Add(looksApart)), since.Before(made)
	return soon && (!late || since.Before(t.m.CreationTimestamp.Add(c.startup())))
}
