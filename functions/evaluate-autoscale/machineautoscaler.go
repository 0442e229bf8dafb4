// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/autoscaling"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/scheduling"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// maSource is the component that Events on MachineAutoscalers come from (SPEC S66).
	maSource = "machine_autoscaler_controller"
	// conditionApplied says whether the bounds of a MachineAutoscaler stand on its target, or why not.
	conditionApplied = "Applied"
	// targetPaused is why bounds have no effect while people want the target left alone (SPEC C16).
	targetPaused = "TargetPaused"
)

// bounds keeps the bounds of every MachineAutoscaler as annotations on its target, with the owner's name, and frees
// sets that no longer have an owner (SPEC B84–B90). It needs neither ClusterAutoscaler nor cloud.
func bounds(s snapshot.Snapshot) plan.Plan {
	var p plan.Plan
	for _, set := range s.MachineSets {
		p.Add(own(s, set))
	}
	for _, ma := range s.MachineAutoscalers {
		p.Add(keep(s, ma))
	}
	return p
}

func keyOf(ma *autoscaling.MachineAutoscaler) string { return ma.Namespace + "/" + ma.Name }

// targets reports whether a MachineAutoscaler wants a set, and may have it. Targets live where Machines do, whatever
// the namespace of the MachineAutoscaler (SPEC B85).
func targets(ma *autoscaling.MachineAutoscaler, set *machine.MachineSet) bool {
	return ma.DeletionTimestamp == nil && ma.Spec.ScaleTargetRef.IsMachineSet() && ma.Spec.ScaleTargetRef.Name == set.Name && set.Namespace == machine.Namespace
}

// ownerOf returns the MachineAutoscaler of a set: the one that has it already, else the first that wants it (SPEC B87). For that one its
// finalizer comes first, so that bounds never outlive it; who has the set may have been read before it.
func ownerOf(s snapshot.Snapshot, set *machine.MachineSet) *autoscaling.MachineAutoscaler {
	var first *autoscaling.MachineAutoscaler
	for _, ma := range s.MachineAutoscalers {
		switch {
		case !targets(ma, set):
		case keyOf(ma) == set.Annotations[machine.AnnotationAutoscaler]:
			return ma
		case !slices.Contains(ma.Finalizers, autoscaling.Finalizer):
		case first == nil && len(ma.Validate()) == 0:
			first = ma
		}
	}
	return first
}

// own gives a set the annotations that its owner wants, or takes them away if it has none any more.
func own(s snapshot.Snapshot, set *machine.MachineSet) plan.Sequence {
	owner := ownerOf(s, set)
	switch {
	case machine.IsPausedSet(set): // that API would take back what is written here, scan by scan (SPEC B7)
		return plan.Sequence{}
	case set.DeletionTimestamp != nil, owner == nil && set.Annotations[machine.AnnotationAutoscaler] == "":
		return plan.Sequence{}
	case owner != nil && len(owner.Validate()) > 0: // it owns the set already: its last good bounds stay
		return plan.Sequence{}
	}
	next := set.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	maps.DeleteFunc(next.Annotations, func(k, _ string) bool { return isBound(k) })
	why := "it has no MachineAutoscaler any more"
	var notes []plan.Note
	if owner == nil { // what was copied goes with whom it was copied for; what people wrote stays
		copied := machine.CopiedCapacity(set.Annotations)
		maps.DeleteFunc(next.Annotations, func(k, v string) bool { return copied[k] == v && v != "" })
		delete(next.Annotations, machine.AnnotationBackoff)
		delete(next.Annotations, machine.AnnotationRetryScaleUp)
	}
	if owner != nil {
		maps.Copy(next.Annotations, wanted(owner, s.Now))
		maps.Copy(next.Annotations, newCapacityKeys(set.Annotations))
		why = "bounds of machineautoscaler " + keyOf(owner)
		notes = append(notes, plan.Normal(owner, "SuccessfulUpdate", "Updated MachineAutoscaler target: "+set.Namespace+"/"+set.Name).From(maSource))
		if unlabeled(next) {
			notes = append(notes, plan.Warning(owner, "InvalidOrMissingGPUAcceleratorLabel",
				fmt.Sprintf("%s/%s has GPUs, but its template has no valid label %s", set.Namespace, set.Name, scheduling.AcceleratorLabel)).From(maSource))
		}
	}
	if maps.Equal(next.Annotations, set.Annotations) {
		return plan.Sequence{}
	}
	return plan.Sequence{Do: []plan.Action{plan.Update{Old: set, New: next, Why: why}}, Notes: notes}
}

