// SPDX-License-Identifier: Apache-2.0

package sweepinstances

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

func ghostKey(n *corev1.Node) string {
	return machine.SightingKey(machine.SweptNodes, n.Name+"/"+string(n.UID))
}

// ghostsIn returns the Nodes that have outlived their Machine: link-node marked them for one that is gone, they are not
// Ready, and no account that could be listed shows their instance (R-B31, R-S2). While one cannot be, nobody knows whether they are. A
// Node that nobody marked was never ours (S30).
func ghostsIn(s snapshot.Snapshot, known map[string]machine.SweptAccount) []*corev1.Node {
	namespaces := map[string]bool{}
	for _, a := range known {
		namespaces[a.Namespace] = s.Serves(a.Namespace)
	}
	shown, linked := claimed(s)
	var all []*corev1.Node
	for _, n := range s.Nodes {
		namespace, name, marked := machine.AnnotatedMachine(n)
		gone := marked && namespaces[namespace] && s.Machine(namespace, name) == nil && !linked[n.UID]
		if gone && n.DeletionTimestamp == nil && !machine.NodeReady(n) && n.Spec.ProviderID != "" && !shown[machine.InstanceOf(n.Spec.ProviderID)] {
			all = append(all, n)
		}
	}
	return all
}

func allListed(s snapshot.Snapshot, known map[string]machine.SweptAccount) bool {
	for key, account := range s.Accounts {
		if account.Err != nil || untold(known[key], account) {
			return false
		}
	}
	return len(unseen(known)) == 0
}

// claimed returns the instances that an account shows or a Machine records, and the Nodes that Machines are linked to.
func claimed(s snapshot.Snapshot) (instances map[machine.InstanceID]bool, nodes map[types.UID]bool) {
	instances, nodes = listed(s), map[types.UID]bool{}
	for _, m := range s.Machines {
		instances[machine.InstanceOf(machine.ProviderID(m))] = true
		if m.Status.NodeRef != nil {
			nodes[m.Status.NodeRef.UID] = true
		}
	}
	return instances, nodes
}

// horizon is the longest of all accounts.
func (w sweep) horizon() time.Duration {
	var most time.Duration
	for _, a := range w.Accounts {
		most = max(most, a.Horizon)
	}
	return most
}

// exorcise deletes the Nodes of which two sightings, a Horizon apart, are on record, a few in each sweep, others first each time. Many at once
// that no person has confirmed are only told of: then something else is wrong.
func (w sweep) exorcise() []plan.Sequence {
	var all []plan.Sequence
	var keys []string
	for _, n := range w.ghosts {
		keys = append(keys, ghostKey(n))
	}
	held, latest := w.unconfirmed(keys)
	if len(held) > max(maxDeletes, len(w.Nodes)/10) {
		why := fmt.Sprintf("%d of %d nodes have outlived their machines: none is deleted %s", len(held), len(w.Nodes), untilConfirmed(latest))
		all = append(all, plan.Sequence{Notes: []plan.Note{plan.Warning(w.object(), "SweepHeld", why)}})
	} else {
		held = nil
	}
	asked := 0 // in earlier rounds too
	for key := range w.Outcomes {
		if strings.HasPrefix(string(key), "delete node/") {
			asked++
		}
	}
	ghosts := slices.Clone(w.ghosts)
	slices.SortStableFunc(ghosts, func(a, b *corev1.Node) int { return cmp.Compare(w.turn(ghostKey(a)), w.turn(ghostKey(b))) })
	for _, n := range ghosts {
		if held[ghostKey(n)] || !w.believed(ghostKey(n), n.CreationTimestamp.Time, w.horizon()) {
			continue
		}
		a := plan.Delete{Object: n, IfUnchanged: true, Why: "its machine and its instance are gone"}
		o, tried := w.Outcome(a)
		if tried && o.Result == plan.Refused {
			why := "node " + n.Name + " cannot be deleted: " + o.Message
			all = append(all, plan.Sequence{Notes: []plan.Note{plan.Warning(w.object(), "FailedDelete", why)}})
			continue
		}
		if !tried {
			if asked++; asked > maxDeletes {
				continue
			}
		}
		all = append(all, plan.Sequence{Do: []plan.Action{a}, Notes: []plan.Note{plan.Normal(w.object(), "OrphanRemoved", "node "+n.Name)}})
	}
	return all
}
