// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
)

// mine are the Nodes that may be some Machine's. Others may be scaled by another autoscaler, which marks them by the same keys: off those only
// that is taken which is provably ours.
type mine map[*corev1.Node]bool

// mineOf leaves out Nodes whose Machines another API has the say over (SPEC B7): so may another autoscaler.
func mineOf(found map[*machine.Machine]machine.Candidates) mine {
	all := mine{}
	for m, c := range found {
		for _, n := range c.Nodes {
			all[n] = all[n] || !machine.OtherAPI(m)
		}
	}
	return all
}

// givenBack returns a Node without the taint and the cordon of a removal, and whether it had any. The taint of a plan of ours goes also where
// the Machine is gone; that of another autoscaler has a time for its value.
func (own mine) givenBack(n *corev1.Node) (next *corev1.Node, changed bool) {
	_, cordoned := n.Annotations[machine.AnnotationCordonedBy]
	ours := func(t corev1.Taint) bool { return isRemoval(t) && (own[n] || strings.HasPrefix(t.Value, down+"-")) }
	if !slices.ContainsFunc(n.Spec.Taints, ours) && !cordoned {
		return n, false
	}
	next = n.DeepCopy()
	next.Spec.Taints = slices.DeleteFunc(next.Spec.Taints, ours)
	if cordoned {
		next.Spec.Unschedulable = false
		delete(next.Annotations, machine.AnnotationCordonedBy)
	}
	return next, true
}

// isMarked reports that a Node has our soft taint: that of another autoscaler, on a Node that it scales, looks the same.
func (own mine) isMarked(n *corev1.Node) bool {
	return own[n] && slices.ContainsFunc(n.Spec.Taints, isCandidate)
}

// unmarked returns a Node without what speaks of scale-down, and whether that changed it; with the taint and the cordon of a
// removal only if that was called off.
func (own mine) unmarked(n *corev1.Node, removed bool) (next *corev1.Node, changed bool) {
	next = n.DeepCopy()
	if back, given := own.givenBack(n); removed && given {
		next, changed = back, true
	}
	_, explained := n.Annotations[machine.AnnotationScaleDownReason]
	delete(next.Annotations, machine.AnnotationScaleDownReason)
	marked := own.isMarked(n)
	if marked {
		next.Spec.Taints = slices.DeleteFunc(next.Spec.Taints, isCandidate)
	}
	return next, changed || explained || marked
}