func isBound(key string) bool {
	return key == machine.AnnotationMinSize || key == machine.AnnotationMaxSize || key == machine.AnnotationAutoscaler
}

// wanted is what a MachineAutoscaler wants on its set now: its schedule may change the bounds (SPEC W9). It is valid, so
// that the schedule can be read.
func wanted(ma *autoscaling.MachineAutoscaler, now time.Time) map[string]string {
	least, most, _ := ma.BoundsAt(now)
	return map[string]string{
		machine.AnnotationMinSize:    strconv.Itoa(int(least)),
		machine.AnnotationMaxSize:    strconv.Itoa(int(most)),
		machine.AnnotationAutoscaler: keyOf(ma),
	}
}

// newCapacityKeys copies what the old keys say about capacity to new keys that are not there (SPEC B88).
func newCapacityKeys(a map[string]string) map[string]string {
	out := machine.CopiedCapacity(a)
	maps.DeleteFunc(out, func(key, _ string) bool { _, there := a[key]; return there })
	return out
}

// unlabeled reports a set with GPUs whose Nodes would not say of which type: limits would not count them.
func unlabeled(set *machine.MachineSet) bool {
	n, err := strconv.ParseInt(set.Annotations[machine.CapacityGPUCount], 10, 64)
	return err == nil && n > 0 && scheduling.Accelerator(set) == ""
}

// keep gives a MachineAutoscaler its finalizer, tells in its status what became of it, and lets it go once no set
// carries its name.
func keep(s snapshot.Snapshot, ma *autoscaling.MachineAutoscaler) plan.Sequence {
	next := ma.DeepCopy()
	switch has := slices.Contains(ma.Finalizers, autoscaling.Finalizer); {
	case ma.DeletionTimestamp != nil && has && !owns(s, ma, ""):
		next.Finalizers = slices.DeleteFunc(next.Finalizers, func(f string) bool { return f == autoscaling.Finalizer })
		return plan.Sequence{Do: []plan.Action{plan.Update{Old: ma, New: next, Why: "its target is free"}}}
	case ma.DeletionTimestamp != nil:
		return plan.Sequence{}
	case !has:
		next.Finalizers = append(next.Finalizers, autoscaling.Finalizer)
		return plan.Sequence{Do: []plan.Action{plan.Update{Old: ma, New: next, Why: "keep it until its target is free"}}}
	}
	return tellStatus(s, ma)
}

// owns reports whether a set carries the name of a MachineAutoscaler: the set of this name, or any if it is empty. One that another API has
// the say over keeps nobody: it loses the name once it is ours again.
func owns(s snapshot.Snapshot, ma *autoscaling.MachineAutoscaler, set string) bool {
	return slices.ContainsFunc(s.MachineSets, func(m *machine.MachineSet) bool {
		return m.Annotations[machine.AnnotationAutoscaler] == keyOf(ma) && !machine.IsPausedSet(m) && m.DeletionTimestamp == nil && (set == "" || set == m.Name)
	})
}

// tellStatus tells in the status of a MachineAutoscaler what became of it.
func tellStatus(s snapshot.Snapshot, ma *autoscaling.MachineAutoscaler) plan.Sequence {
	t, changed := applied(s, ma)
	if !changed {
		return plan.Sequence{Notes: t.notes}
	}
	return t.sequence(s)
}

