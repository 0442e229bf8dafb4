// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"cmp"
	"fmt"

	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Paused returns the condition Paused of a Machine or MachineSet; shown is false where its API has no authorities.
// While the condition is True nobody here touches the object (SPEC B7). What the status confirms counts; the spec only
// while there is no status.
func Paused(spec, status machinev1beta1.MachineAuthority) (c Condition, shown bool) {
	switch authority := cmp.Or(status, spec); authority {
	case "":
		return Condition{}, false
	case machinev1beta1.MachineAuthorityMachineAPI:
		return False(ConditionPaused, "", "AuthoritativeAPIMachineAPI", "this API has the say"), true
	default:
		return True(ConditionPaused, "AuthoritativeAPINotMachineAPI", fmt.Sprintf("the authoritative API is %s", authority)), true
	}
}

// IsPaused reports that nobody here touches m, nor its instance: neither has to stand still for a tool that moves Machines elsewhere. It
// stays m's instance, which nobody takes for an orphan.
func IsPaused(m *Machine) bool { return WhyPaused(m) != "" }

// WhyPaused says why m is paused, or "": another API has the say over it, or people said so by the annotation, as Cluster API knows it. With
// that on a set automation merely does not resize it (C16).
func WhyPaused(m *Machine) string {
	if OtherAPI(m) {
		return "another API has the say"
	}
	if _, paused := m.Annotations[AnnotationPaused]; paused {
		return "annotation " + AnnotationPaused
	}
	return ""
}

// OtherAPI reports whether another system has the say over m (SPEC B7).
func OtherAPI(m *Machine) bool { return isPaused(m.Spec.AuthoritativeAPI, m.Status.AuthoritativeAPI) }

func isPaused(spec, status machinev1beta1.MachineAuthority) bool {
	c, _ := Paused(spec, status)
	return c.Status == corev1.ConditionTrue
}

// PausedMachine returns the condition Paused of m; shown is false where m was never paused, and its API has no authorities.
func PausedMachine(m *Machine) (c Condition, shown bool) {
	c, shown = Paused(m.Spec.AuthoritativeAPI, m.Status.AuthoritativeAPI)
	why := WhyPaused(m)
	switch {
	case OtherAPI(m):
	case why != "" && m.DeletionTimestamp != nil:
		return True(ConditionPaused, ReasonPaused, why+": it is not drained, and its instance stays, until that is taken off"), true
	case why != "":
		return True(ConditionPaused, ReasonPaused, why+": nothing is done to the machine, nor to its instance"), true
	case !shown && FindCondition(m.Status.Conditions, ConditionPaused) != nil:
		return False(ConditionPaused, "", "NotPaused", ""), true
	}
	return c, shown
}

// IsPausedSet reports whether another system has the say over set.
func IsPausedSet(set *MachineSet) bool {
	return isPaused(set.Spec.AuthoritativeAPI, set.Status.AuthoritativeAPI)
}

// IsHeldSet reports whether people keep automation from resizing set (C16).
func IsHeldSet(set *MachineSet) bool {
	_, held := set.Annotations[AnnotationPaused]
	return held
}

// MayResize reports whether automation resizes set: people do not keep it from that, somebody makes its Machines, and it is known how many
// it wants now.
func MayResize(set *MachineSet) bool { return !IsHeldSet(set) && !Unsized(set) && Unserved(set) == "" }

// Unserved says why no Machine of set is made, nor replaced, whatever its ledger says, or "": another system has the say over it, or
// over whatever it makes (SPEC B7), it is on its way out, or its selector is none that it could go by. Who takes Machines of such a
// set away shrinks it for good.
func Unserved(set *MachineSet) string {
	if IsPausedSet(set) {
		return "another API has the say over machineset " + set.Name
	}
	if isPaused(set.Spec.Template.Spec.AuthoritativeAPI, "") {
		return "the template of machineset " + set.Name + " gives another API the say over its machines"
	}
	if set.DeletionTimestamp != nil {
		return "machineset " + set.Name + " is being deleted"
	}
	if _, err := SelectorOf(set); err != nil {
		return "machineset " + set.Name + " makes no machines: " + err.Error()
	}
	return ""
}

// SelectorOf returns the selector of set. Its error names the field and the value.
func SelectorOf(set *MachineSet) (labels.Selector, error) {
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	switch template := labels.Set(set.Spec.Template.Labels); {
	case err != nil:
		return nil, fmt.Errorf("spec.selector: %w", err)
	case selector.Empty():
		return nil, fmt.Errorf("spec.selector: empty, it would match every Machine")
	case !selector.Matches(template):
		return nil, fmt.Errorf("spec.selector: %q does not match spec.template.metadata.labels %q", selector, template)
	}
	return selector, nil
}

// Selects reports whether m lives and set, which has this selector, finds it.
func Selects(set *MachineSet, selector labels.Selector, m *Machine) bool {
	return m.Namespace == set.Namespace && m.DeletionTimestamp == nil && selector.Matches(labels.Set(m.Labels))
}

// Adopts reports whether set, which has this selector, takes m over once it has a turn: nobody controls it (SPEC B39). Of a control plane it does so
// only where its template is of one (B32).
func Adopts(set *MachineSet, selector labels.Selector, m *Machine) bool {
	return metav1.GetControllerOfNoCopy(m) == nil && Selects(set, selector, m) && (MakesControlPlane(set) || !OfControlPlane(m, nil))
}
