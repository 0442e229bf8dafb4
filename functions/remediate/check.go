// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// strategyBareMetal asks for a power-cycle instead of a new Machine (SPEC B57).
const strategyBareMetal = "external-baremetal"

// check is one MachineHealthCheck in one decision, with the Machines that it selects.
type check struct {
	snapshot.Snapshot
	h        *machine.MachineHealthCheck
	selector labels.Selector
	record   record
	targets  []target
	network  network
}

// target is one Machine with what the check says about it.
type target struct {
	m *machine.Machine
	n *corev1.Node
	verdict
}

// checksOf returns the checks that are not paused (B50) and can be understood, with a warning about each other one.
func checksOf(s snapshot.Snapshot) ([]check, []plan.Note) {
	var all []check
	var warnings []plan.Note
	net := networkOf(s)
	for _, h := range s.HealthChecks {
		if _, paused := h.Annotations[machine.AnnotationPausedMHC]; paused || h.DeletionTimestamp != nil {
			continue
		}
		c, err := newCheck(s, h)
		c.network = net
		if err != nil {
			warnings = append(warnings, plan.Warning(h, "RemediationRestricted", "nothing is remediated: "+err.Error()))
			continue
		}
		all = append(all, c)
	}
	return all, warnings
}

// newCheck reads a check. Its error names the field.
func newCheck(s snapshot.Snapshot, h *machine.MachineHealthCheck) (check, error) {
	c := check{Snapshot: s, h: h}
	var err error
	if c.selector, err = metav1.LabelSelectorAsSelector(&h.Spec.Selector); err != nil { // an empty one selects all (B48)
		return check{}, fmt.Errorf("spec.selector: %w", err)
	}
	if h.Spec.RemediationTemplate != nil {
		return check{}, fmt.Errorf("spec.remediationTemplate: remediation by template is not supported")
	}
	if _, err = maxUnhealthy(h, 1); err != nil {
		return check{}, fmt.Errorf("spec.maxUnhealthy: %w", err)
	}
	if c.record, err = parseRecord(h.Annotations[machine.AnnotationInFlight]); err != nil {
		return check{}, fmt.Errorf("annotation %s: %w", machine.AnnotationInFlight, err)
	}
	for _, m := range s.Machines {
		if c.selects(m) {
			n := nodeOf(s, m)
			c.targets = append(c.targets, target{m: m, n: n, verdict: c.judge(m, n)})
		}
	}
	return c, nil
}

func (c check) selects(m *machine.Machine) bool {
	return m.Namespace == c.h.Namespace && c.selector.Matches(labels.Set(m.Labels))
}

func (c check) external() bool {
	return c.h.Annotations[machine.AnnotationStrategy] == strategyBareMetal
}

// maxUnhealthy returns how many of so many Machines may be unhealthy; a percentage is rounded down (B54), the default
// is all of them (B48).
func maxUnhealthy(h *machine.MachineHealthCheck, machines int) (int, error) {
	if h.Spec.MaxUnhealthy == nil {
		return machines, nil
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(h.Spec.MaxUnhealthy, machines, false)
	return max(0, n), err
}

// nodeOf returns m's Node: the linked one, else the one that carries m's providerID; a Node that nobody linked again
// yet is not missing.
func nodeOf(s snapshot.Snapshot, m *machine.Machine) *corev1.Node {
	if m.Status.NodeRef == nil {
		return nil
	}
	if n := s.Node(m.Status.NodeRef.Name); machine.IsNodeOf(m, n) {
		return n
	}
	for _, n := range s.Nodes {
		if machine.SameInstance(m, n) {
			return n
		}
	}
	return nil
}

func owned(m *machine.Machine) bool { return metav1.GetControllerOf(m) != nil }
