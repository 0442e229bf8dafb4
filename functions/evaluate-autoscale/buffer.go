// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Kinds of objects that ask for room to be kept free, where their API is installed (SPEC W7, C83). The older version says the
// same; it is asked for only where the newer one has none.
const (
	bufferKind    plan.Kind = "CapacityBuffer.v1beta1.autoscaling.x-k8s.io"
	oldBufferKind plan.Kind = "CapacityBuffer.v1alpha1.autoscaling.x-k8s.io"
)

// maxBuffered bounds the places of all CapacityBuffers together: each may be asked for by somebody else, and every place is a
// Pod to be planned for in every scan.
const maxBuffered = 20_000

// buffer is one CapacityBuffer, with the Pods that stand for its room.
type buffer struct {
	object     *unstructured.Unstructured
	wish       autoscaling.CapacityBuffer
	template   string // name of the PodTemplate, if that is what it refers to
	generation int64
	pods       []*corev1.Pod
	limited    string // by which quotas, and how
	reason     string // why no room is kept for it
	message    string
}

// buffersQuery asks for all CapacityBuffers.
func buffersQuery(s snapshot.Snapshot) []snapshot.Query {
	ask := []snapshot.Query{snapshot.All(bufferKind)}
	if s.Has(ask[0]) && !slices.ContainsFunc(s.Foreign, func(o *unstructured.Unstructured) bool { return plan.KindOf(o) == bufferKind }) {
		ask = append(ask, snapshot.All(oldBufferKind))
	}
	return ask
}

// bufferReads asks for all CapacityBuffers, then for what they refer to, and what they are held to.
func bufferReads(s snapshot.Snapshot) []snapshot.Query {
	ask, found := buffersQuery(s), false
	for o, b := range buffersOf(s) {
		found = true
		if q, ok := referred(o.GetNamespace(), b); ok {
			ask = append(ask, q)
		}
	}
	if found {
		ask = append(ask, snapshot.All("ResourceQuota"))
	}
	return ask
}

// buffersOf yields the CapacityBuffers of our strategy that can be read, with what they say.
func buffersOf(s snapshot.Snapshot) iter.Seq2[*unstructured.Unstructured, autoscaling.CapacityBuffer] {
	return func(yield func(*unstructured.Unstructured, autoscaling.CapacityBuffer) bool) {
		for _, o := range s.Foreign {
			if !isBuffer(o) {
				continue
			}
			if b, err := autoscaling.ParseCapacityBuffer(o.Object); err == nil && b.Ours() && !yield(o, b) {
				return
			}
		}
	}
}

func isBuffer(o *unstructured.Unstructured) bool {
	k := plan.KindOf(o)
	return k == bufferKind || k == oldBufferKind
}

// referred returns the query for what a buffer refers to.
func referred(namespace string, b autoscaling.CapacityBuffer) (snapshot.Query, bool) {
	if ref := b.Spec.PodTemplateRef; ref != nil {
		return snapshot.One("PodTemplate", namespace, ref.Name), true
	}
	if ref := b.Spec.ScalableRef; ref != nil && ref.APIGroup == "apps" {
		switch ref.Kind {
		case "Deployment":
			return snapshot.One("Deployment", namespace, ref.Name), true
		case "ReplicaSet":
			return snapshot.One("ReplicaSet", namespace, ref.Name), true
		case "StatefulSet":
			return snapshot.One("StatefulSet", namespace, ref.Name), true
		}
	}
	return snapshot.Query{}, false
}

// findBuffers reads the CapacityBuffers and makes the Pods that stand for them.
func (sc *scan) findBuffers() (pods []*corev1.Pod) {
	quotas := autoscaling.NewQuotas(sc.ResourceQuotas)
	for _, o := range sc.Foreign {
		if !isBuffer(o) || o.GetDeletionTimestamp() != nil {
			continue
		}
		b := &buffer{object: o}
		var err error
		switch b.wish, err = autoscaling.ParseCapacityBuffer(o.Object); {
		case !b.wish.Ours():
			continue
		case err != nil:
			b.reason, b.message = "Invalid", err.Error()
		default:
			sc.fill(b, quotas, maxBuffered-len(pods))
		}
		sc.buffers = append(sc.buffers, b)
		pods = append(pods, b.pods...)
	}
	return pods
}

