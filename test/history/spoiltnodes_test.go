// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/base64"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

// deletesMasters deletes the Nodes that tell no instance, deletesNodes the others that are not Ready.
var (
	deletesMasters = ofNodes(func(n *corev1.Node) bool { return n.Spec.ProviderID == "" })
	deletesNodes   = ofNodes(func(n *corev1.Node) bool { return n.Spec.ProviderID != "" && !machine.NodeReady(n) })
)

// ofNodes deletes each Node that is like that.
func ofNodes(like func(*corev1.Node) bool) mistake {
	return rogue(func(s snapshot.Snapshot) (all []plan.Action) {
		for _, n := range s.Nodes {
			if n.DeletionTimestamp == nil && like(n) {
				all = append(all, plan.Delete{Object: n, Why: "a mistake"})
			}
		}
		return all
	}, "Node")
}

// storesEncoded writes a secret on each Node, in base64.
var storesEncoded = written(func(_, n *corev1.Node) {
	metav1.SetMetaDataAnnotation(&n.ObjectMeta, "said", base64.StdEncoding.EncodeToString([]byte("password="+sim.Canary+"!")))
})

func keepsTaints(f function.Function) function.Function {
	return without(f, func(a plan.Action) bool {
		old, now, is := updated[*corev1.Node](a)
		return is && len(now.Spec.Taints) < len(old.Spec.Taints)
	})
}

// keepsRemovals leaves on record what it once meant to remove.
var keepsRemovals = written(func(old, now *corev1.ConfigMap) {
	was, err := autoscaling.ParseState(old.Data[autoscaling.StateKey])
	is, other := autoscaling.ParseState(now.Data[autoscaling.StateKey])
	if err != nil || other != nil {
		return
	}
	for _, r := range was.Removals {
		if !slices.ContainsFunc(is.Removals, func(x autoscaling.Removal) bool { return x.NodeUID == r.NodeUID }) {
			is.Removals = append(is.Removals, r)
		}
	}
	now.Data[autoscaling.StateKey] = is.String()
})

// taintsAnybody marks a Node for a removal that nobody plans.
var taintsAnybody = rogue(func(s snapshot.Snapshot) []plan.Action {
	for _, n := range s.Nodes {
		if n.Spec.ProviderID != "" && len(n.Spec.Taints) == 0 {
			c := n.DeepCopy()
			c.Spec.Taints = []corev1.Taint{{Key: "ToBeDeletedByClusterAutoscaler", Value: "nobody", Effect: corev1.TaintEffectNoSchedule}}
			return []plan.Action{plan.Update{Old: n, New: c, Why: "a mistake"}}
		}
	}
	return nil
}, "Node")

// linksOnce leaves a Machine with the Node that it had first.
func linksOnce(f function.Function) function.Function {
	return without(f, func(a plan.Action) bool {
		u, _ := a.(plan.UpdateStatus)
		m, is := u.Old.(*machine.Machine)
		return is && m.Status.NodeRef != nil
	})
}

func deletesPods(f function.Function) function.Function {
	return each(f, func(_ snapshot.Snapshot, a plan.Action) plan.Action {
		if e, evicts := a.(plan.Evict); evicts {
			return plan.Delete{Object: e.Pod, Why: e.Why}
		}
		return a
	})
}
