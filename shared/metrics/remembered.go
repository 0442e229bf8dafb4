// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"context"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// secondsOfRemoval lie between a Node that is empty and one whose Pods have the longest grace periods.
var secondsOfRemoval = []float64{5, 10, 20, 30, 60, 120, 180, 300, 450, 600, 900, 1200, 1800}

// remembered measures what a write of the autoscaler's state says for the first time: Machines that bring no Node, and removals
// that are over. Whoever's write succeeds is the only one to say so.
func (m *Metrics) remembered(ctx context.Context, s snapshot.Snapshot, a plan.Update) {
	before, ok := stateIn(a.Old)
	after, okAfter := stateIn(a.New)
	if m.scaling.removal == nil || !ok || !okAfter {
		return
	}
	for id, g := range after.Groups {
		if g.LastFailure == nil { // nothing failed, or it is a set that is not resized
			continue
		}
		for _, uid := range g.FailedUIDs {
			if !slices.Contains(before.Groups[id].FailedUIDs, uid) {
				m.scaling.uncreated.Add(ctx, 1, with(keyReason.With(whyUncreated(s, uid))))
			}
		}
	}
	for _, r := range before.Removals {
		if slices.ContainsFunc(after.Removals, func(still autoscaling.Removal) bool { return still.NodeUID == r.NodeUID }) {
			continue
		}
		kept := slices.ContainsFunc(s.Nodes, func(n *corev1.Node) bool { return n.UID == r.NodeUID })
		m.scaling.removal.Record(ctx, s.Now.Sub(r.At.Time).Seconds(), with(keyDeleted.With(strconv.FormatBool(!kept))))
	}
}

// whyUncreated returns the reason of a Machine that brings no Node, in the words of the failed scale-ups.
func whyUncreated(s snapshot.Snapshot, uid types.UID) string {
	if slices.ContainsFunc(s.Machines, func(m *machine.Machine) bool { return m.UID == uid && machine.Phase(m) == machine.PhaseFailed }) {
		return failedToScale["ScaleUpFailed"]
	}
	return failedToScale["ScaleUpTimedOut"]
}

// stateIn reads what the autoscaler remembers, if that is what an object holds.
func stateIn(o plan.Object) (autoscaling.State, bool) {
	cm, ok := o.(*corev1.ConfigMap)
	if !ok || cm == nil || cm.Namespace != machine.Namespace || cm.Name != machine.ConfigMapStatus {
		return autoscaling.State{}, false
	}
	state, err := autoscaling.ParseState(cm.Data[autoscaling.StateKey])
	return state, err == nil
}
