// SPDX-License-Identifier: Apache-2.0

package remediate

import (
	"fmt"
	"slices"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// setID tells sets apart: what a Machine says of its owner is of its own namespace.
type setID struct {
	namespace string
	uid       types.UID
}

// refusedIn returns the sets that have a Machine which never had a Node, and which the cloud refuses to make for want of room. What Failed
// says nothing of now: nobody asks the cloud for it any more.
func refusedIn(s snapshot.Snapshot) map[setID]bool {
	refused := map[setID]bool{}
	for _, m := range s.Machines {
		why, set := m.Status.ErrorReason, machine.OwningSet(m)
		if set != nil && why != nil && *why == machinev1beta1.InsufficientResourcesMachineError && m.Status.NodeRef == nil &&
			m.DeletionTimestamp == nil && machine.Phase(m) != machine.PhaseFailed {
			refused[setID{m.Namespace, set.UID}] = true
		}
	}
	return refused
}

// heard reports whether a Machine has a Node that worked and that is heard of: its Pods may run, ill as it is.
func (t *target) heard() bool { return t.n != nil && !machine.NodeUnreachable(t.n) && !neverReady(t.n) }

// vain reports whether nothing comes now of what t's set makes, as far as anybody knows: the cloud has no room for one of its Machines; or one
// is being replaced where the last ones never worked, and that in its place has yet to show more.
func (c *check) vain(t *target) bool {
	set := machine.OwningSet(t.m)
	if set == nil {
		return false
	}
	_, failing := c.next.Failing[set.UID]
	return c.network.refused[setID{t.m.Namespace, set.UID}] || failing && slices.ContainsFunc(c.next.InFlight, func(f remediation) bool {
		former := c.target(f.UID)
		return f.Set == set.Name && (former == nil || former.m.DeletionTimestamp != nil && former.m.Status.NodeRef == nil)
	})
}

// inVain reports whether f would delete a Machine whose Node is heard of, and nothing would come in its place. What is taken away anyway goes:
// holding it spares nothing, and its Pods would be cut off (SPEC B60).
func (c *check) inVain(f remediation, t *target) bool {
	return c.does(f, t) == stepReplace && !t.leaves && t.heard() && c.vain(t)
}

// giveWay ends the flights whose places others shall have: nothing would come in place of the Machine, or its step was never begun. Who was claimed
// for its step stays in flight, as it may be deleted by whoever looked a moment ago; so does what binds the control plane.
func (c *check) giveWay() {
	var stay []remediation
	for _, f := range c.next.InFlight {
		t, why := c.target(f.UID), ""
		switch {
		case t == nil || !t.sick(c.Now) || c.began(f, t) || c.binds(f, t):
		case c.inVain(f, t):
			why = fmt.Sprintf(heldVain, f.Set)
		case c.missed(f, t):
			why = "not begun after " + c.policy.steps[f.Step].timeout.String()
			c.discount(t)
		}
		if why == "" {
			stay = append(stay, f)
			continue
		}
		c.settled = append(c.settled, plan.Warning(t.m, "RemediationReleased", why+": others may go on"))
	}
	c.next.InFlight = stay
}

// discount takes back that what t's set makes failed once more, which was counted when t was put in flight: nothing was tried on it (R-B27).
func (c *check) discount(t *target) {
	owner := metav1.GetControllerOf(t.m)
	if owner == nil || !c.neverWorked(t) {
		return
	}
	if was := c.next.Failing[owner.UID]; was.Count > 1 {
		c.next.Failing[owner.UID] = failure{Count: was.Count - 1, At: was.At}
		return
	}
	delete(c.next.Failing, owner.UID)
}
