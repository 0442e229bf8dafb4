// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// silentFor is how long a health check has to tell of a Node that takes no Pods before that counts as sick: whose kubelet merely starts anew
// is back by then, and loses nobody the time for which he was unneeded.
const silentFor = 5 * time.Minute

// sick returns, by UID, the Nodes whose Machines a health check tells to be sick, of whatever set: it may have them replaced soon. Who empties
// another one in their place moves its Pods twice, and pays for a Node that nobody needs (RELIABILITY 2f). Whom people keep stays.
func (sc *scan) sick() map[types.UID]bool {
	all := map[types.UID]bool{}
	look := func(list []member) {
		for _, m := range list {
			told := machine.FindCondition(m.machine.Status.Conditions, machine.ConditionHealthy)
			if m.node == nil || told == nil || told.Status != corev1.ConditionFalse || machine.Kept(m.machine, machine.SickSince(m.machine, m.node), sc.Now) {
				continue
			}
			all[m.node.UID] = sc.ready(m.node) || !sc.Now.Before(told.LastTransitionTime.Add(silentFor))
		}
	}
	for _, g := range slices.Concat(sc.groups, sc.strangers) {
		look(g.members)
	}
	look(sc.lone)
	return all
}

// mayGoNow reports that nothing of its own keeps a Node: its time has come, its set can be changed, and it is known who of that goes. One that
// stays, as long as its health check merely tells of it, would take the places of Pods of others, and keep these.
func (sc *scan) mayGoNow(c candidate, r room) bool {
	if c.since.IsZero() {
		c.since = sc.now().Time
	}
	return !sc.Now.Before(sc.due(c)) && sc.unwritable(c.group) == "" && r.chosen(sc, c.group)
}
