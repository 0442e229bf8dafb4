// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
)

// Backoff of a group whose Nodes do not come (SPEC C51).
const (
	firstBackoff   = 5 * time.Minute
	longestBackoff = 30 * time.Minute
	failureMemory  = 3 * time.Hour
)

// maxUpcoming bounds the Nodes of one group that are planned with before they exist: what a mistyped number may cost.
const maxUpcoming = 5000

// followRequest keeps the request for a group's Nodes: open while some are awaited, whoever asked for them, timed out
// when they took too long. Only an open request of a group that is not backed off has Nodes that Pods may wait for;
// else the Pods would seem to have a place for ever, and nobody would try another group (SPEC C45, C47).
func (sc *scan) followRequest(g *group) {
	sc.forget(g)
	sc.forgetUseless(g)
	sc.noticeLost(g)
	awaited := g.awaited()
	sc.change(g, func(n *autoscaling.NodeGroup) {
		switch {
		case awaited == 0:
			n.Request = nil
		case n.Request == nil:
			n.Request = &autoscaling.Request{At: *sc.now()}
		case !n.Request.TimedOut && !sc.Now.Before(n.Request.At.Add(g.own.MaxNodeProvisionTime)):
			r := *n.Request
			r.TimedOut = true
			n.Request = &r
		}
	})
	sc.followWaves(g)
	after := sc.state.Groups[g.id]
	if after.Request == nil {
		return
	}
	if after.Request.TimedOut && !sc.wasTimedOut(g) {
		took := sc.Now.Sub(after.Request.At.Time)
		sc.tell(&sc.notes, corev1.EventTypeWarning, "ScaleUpTimedOut", fmt.Sprintf("Nodes added to group %s failed to register within %s", g.id, took))
		sc.fail(g, "timed out")
		sc.change(g, func(n *autoscaling.NodeGroup) { n.FailedUIDs = g.nodeless() })
	}
	if !after.Request.TimedOut && !sc.backedOff(g) {
		g.upcoming = min(awaited, maxUpcoming)
	}
}

func (sc *scan) wasTimedOut(g *group) bool {
	r := sc.before.Groups[g.id].Request
	return r != nil && r.TimedOut
}

// noticeLost counts Machines that failed, or have had no Node for too long, each once (SPEC C48, C49). One that had a Node
// came: whatever became of it since says nothing about the next one.
func (sc *scan) noticeLost(g *group) {
	known := sc.state.Groups[g.id].FailedUIDs
	var lost []types.UID
	for _, m := range g.members {
		if m.leaving || m.came() {
			continue
		}
		failed := machine.Phase(m.machine) == machine.PhaseFailed
		late := sc.late(g, m.machine)
		seen := slices.Contains(known, m.machine.UID)
		switch {
		case failed && !seen:
			message := "machine " + m.machine.Name + " failed"
			if text := m.machine.Status.ErrorMessage; text != nil {
				message = *text
			}
			sc.tell(&sc.notes, corev1.EventTypeWarning, "ScaleUpFailed", fmt.Sprintf("Failed adding 1 nodes to group %s due to ProvisioningFailed; source errors: %s", g.id, message))
			sc.fail(g, message)
		case late && !seen:
			took := sc.Now.Sub(m.machine.CreationTimestamp.Time)
			sc.tell(&sc.notes, corev1.EventTypeWarning, "ScaleUpTimedOut", fmt.Sprintf("Nodes added to group %s failed to register within %s", g.id, took))
			sc.fail(g, "timed out")
		}
		if failed || late || seen {
			lost = append(lost, m.machine.UID)
		}
	}
	slices.Sort(lost)
	sc.change(g, func(n *autoscaling.NodeGroup) { n.FailedUIDs = lost })
}

// nodeless returns the Machines that never had a Node, sorted.
func (g *group) nodeless() (all []types.UID) {
	for _, m := range g.members {
		if !m.leaving && !m.came() {
			all = append(all, m.machine.UID)
		}
	}
	slices.Sort(all)
	return all
}

// fail backs a group off. A failure during a backoff does not prolong it; one after it doubles it.
func (sc *scan) fail(g *group, reason string) {
	sc.change(g, func(n *autoscaling.NodeGroup) {
		n.LastFailure = sc.now()
		if n.BackoffUntil != nil && sc.Now.Before(n.BackoffUntil.Time) {
			return
		}
		backoff := min(firstBackoff<<min(n.Failures, 8), longestBackoff)
		n.Failures++
		until := sc.now().Add(backoff)
		n.BackoffUntil = sc.now()
		n.BackoffUntil.Time = until
		n.Reason = clip(reason) // of many groups there has to be room
	})
}

func (sc *scan) backedOff(g *group) bool {
	until := sc.state.Groups[g.id].BackoffUntil
	return until != nil && sc.Now.Before(until.Time)
}

// forgetFormer drops what became of another set, which had the name of the group's before that was made: its Nodes did not come, and this
// one would be backed off for them, and lowered by Machines that are about to be made. A clock that was ahead when the set was made tells
// nothing of that: all would be forgotten until its time has come.
func (sc *scan) forgetFormer(g *group) {
	made, n := &g.set.CreationTimestamp, sc.state.Groups[g.id]
	if made.After(sc.Now) {
		return
	}
	if n.Request != nil && n.Request.At.Before(made) || n.LastFailure.Before(made) {
		sc.change(g, func(n *autoscaling.NodeGroup) {
			*n = autoscaling.NodeGroup{Resize: n.Resize, Useless: n.Useless} // these say what they are of
		})
	}
}

// forget drops failures that are long past; but where a newer version wrote the ledger none as long as Machines are there that brought no
// Node: nobody takes them back, and each time one more would be asked for.
func (sc *scan) forget(g *group) {
	n := sc.state.Groups[g.id]
	if n.LastFailure != nil && !sc.Now.Before(n.LastFailure.Add(failureMemory)) && !(sc.newerLedger(g) && inVain(n)) {
		sc.change(g, func(n *autoscaling.NodeGroup) {
			n.Failures, n.LastFailure, n.BackoffUntil, n.Reason = 0, nil, nil, ""
		})
	}
}
