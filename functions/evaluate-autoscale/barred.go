// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import "github.com/machine-functions/machine-functions/shared/machine"

// Why scale-down leaves a Node alone, however little it is used.
const (
	whyPaused       = whyOther + "another API has the say over its machine"
	whyControlPlane = whyOther + "it is of the control plane, and no other one would come in its place"
)

// bar returns why the Node of a Machine is left alone, or "": because people want that, because another API has the say over the Machine,
// whose drain and instance are that one's (SPEC B7), or because of the control plane what goes has to be replaced (R-S10).
func bar(m member) string {
	switch {
	case m.node.Annotations[disabledAnnotation] == "true":
		return whyDisabled
	case machine.IsPaused(m.machine):
		return whyPaused
	case machine.IsControlPlane(m.node):
		return whyControlPlane
	}
	return ""
}
