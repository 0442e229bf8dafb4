// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"time"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Conditions of a Machine (SPEC B10).
const (
	ConditionCreated        = machinev1beta1.MachineCreated
	ConditionInstanceExists = machinev1beta1.InstanceExistsCondition
	ConditionDrained        = machinev1beta1.MachineDrained
	ConditionDrainable      = machinev1beta1.MachineDrainable
	ConditionTerminable     = machinev1beta1.MachineTerminable
	ConditionPaused         = machinev1beta1.ConditionType("Paused")
	// ConditionHealthy is False on a Machine that a MachineHealthCheck finds sick, or will at the time that it names.
	ConditionHealthy = machinev1beta1.ConditionType("HealthCheckSucceeded")
	// ConditionSoleNode is False on a Machine that more than one Node was seen to fit (B63), until only one does.
	ConditionSoleNode = machinev1beta1.ConditionType("SoleNode")
	// ConditionControlPlane is True on a Machine whose Node was of the control plane when it was seen last, where neither its labels nor its spec
	// say so: the Node may be gone when that matters (B32).
	ConditionControlPlane = machinev1beta1.ConditionType("ControlPlane")
)

// Conditions of a MachineHealthCheck of our own, beside those of SPEC B55 and B58.
const (
	// ConditionMachinesHealthy tells apart why Machines are not counted as healthy.
	ConditionMachinesHealthy = machinev1beta1.ConditionType("MachinesHealthy")
	// ConditionRemediating is True while remediations are under way, and names them.
	ConditionRemediating = machinev1beta1.ConditionType("Remediating")
)

// FindCondition returns the condition of type t, or nil.
func FindCondition(cs []Condition, t machinev1beta1.ConditionType) *Condition {
	if i := slices.IndexFunc(cs, func(c Condition) bool { return c.Type == t }); i >= 0 {
		return &cs[i]
	}
	return nil
}

// SeveralNodes reports whether more than one Node was seen to fit m: the others may still be there.
func SeveralNodes(m *Machine) bool {
	c := FindCondition(m.Status.Conditions, ConditionSoleNode)
	return c != nil && c.Status == corev1.ConditionFalse
}

// ReasonPaused is why a MachineHealthCheck that people paused remediates nothing, and why nobody touches a Machine that they paused; it is
// no fault, and alarms nobody.
const ReasonPaused = "Paused"

// Reasons of ConditionDrained: the Node is empty; there was none to drain, never one or none any more.
const (
	ReasonDrained  = "Drained"
	ReasonNoNode   = "NoNode"
	ReasonNodeGone = "NodeGone"
)

// NodeDrained returns the condition Drained of a Machine whose Node is empty. It holds as long as the Machine is linked to the
// Node with this UID; where it is not linked yet, that of the Node that is empty.
func NodeDrained(linked types.UID) Condition {
	return True(ConditionDrained, ReasonDrained, "drained for the node with UID "+string(linked))
}

// NodeGone returns the condition Drained of a Machine whose Node, the one with this UID, is gone.
func NodeGone(node types.UID) Condition {
	return True(ConditionDrained, ReasonNodeGone, "node with UID "+string(node)+" is gone")
}

// Drained reports whether nothing is left to be drained for m: the condition says so, and if it says that there was no
// Node, there still is none, or that the Node was drained or gone, m is linked to no other since (RELIABILITY 2e): a Node that
// people deleted registers anew without its cordon, and Pods come to it.
func Drained(m *Machine) bool {
	c := FindCondition(m.Status.Conditions, ConditionDrained)
	if c == nil || c.Status != corev1.ConditionTrue {
		return false
	}
	ref := m.Status.NodeRef
	switch c.Reason {
	case ReasonNoNode:
		return ref == nil
	case ReasonNodeGone:
		return ref == nil || c.Message == NodeGone(ref.UID).Message
	case ReasonDrained: // an earlier version did not say which Node
		return ref == nil || c.Message == "" || c.Message == NodeDrained(ref.UID).Message
	}
	return true
}

// FoundNoNode reports whether m counts as drained because it had no Node, or none any more: it may have one by now.
func FoundNoNode(m *Machine) bool {
	c := FindCondition(m.Status.Conditions, ConditionDrained)
	return Drained(m) && (c.Reason == ReasonNoNode || c.Reason == ReasonNodeGone)
}

