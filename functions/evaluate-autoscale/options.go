// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// readOptions gives every group the settings that its set wants for itself (SPEC B67), and tells of those that nobody can
// read: then the cluster's hold.
func (sc *scan) readOptions() {
	for _, g := range sc.groups {
		var wrong []string
		if g.own, wrong = sc.settings.Options(g.set.Annotations); len(wrong) > 0 {
			sc.notes = append(sc.notes, plan.Warning(g.set, "FailedValidate", strings.Join(wrong, "; ")).From(source))
		}
	}
}

// ofGroup returns what holds for a group, or for Nodes of none.
func (sc *scan) ofGroup(g *group) autoscaling.Options {
	if g == nil {
		o, _ := sc.settings.Options(nil)
		return o
	}
	return g.own
}

// threshold is how much of a Node may be used for it to go, by what counts on it (SPEC C55).
func (sc *scan) threshold(c candidate) float64 {
	if sc.gpus[c.use.Resource] {
		return sc.ofGroup(c.group).GPUUtilizationThreshold
	}
	return sc.ofGroup(c.group).UtilizationThreshold
}

// starting reports whether a Node is so young that it need not be ready yet (SPEC C3).
func (sc *scan) starting(n *corev1.Node) bool {
	return sc.Now.Before(n.CreationTimestamp.Add(sc.ofGroup(sc.of[n.UID]).MaxNodeStartupTime))
}

// ready reports whether a Node takes Pods. One that is to have GPUs is not before it offers them, for as long as it may
// take to start (SPEC B67): what waits for them waits for this Node.
func (sc *scan) ready(n *corev1.Node) bool {
	_, lost := sc.lostGPU(n)
	return scheduling.Ready(n, sc.settings.StartupTaints) && (!lost || !sc.starting(n))
}

// lostGPU reports whether a Node is to have GPUs and offers none, and by which name it would offer them.
func (sc *scan) lostGPU(n *corev1.Node) (name corev1.ResourceName, lost bool) {
	var set *machine.MachineSet
	var a map[string]string
	if g := sc.of[n.UID]; g != nil {
		set, a = g.set, g.set.Annotations
	}
	if scheduling.Equipped(set, n) {
		return "", false
	}
	return corev1.ResourceName(machine.GPUType(a)), true
}

// due is when a Node has been unneeded for long enough to go; one that is not ready has a time of its own (SPEC C58). Where that is the
// shorter one, it runs from when the Node ceased to be ready: what is kept warm does not go for a moment's silence.
func (sc *scan) due(c candidate) time.Time {
	o, is := sc.ofGroup(c.group), machine.NodeCondition(c.node, corev1.NodeReady)
	ready, unready := c.since.Add(o.UnneededTime), c.since.Add(o.UnreadyTime)
	switch {
	case c.ready:
		return ready
	case !unready.Before(ready):
		return unready
	case is == nil || is.Status == corev1.ConditionTrue: // since when it takes no Pods nobody says
		return ready
	}
	unready = slices.MaxFunc([]time.Time{unready, is.LastTransitionTime.Add(o.UnreadyTime)}, time.Time.Compare)
	return slices.MinFunc([]time.Time{ready, unready}, time.Time.Compare)
}

const (
	// delayPrefix begins the names of annotations by which somebody asks for time before a Node goes.
	delayPrefix = "delay-deletion.cluster-autoscaler.kubernetes.io/"
	// maxDelay is how much of it there is, once the Node's Pods had theirs (SPEC C63).
	maxDelay = 2 * time.Minute
)

// delayed reports whether an empty Node is kept a while for somebody who wants to see to something first. The time begins
// when the Pods' own is over, at the latest, so that nothing has to be remembered.
func (sc *scan) delayed(r autoscaling.Removal, n *corev1.Node) bool {
	until := r.At.Add(settleTime + maxDelay)
	if r.Drain {
		until = r.At.Add(maxPodEviction + maxDelay)
	}
	if !sc.Now.Before(until) {
		return false
	}
	for name := range n.Annotations {
		if strings.HasPrefix(name, delayPrefix) {
			return true
		}
	}
	return false
}
