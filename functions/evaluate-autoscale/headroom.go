// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"math"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/plan"
)

// headroomOf is the namespace, and the beginning of the UIDs, of Pods that stand for room to be kept free (SPEC W7, C83).
const headroomOf = "headroom"

// movable is the kind of owner whose Pods may be moved (SPEC C71).
const movable = "ReplicaSet"

// stands reports whether a Pod only stands for room.
func stands(p *corev1.Pod) bool { return strings.HasPrefix(string(p.UID), headroomOf+"/") }

// headroom returns Pods that stand for the room to be kept free: they wait behind all others, are moved like those of a
// ReplicaSet, and are told nothing.
func (sc *scan) headroom() (pods []*corev1.Pod) {
	ca := clusterAutoscaler(sc.Snapshot)
	if ca == nil {
		return nil
	}
	text := ca.Annotations[autoscaling.HeadroomAnnotation]
	rooms, err := autoscaling.ParseHeadroom(text)
	if err != nil { // what was asked for last is kept, or a slip of the pen would cost all of it
		sc.notes = append(sc.notes, plan.Warning(ca, "HeadroomInvalid", err.Error()).From(caSource))
		text = sc.state.Headroom
		rooms, _ = autoscaling.ParseHeadroom(text) // it could be read
	}
	sc.state.Headroom = text
	pods = sc.findBuffers()
	for i, room := range rooms {
		spec := corev1.PodSpec{
			Priority: new(int32(math.MinInt32)), NodeSelector: room.On,
			Containers: []corev1.Container{{Name: headroomOf, Resources: corev1.ResourceRequirements{Requests: room.Requests}}},
		}
		for k := range room.Count {
			p := &corev1.Pod{Spec: spec}
			p.Namespace, p.Name = headroomOf, fmt.Sprintf("%d-%05d", i, k)
			p.UID = types.UID(headroomOf + "/" + p.Name)
			p.OwnerReferences = []metav1.OwnerReference{{Kind: movable, Name: headroomOf, Controller: new(true)}}
			pods = append(pods, p)
		}
	}
	return pods
}

// occupy makes the room that was found on Nodes for Pods that wait, and for headroom, taken, before it is asked which
// Nodes could go: those that it is on stay, unless whoever counts on it finds another place (SPEC C2, C9). Else what one
// scan promises the next one takes away, and a Node comes and goes for a Pod that the scheduler is slow to bind.
func (sc *scan) occupy() {
	sc.reserved = sc.taken()
	if sc.promised = sc.world; len(sc.reserved) > 0 {
		sc.promised = sc.world.With(sc.reserved)
	}
}

// explainHeadroom logs the room that is missing, with the answer of every set: of more kinds than can be told at a time each in its turn.
func (sc *scan) explainHeadroom(refusals []answer) {
	var missing []unhelped
	for i, shape := range sc.placement.Shapes {
		if left := len(shape.Pods) - sc.placement.Fit[i] - sc.placement.Helped[i]; left > 0 && stands(shape.Pods[0]) {
			missing = append(missing, unhelped{shape.Pods[0], func() string {
				return fmt.Sprintf("Headroom: %d of %d places are missing: %s", left, len(shape.Pods), counted(sc.answers(i, refusals)))
			}})
		}
	}
	for _, u := range sc.inTurn(missing, nil) {
		sc.notes = append(sc.notes, plan.Log(u.why()))
	}
}
