// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
)

// IsNodeOf reports whether n is the Node that m is linked to. A Node that was made anew under the same name is
// another Node (R-B32).
func IsNodeOf(m *Machine, n *corev1.Node) bool {
	return n != nil && m.Status.NodeRef != nil && m.Status.NodeRef.Name == n.Name && m.Status.NodeRef.UID == n.UID
}

// SameInstance reports whether m and n both say which instance is theirs, and mean the same (SPEC B5).
func SameInstance(m *Machine, n *corev1.Node) bool {
	return SameID(ProviderID(m), n.Spec.ProviderID)
}

// SameID reports whether two providerIDs name the same instance; an empty one names none. Many are compared with many: of most the last
// letter tells enough.
func SameID(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	return a == b || a[len(a)-1]|' ' == b[len(b)-1]|' ' && InstanceOf(a) == InstanceOf(b) // the bit between capitals and small letters
}

// An InstanceID is the instance that a providerID names. Whoever compares those of a Machine, an instance and a Node compares this:
// clouds' controllers do not write them as drivers do.
type InstanceID struct{ cloud, id string }

// InstanceOf returns the instance that a providerID names; the zero InstanceID if it is empty. The id of an instance is one in all of its
// cloud where a region or a zone stands before it, which not everybody writes: OpenStack's controller writes a region if it is told to
// (OS_CCM_REGIONAL), a kubelet on AWS may leave the zone out. The other ids that differ in their letters' case alone are those of Azure
// and of BIOSes.
func InstanceOf(providerID string) InstanceID {
	switch cloud, rest, _ := strings.Cut(providerID, "://"); cloud {
	case "aws", "openstack":
		return InstanceID{cloud, rest[strings.LastIndexByte(rest, '/')+1:]}
	case "azure", "vsphere":
		return InstanceID{cloud, strings.ToLower(rest)}
	}
	return InstanceID{id: providerID}
}

// ProviderID returns the recorded id of m's instance, or "".
func ProviderID(m *Machine) string {
	if m.Spec.ProviderID == nil {
		return ""
	}
	return *m.Spec.ProviderID
}

// BareMetalHost returns namespace/name of the host that a provider id names, or "" (SPEC E34).
func BareMetalHost(providerID string) string {
	rest, ok := strings.CutPrefix(providerID, SchemeBareMetal)
	if end := strings.LastIndexByte(rest, '/'); ok && end > 0 {
		return rest[:end]
	}
	return ""
}

// Phase returns the phase of m, or "".
func Phase(m *Machine) string {
	if m.Status.Phase == nil {
		return ""
	}
	return *m.Status.Phase
}

// HasFinalizer reports whether m stays, when it is deleted, until nothing of it is left in a cloud (SPEC B13).
func HasFinalizer(m *Machine) bool { return slices.Contains(m.Finalizers, Finalizer) }

// NodeUnreachable reports whether nothing was heard of the Node for so long that its state is unknown (SPEC B34).
func NodeUnreachable(n *corev1.Node) bool {
	c := NodeCondition(n, corev1.NodeReady)
	return c != nil && c.Status == corev1.ConditionUnknown
}

// NodeReports reports whether the Node's kubelet says how it is, well or not, as far as the node controller knows: that calls a Node
// Unknown within a minute of the last word. One of which nothing was ever heard does not report.
func NodeReports(n *corev1.Node) bool {
	c := NodeCondition(n, corev1.NodeReady)
	return c != nil && c.Status != corev1.ConditionUnknown
}

// heardFor is how old the last report of a kubelet may be for NodeHeard: where nothing changes it reports every five minutes, somewhat
// earlier or later, unless its nodeStatusReportFrequency says otherwise.
const heardFor = 10 * time.Minute

// NodeHeard reports whether the Node is Ready and its kubelet reported lately. It spares a look at other Nodes and is no proof that
// nothing runs: that a Node runs, NodeReady says. A kubelet may report as rarely as it likes, its Lease is what it lives by, and the node
// controller makes Ready Unknown within a minute where neither is renewed.
func NodeHeard(n *corev1.Node, now time.Time) bool {
	c := NodeCondition(n, corev1.NodeReady)
	return NodeReady(n) && (c.LastHeartbeatTime.IsZero() || now.Sub(c.LastHeartbeatTime.Time) < heardFor)
}

// restartFor is how long a Node that restarts is not Ready at most, as that of a host.
const restartFor = 15 * time.Minute

// NodeMayRestart reports whether the Node is not Ready, and was a moment ago: whoever looks in the one minute in which it does not say that it
// runs knows no more than before about what it runs on. One that is new has not run yet.
func NodeMayRestart(n *corev1.Node, now time.Time) bool {
	c := NodeCondition(n, corev1.NodeReady)
	if c == nil || NodeReady(n) || now.Before(n.CreationTimestamp.Add(restartFor)) {
		return false
	}
	return !TooFar(c.LastTransitionTime.Time, now, 0) && now.Before(c.LastTransitionTime.Add(restartFor))
}

// AnnotatedMachine returns the Machine that AnnotationMachine of n names; ok is false unless both parts are names that
// an object can have. The annotation is a hint: kubelets may write it.
func AnnotatedMachine(n *corev1.Node) (namespace, name string, ok bool) {
	namespace, name, ok = strings.Cut(n.Annotations[AnnotationMachine], "/")
	ok = ok && len(validation.ValidateNamespaceName(namespace, false)) == 0 && len(validation.NameIsDNSSubdomain(name, false)) == 0
	return namespace, name, ok
}