// applied is what is to be told of a MachineAutoscaler's bounds, and whether its status does not say so yet.
func applied(s snapshot.Snapshot, ma *autoscaling.MachineAutoscaler) (t telling, changed bool) {
	ref := ma.Spec.ScaleTargetRef
	next := ma.DeepCopy()
	c := metav1.Condition{Type: conditionApplied, Status: metav1.ConditionTrue, Reason: "SuccessfulUpdate", ObservedGeneration: ma.Generation}
	if reason, message := problem(s, ma); reason != "" {
		c.Status, c.Reason, c.Message = metav1.ConditionFalse, reason, message
		if reason != targetPaused { // people did that, and know
			t.notes = append(t.notes, plan.Warning(ma, reason, message).From(maSource))
		}
	} else if set := s.MachineSet(machine.Namespace, ref.Name); owns(s, ma, ref.Name) && len(own(s, set).Do) == 0 {
		next.Status.LastTargetRef = &ref
	} else { // the annotations come first
		return t, false
	}
	changed = setCondition(&next.Status.Conditions, c, s)
	was := ma.Status.LastTargetRef
	t.other = next.Status.LastTargetRef != nil && (was == nil || *was != *next.Status.LastTargetRef)
	t.c, t.source, t.write = c, maSource, plan.UpdateStatus{Old: ma, New: next, Why: c.Reason}
	return t, changed || t.other
}

// problem returns why a MachineAutoscaler has no effect, if so.
func problem(s snapshot.Snapshot, ma *autoscaling.MachineAutoscaler) (reason, message string) {
	ref := ma.Spec.ScaleTargetRef
	if errs := ma.Validate(); len(errs) > 0 {
		return "FailedValidation", errs.ToAggregate().Error()
	}
	if !ref.IsMachineSet() {
		return "FailedGetTarget", fmt.Sprintf("cannot scale %s %s: only machine.openshift.io/v1beta1 MachineSet", ref.APIVersion, ref.Kind)
	}
	set := s.MachineSet(machine.Namespace, ref.Name)
	if set == nil {
		return "FailedGetTarget", fmt.Sprintf("machineset %s/%s not found", machine.Namespace, ref.Name)
	}
	if machine.IsPausedSet(set) {
		return "FailedUpdateTarget", fmt.Sprintf("another API has the say over machineset %s/%s: it is not resized", set.Namespace, set.Name)
	}
	owner := ownerOf(s, set)
	switch {
	case owner != nil && owner != ma:
		return "FailedSetOwner", fmt.Sprintf("machineset %s/%s is already owned by machineautoscaler %s", set.Namespace, set.Name, keyOf(owner))
	case machine.IsHeldSet(set):
		return targetPaused, fmt.Sprintf("annotation %s of machineset %s/%s: it is not resized", machine.AnnotationPaused, set.Namespace, set.Name)
	}
	if why, refused := s.Refused(plan.Update{Old: set}); refused && len(own(s, set).Do) > 0 {
		return "FailedUpdateTarget", fmt.Sprintf("machineset %s/%s cannot be changed: %s", set.Namespace, set.Name, why)
	}
	return "", ""
}

// maxMessage bounds what a condition says, in bytes: an API server refuses a status in which one has more than 32768 characters.
const maxMessage = 4096

// setCondition puts a condition in its place and reports whether that changed anything. What it says may quote what somebody wrote.
func setCondition(all *[]metav1.Condition, c metav1.Condition, s snapshot.Snapshot) bool {
	c.Message = plan.Cut(c.Message, maxMessage)
	c.LastTransitionTime = metav1.NewTime(s.Now.UTC().Truncate(1e9))
	*all = slices.Clone(*all)
	return meta.SetStatusCondition(all, c)
}
