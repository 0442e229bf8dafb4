// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// Why scale-down leaves a Node alone, however little it is used.
const (
	whyElsewhere    = whyOther + "another node, which is ready, fits its machine as well"
	whyPaused       = whyOther + "its machine is paused: "
	whyPreserved    = whyOther + "its machine is sick, and preserved by annotation " + machine.AnnotationPreserve
	whySkipped      = whyOther + "its machine is sick, and left as it is by annotation " + machine.AnnotationSkipRepair
	whyControlPlane = whyOther + "it is of the control plane, and no other one would come in its place"
)

// bar returns why the Node of a Machine is left alone, or "": because people want that, or want to look at what is sick (D19), because its host
// runs Pods under another name, because another API has the say over the Machine, whose drain and instance are that one's (SPEC B7), or
// because of the control plane what goes has to be replaced (R-S10).
func (sc *scan) bar(m member) string {
	switch {
	case m.node.Annotations[disabledAnnotation] == "true":
		return whyDisabled
	case sc.preserved(m):
		return word(machine.Skipped(m.machine), whySkipped, whyPreserved)
	case sc.elsewhere(m):
		return whyElsewhere
	case machine.IsPaused(m.machine):
		return whyPaused + machine.WhyPaused(m.machine)
	case machine.IsControlPlane(m.node):
		return whyControlPlane
	}
	return ""
}

// preserved reports whether people want to look at a Machine that is sick, if only by the word of its health check, or do not want it to be
// healed. One that is well they keep by its Node's annotation.
func (sc *scan) preserved(m member) bool {
	told := machine.FindCondition(m.machine.Status.Conditions, machine.ConditionHealthy)
	failed, ready := machine.Phase(m.machine) == machine.PhaseFailed, machine.NodeReady(m.node)
	sick := told != nil && told.Status == corev1.ConditionFalse
	return (failed || sick || !ready) && machine.Kept(m.machine, machine.SickSince(m.machine, m.node), sc.Now)
}

// elsewhere reports whether a Machine runs Pods on another Node than the one that it is linked to, as where its host got another name: with
// the Machine that one goes as well, and what is on it was never asked whether it may move, nor where to (RELIABILITY 2e).
func (sc *scan) elsewhere(m member) bool {
	return machine.SeveralNodes(m.machine) && slices.ContainsFunc(sc.Nodes, func(n *corev1.Node) bool {
		return n.UID != m.node.UID && machine.NodeReady(n) && machine.Fits(m.machine, n)
	})
}