// fill gives a buffer its Pods, of which so many may be left, or the reason why it has none.
func (sc *scan) fill(b *buffer, quotas autoscaling.Quotas, left int) {
	template, scaled, found := sc.templateOf(b)
	if !found {
		return
	}
	template.Spec = scheduling.Complete(template.Spec)
	count, err := b.wish.Count(scaled, scheduling.Requests(&corev1.Pod{Spec: template.Spec}))
	if err != nil {
		b.reason, b.message = "Invalid", err.Error()
		return
	}
	var held []string
	wanted := count
	if count, held = quotas.Take(b.object.GetNamespace(), template.Spec, scheduling.Requests(&corev1.Pod{Spec: template.Spec}), count, left); count < wanted {
		b.limited = fmt.Sprintf("Buffer replicas limited from %d to %d due to quotas: %s", wanted, count, strings.Join(held, ", "))
	}
	if count > left {
		b.reason, b.message = "TooMany", fmt.Sprintf("all buffers together may have room for %d pods, which leaves %d", maxBuffered, left)
		return
	}
	spec := unclaimed(template.Spec)
	spec.NodeName, spec.Priority = "", new(int32(math.MinInt32)) // every Pod is served before it
	for i := range count {
		p := &corev1.Pod{Spec: spec}
		p.Namespace, p.Name = b.object.GetNamespace(), fmt.Sprintf("%s-%05d", b.object.GetName(), i)
		p.Labels, p.Annotations = template.Labels, template.Annotations
		p.UID = types.UID(headroomOf + "/" + string(b.object.GetUID()) + "/" + p.Name)
		p.OwnerReferences = []metav1.OwnerReference{{Kind: movable, Name: headroomOf, Controller: new(true)}}
		b.pods = append(b.pods, p)
	}
}

// templateOf returns what one Pod of a buffer looks like, and how many there are of the workload that it refers to.
func (sc *scan) templateOf(b *buffer) (t corev1.PodTemplateSpec, scaled int32, found bool) {
	q, ok := referred(b.object.GetNamespace(), b.wish)
	if !ok {
		b.reason, b.message = "Invalid", "wants a podTemplateRef, or a scalableRef to a Deployment, ReplicaSet or StatefulSet of apps"
		return t, 0, false
	}
	b.reason, b.message = "NotFound", strings.ToLower(string(q.Kind))+" "+q.Name+" does not exist"
	var o plan.Object
	switch string(q.Kind) {
	case "PodTemplate":
		o = named(sc.PodTemplates, q)
	case "Deployment":
		o = named(sc.Deployments, q)
	case "ReplicaSet":
		o = named(sc.ReplicaSets, q)
	case "StatefulSet":
		o = named(sc.StatefulSets, q)
	}
	if o == nil {
		return t, 0, false
	}
	b.reason, b.message = "", ""
	if x, is := o.(*corev1.PodTemplate); is {
		b.template, b.generation = x.Name, x.Generation
		return x.Template, 0, true
	}
	t, scaled = workload(o)
	return t, scaled, true
}

// named returns the object that a query for one asked for, or nil.
func named[T plan.Object](all []T, q snapshot.Query) plan.Object {
	i := slices.IndexFunc(all, func(o T) bool { return o.GetNamespace() == q.Namespace && o.GetName() == q.Name })
	if i < 0 {
		return nil
	}
	return all[i]
}

// workload returns the template and the number of Pods of an object that can be scaled.
func workload(o plan.Object) (corev1.PodTemplateSpec, int32) {
	scale := func(t corev1.PodTemplateSpec, replicas *int32) (corev1.PodTemplateSpec, int32) {
		if replicas == nil {
			return t, 1 // as the API server defaults it
		}
		return t, *replicas
	}
	switch o := o.(type) {
	case *appsv1.Deployment:
		return scale(o.Spec.Template, o.Spec.Replicas)
	case *appsv1.ReplicaSet:
		return scale(o.Spec.Template, o.Spec.Replicas)
	case *appsv1.StatefulSet:
		return scale(o.Spec.Template, o.Spec.Replicas)
	}
	return corev1.PodTemplateSpec{}, 0
}

// reportBuffers keeps the status of every CapacityBuffer: whether it is understood, and whether its room is there.
func (sc *scan) reportBuffers() {
	if len(sc.buffers) == 0 || sc.world == nil || sc.young || sc.unsettled {
		return
	}
	missing := map[types.UID]bool{}
	for i, shape := range sc.placement.Shapes {
		for _, p := range shape.Pods[min(len(shape.Pods), sc.placement.Fit[i]+sc.helped[i]):] {
			missing[p.UID] = true
		}
	}
	for _, b := range sc.buffers {
		next := b.status(sc, missing)
		if next == nil {
			continue
		}
		sc.once(plan.UpdateStatus{Old: b.object, New: next, Why: "room"})
	}
}

