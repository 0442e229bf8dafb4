// SPDX-License-Identifier: Apache-2.0

package linknode

import (
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// counted writes that more than one Node fits m, as of a host that registered under two names, and, once a scan sees its own alone, that it
// is so no more. Whoever lets m go by an event reads its own alone, and afterwards nobody knows whose the others were (2e).
func counted(s snapshot.Snapshot, m *machine.Machine, fit []*corev1.Node) []plan.Action {
	c, why := machine.False(machine.ConditionSoleNode, machinev1beta1.ConditionSeverityInfo, "AmbiguousNode", "more than one node fits"), "more than one node fits"
	switch several := machine.SeveralNodes(m); {
	case machine.IsPaused(m):
		return nil
	case !several && len(fit) > 1:
	case several && s.Request.Scan() && len(fit) == 1 && machine.IsNodeOf(m, fit[0]):
		c, why = machine.True(machine.ConditionSoleNode, "", ""), "no other node fits any more"
	default:
		return nil
	}
	next := m.DeepCopy()
	next.Status.Conditions = machine.SetCondition(next.Status.Conditions, c, s.Now)
	return []plan.Action{plan.UpdateStatus{Old: m, New: next, Why: why}}
}