// NodeDrainedOf reports whether m is linked to a Node, and counts as drained because that is empty.
func NodeDrainedOf(m *Machine) bool {
	c := FindCondition(m.Status.Conditions, ConditionDrained)
	return m.Status.NodeRef != nil && Drained(m) && c.Reason == ReasonDrained
}

// TakesPods reports whether n is the Node that m is linked to, is to stay, and takes new Pods.
func TakesPods(m *Machine, n *corev1.Node) bool {
	return IsNodeOf(m, n) && n.DeletionTimestamp == nil && !n.Spec.Unschedulable
}

// SetCondition returns cs with want in place of the condition of its type. The transition time is now if the status
// differs from what stood there, else it is kept; an equal condition changes nothing, then cs itself is returned. The
// input is not modified.
func SetCondition(cs []Condition, want Condition, now time.Time) []Condition {
	want.LastTransitionTime = metav1.NewTime(now.Truncate(time.Second))
	i := slices.IndexFunc(cs, func(c Condition) bool { return c.Type == want.Type })
	if i < 0 {
		return append(slices.Clip(cs), want)
	}
	if cs[i].Status == want.Status {
		want.LastTransitionTime = cs[i].LastTransitionTime
	}
	if cs[i] == want {
		return cs
	}
	out := slices.Clone(cs)
	out[i] = want
	return out
}

// True returns a condition of type t that holds.
func True(t machinev1beta1.ConditionType, reason, message string) Condition {
	return Condition{Type: t, Status: corev1.ConditionTrue, Reason: reason, Message: message}
}

// False returns a condition of type t that does not hold.
func False(t machinev1beta1.ConditionType, severity machinev1beta1.ConditionSeverity, reason, message string) Condition {
	return Condition{Type: t, Status: corev1.ConditionFalse, Severity: severity, Reason: reason, Message: message}
}

// NodeCondition returns the condition of type t of a Node, or nil.
func NodeCondition(n *corev1.Node, t corev1.NodeConditionType) *corev1.NodeCondition {
	for i := range n.Status.Conditions {
		if n.Status.Conditions[i].Type == t {
			return &n.Status.Conditions[i]
		}
	}
	return nil
}

// NodeReady reports whether the Node's Ready condition is True.
func NodeReady(n *corev1.Node) bool {
	c := NodeCondition(n, corev1.NodeReady)
	return c != nil && c.Status == corev1.ConditionTrue
}

// IsControlPlane reports whether the Node carries a control-plane role (SPEC B32).
func IsControlPlane(n *corev1.Node) bool { return ofControlPlane(n.Labels) }

// OfControlPlane reports whether m is of the control plane: by its role, by what its spec gives its Node, or by that Node, nil if that is
// not known, as it is or was seen last.
func OfControlPlane(m *Machine, n *corev1.Node) bool {
	return saysControlPlane(m) || n != nil && IsControlPlane(n) || wasControlPlane(m)
}

func saysControlPlane(m *Machine) bool {
	return m.Labels[LabelRole] == roleMaster || ofControlPlane(m.Spec.Labels)
}

func wasControlPlane(m *Machine) bool {
	return FindCondition(m.Status.Conditions, ConditionControlPlane) != nil
}

// RoleNoted reports whether m says what its Node n is: of the control plane or not.
func RoleNoted(m *Machine, n *corev1.Node) bool {
	return wasControlPlane(m) == (IsControlPlane(n) && !saysControlPlane(m))
}

// NoteRole writes down on m, whose Node n is, that this is of the control plane, where m itself does not say so, or that it is no more.
func NoteRole(m *Machine, n *corev1.Node, now time.Time) {
	if IsControlPlane(n) && !saysControlPlane(m) {
		m.Status.Conditions = SetCondition(m.Status.Conditions, True(ConditionControlPlane, "NodeRole", "node "+n.Name+" is of the control plane"), now)
		return
	}
	m.Status.Conditions = slices.DeleteFunc(m.Status.Conditions, func(c Condition) bool { return c.Type == ConditionControlPlane })
}

// MakesControlPlane reports whether the Machines that a set makes are of the control plane.
func MakesControlPlane(set *MachineSet) bool {
	m := &Machine{Spec: set.Spec.Template.Spec}
	m.Labels = set.Spec.Template.Labels
	return OfControlPlane(m, nil)
}

const roleMaster = "master"

func ofControlPlane(labels map[string]string) bool {
	_, cp := labels[LabelControlPlane]
	_, master := labels[LabelMaster]
	return cp || master
}
