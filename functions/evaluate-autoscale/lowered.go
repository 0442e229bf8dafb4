// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"strings"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// growth begins the ids of plans that make groups larger for Pods.
const growth = "grow"

// noticeLowered notices that somebody lowered a set while the Nodes that it grew by were awaited: people, or a tool that keeps replicas as
// they are in Git. The group is backed off as after any growth that failed, or it would grow and be lowered again, scan by scan, and each
// time Machines are made and paid for; and it is told on the set, and on the MachineAutoscaler that wants the set resized.
func (sc *scan) noticeLowered(g *group) {
	n, last := sc.state.Groups[g.id], g.set.Annotations[machine.AnnotationLastPlan]
	if pendingResize(g, n) || !strings.HasPrefix(last, growth+"-") && !strings.HasPrefix(last, lifting+"-") {
		return
	}
	most := int32(0)
	for _, w := range n.Waves {
		most = max(most, w.To)
	}
	if g.target >= most || sc.backedOff(g) {
		return
	}
	sc.fail(g, fmt.Sprintf("somebody lowered it from %d to %d replicas while its nodes were on their way", most, g.target))
	message := fmt.Sprintf("machineset %s/%s was lowered from %d to %d replicas while its nodes were on their way: it is left alone until %s. "+
		"What is resized must not have its replicas kept by another tool", g.set.Namespace, g.set.Name, most, g.target, machine.Stamp(sc.state.Groups[g.id].BackoffUntil.Time))
	sc.notes = append(sc.notes, plan.Warning(g.set, "ReplicasReverted", message).From(source))
	if owner := ownerOf(sc.Snapshot, g.set); owner != nil {
		sc.notes = append(sc.notes, plan.Warning(owner, "ReplicasReverted", message).From(maSource))
	}
}
