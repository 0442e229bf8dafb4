// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// lifting begins the ids of plans that make groups as large as their minimum.
const lifting = "minimum"

// enforceMinimums lifts groups to their minimum (SPEC C36, B107): all of them if the settings say so, else those whose
// minimum a schedule raises now, because that is what the schedule is for (W9). Backoff and the limits of the cluster
// hold all the same.
func (sc *scan) enforceMinimums() {
	total := sc.total()
	for _, g := range sc.groups {
		n := sc.state.Groups[g.id]
		if g.target >= g.min || !sc.settings.EnforceNodeGroupMinSize && !sc.raised(g) || sc.backedOff(g) || pendingResize(g, n) {
			continue
		}
		if sc.unwritable(g) != "" {
			continue
		}
		one := size{nodes: 1}
		if g.known {
			one = sc.sizeOf(g.template.Node)
		}
		count, _, _ := sc.room(total, one)
		more := min(int64(g.min-g.target), count)
		if more < 1 {
			sc.notes = append(sc.notes, plan.Log(fmt.Sprintf("%s stays below its minimum of %d: the limits of the cluster leave no room", g.id, g.min)))
			continue
		}
		total = total.plus(one, more)
		to := g.target + int32(more)
		sc.notes = append(sc.notes, plan.Log(fmt.Sprintf("Enforcing the minimum of %s: %d->%d (min: %d)", g.id, g.target, to, g.min)))
		sc.tell(&sc.notes, corev1.EventTypeNormal, "ScaledUpGroup",
			fmt.Sprintf("Scale-up: setting group %s size to %d instead of %d (max: %d)", g.id, to, g.target, g.max))
		sc.change(g, func(n *autoscaling.NodeGroup) {
			n.Request = &autoscaling.Request{At: *sc.now()}
			n.Waves = append(slices.Clone(n.Waves), sc.wave(to, nil)) // for nobody: should somebody lower the set meanwhile, that is noticed
		})
		sc.resize(g, sc.planID(lifting, g.id), to)
		sc.lifted = append(sc.lifted, &option{group: g, more: int32(more)})
	}
}

// raised reports whether a schedule of the group's MachineAutoscaler raises its minimum now.
func (sc *scan) raised(g *group) bool {
	owner := ownerOf(sc.Snapshot, g.set)
	if owner == nil {
		return false
	}
	least, _, err := owner.BoundsAt(sc.Now)
	return err == nil && least > owner.Spec.MinReplicas
}
