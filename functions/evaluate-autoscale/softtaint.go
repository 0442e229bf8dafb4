// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// maxSoftTaints bounds the soft taints that one scan sets or takes off (SPEC C60).
const maxSoftTaints = 10

// softTaint marks Nodes that nobody needs, so that the scheduler rather takes others, and unmarks those that are needed
// again (SPEC C60, S62). It is off unless the settings ask for it, as in OpenShift (B111); no timer depends on it.
func (sc *scan) softTaint(unneeded []candidate) {
	since := map[types.UID]string{}
	ca := clusterAutoscaler(sc.Snapshot)
	if ca != nil && ca.Annotations[autoscaling.SoftTaintAnnotation] == string(autoscaling.Enabled) {
		for _, c := range unneeded {
			if c.group.target > c.group.min {
				since[c.node.UID] = strconv.FormatInt(c.since.Unix(), 10)
			}
		}
	}
	room := maxSoftTaints - sc.nodesWritten()
	for _, n := range sc.Nodes {
		at, wanted := since[n.UID]
		marked := sc.mine.isMarked(n)
		if wanted == marked || room < 1 || sc.touched(n) || sc.leaves(n) {
			continue
		}
		room--
		next := n.DeepCopy()
		next.Spec.Taints = slices.DeleteFunc(next.Spec.Taints, isCandidate)
		done := "Successfully removed DeletionCandidateTaint from node " + n.Name
		if wanted {
			next.Spec.Taints = append(next.Spec.Taints, corev1.Taint{Key: machine.TaintCandidate, Value: at, Effect: corev1.TaintEffectPreferNoSchedule})
			done = "Successfully added DeletionCandidateTaint on node " + n.Name
		}
		sc.redo = append(sc.redo, plan.Sequence{
			Do: []plan.Action{plan.Update{Old: n, New: next, Why: word(wanted, "nobody needs it", "it is needed again")}}, Notes: []plan.Note{plan.Log(done)},
		})
	}
}

func isCandidate(t corev1.Taint) bool { return t.Key == machine.TaintCandidate }