// status returns the object with its new status, or nil if that is what it has.
func (b *buffer) status(sc *scan, missing map[types.UID]bool) *unstructured.Unstructured {
	st, count := b.wish.Status, int32(len(b.pods))
	changed := false
	for _, c := range b.conditions(missing) {
		changed = setCondition(&st.Conditions, c, sc.Snapshot) || changed
	}
	if st.Replicas == nil || *st.Replicas != count {
		st.Replicas, changed = &count, true
	}
	if st.ProvisioningStrategy == nil || *st.ProvisioningStrategy != autoscaling.ActiveCapacity {
		st.ProvisioningStrategy, changed = new(autoscaling.ActiveCapacity), true
	}
	if b.template != "" && !b.tells(st) {
		st.PodTemplateRef, st.PodTemplateGeneration, changed = b.wish.Spec.PodTemplateRef, &b.generation, true
	}
	if !changed {
		return nil
	}
	return withStatus(b.object, st)
}

// withStatus returns the object with that status, or nil if it cannot be written, which plain data can.
func withStatus(o *unstructured.Unstructured, st autoscaling.CapacityBufferStatus) *unstructured.Unstructured {
	var content map[string]any
	text, err := json.Marshal(st)
	if err != nil || json.Unmarshal(text, &content) != nil {
		return nil
	}
	next := o.DeepCopy()
	if had, is := next.Object["status"].(map[string]any); is {
		maps.Copy(had, content) // what it says beside that is others', or a newer version's
		content = had
	}
	next.Object["status"] = content
	return next
}

// roomless returns the writes that tell CapacityBuffers that nobody keeps their room any more, and why: those that were told of it.
func roomless(s snapshot.Snapshot, why string) (all []plan.Sequence) {
	for o, b := range buffersOf(s) {
		if meta.FindStatusCondition(b.Status.Conditions, autoscaling.BufferProvisioning) == nil {
			continue
		}
		c := metav1.Condition{
			Type: autoscaling.BufferProvisioning, Status: metav1.ConditionFalse, Reason: "NothingIsScaled", Message: why, ObservedGeneration: o.GetGeneration(),
		}
		if !setCondition(&b.Status.Conditions, c, s) {
			continue
		}
		if next := withStatus(o, b.Status); next != nil {
			all = append(all, plan.Sequence{Do: []plan.Action{plan.UpdateStatus{Old: o, New: next, Why: why}}})
		}
	}
	return all
}

// tells reports whether a status names the template that the buffer was made of.
func (b *buffer) tells(st autoscaling.CapacityBufferStatus) bool {
	return st.PodTemplateRef != nil && st.PodTemplateRef.Name == b.template && st.PodTemplateGeneration != nil && *st.PodTemplateGeneration == b.generation
}

// conditions says whether a buffer is understood, whether its room is there or on its way, and whether quotas make it smaller.
func (b *buffer) conditions(missing map[types.UID]bool) []metav1.Condition {
	absent := 0
	for _, p := range b.pods {
		absent += truth(missing[p.UID])
	}
	ready := metav1.Condition{Type: autoscaling.BufferReady, Status: metav1.ConditionTrue, Reason: "Resolved", ObservedGeneration: b.object.GetGeneration()}
	room := metav1.Condition{Type: autoscaling.BufferProvisioning, Status: metav1.ConditionTrue, Reason: "RoomIsKept", ObservedGeneration: b.object.GetGeneration()}
	switch {
	case b.reason != "":
		ready.Status, ready.Reason, ready.Message = metav1.ConditionFalse, b.reason, b.message
		room.Status, room.Reason = metav1.ConditionFalse, "NotReady"
	case absent > 0:
		room.Status, room.Reason = metav1.ConditionFalse, "RoomIsMissing"
		room.Message = fmt.Sprintf("%d of %d places are missing", absent, len(b.pods))
	}
	if b.reason != "" {
		return []metav1.Condition{ready, room}
	}
	limited := metav1.Condition{Type: autoscaling.BufferLimited, Status: metav1.ConditionFalse, Reason: "ResourceQuotasAllocated", ObservedGeneration: b.object.GetGeneration()}
	if b.limited != "" {
		limited.Status, limited.Message = metav1.ConditionTrue, b.limited
	}
	return []metav1.Condition{ready, room, limited}
}
