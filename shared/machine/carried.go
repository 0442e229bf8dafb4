// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Carried is what a Node shall carry for its Machine (SPEC B2, B3).
type Carried struct {
	Labels, Annotations map[string]string
	Taints              []corev1.Taint
}

// CarriedBy returns what m's spec wants its Node to carry, as it stands there: parts of it may be what no Node can carry.
func CarriedBy(m *Machine) Carried {
	return Carried{m.Spec.Labels, m.Spec.Annotations, m.Spec.Taints}
}

// CarriedByTemplate returns what the set's template wants the Nodes of its Machines to carry, as it stands there.
func CarriedByTemplate(set *MachineSet) Carried {
	spec := set.Spec.Template.Spec
	return Carried{spec.Labels, spec.Annotations, spec.Taints}
}

// Unfit says what of c no Node can carry: the first of it by field and value, and how much more there is; "" if all fits.
func (c Carried) Unfit() string {
	_, wrong := c.Fit()
	if len(wrong) == 0 {
		return ""
	}
	more := ""
	if n := len(wrong) - 1; n > 0 {
		more = fmt.Sprintf(", and %d more", n)
	}
	return wrong[0].Error() + more + ": no Node can carry that, its Nodes go without"
}

// maxCarried bounds the annotations that a Machine wants on its Node, in bytes: with those of everybody else they have 256 KiB there.
const maxCarried = 1 << 17

// comeAndGo are the taints that a controller takes off a Node whose state they do not tell, or no longer: that of Nodes, of clouds, or
// evaluate-autoscale. Carried for a Machine they would be put on and taken off for ever.
var comeAndGo = map[string]bool{
	corev1.TaintNodeNotReady: true, corev1.TaintNodeUnreachable: true, corev1.TaintNodeUnschedulable: true, corev1.TaintNodeMemoryPressure: true,
	corev1.TaintNodeDiskPressure: true, corev1.TaintNodePIDPressure: true, corev1.TaintNodeNetworkUnavailable: true,
	"node.cloudprovider.kubernetes.io/uninitialized": true, "node.cloudprovider.kubernetes.io/shutdown": true,
	TaintToBeDeleted: true, TaintCandidate: true,
}

// StartupTaint reports whether a taint of this key says by itself that its Node is still starting (SPEC C76): whoever that waits for takes
// it off, once.
func StartupTaint(key string) bool {
	return strings.HasPrefix(key, "startup-taint.cluster-autoscaler.kubernetes.io/") || strings.HasPrefix(key, "ignore-taint.cluster-autoscaler.kubernetes.io/")
}

// Fit returns the part of c that a Node can carry, and what is wrong with the rest, each by its field and value. The API
// server refuses a Node everything for the sake of one label. c is not modified.
func (c Carried) Fit() (Carried, field.ErrorList) {
	var wrong field.ErrorList
	spec := field.NewPath("spec")
	fit := Carried{Labels: map[string]string{}, Annotations: map[string]string{}}
	for _, key := range slices.Sorted(maps.Keys(c.Labels)) {
		errs := labelErrors(spec.Child("metadata", "labels"), key, c.Labels[key])
		if key == corev1.LabelHostname { // with it all Nodes of a set would be one host to affinity, spreading and local volumes
			errs = append(errs, field.Forbidden(spec.Child("metadata", "labels").Key(key), "names one Node, and is its kubelet's"))
		}
		if len(errs) > 0 {
			wrong = append(wrong, errs...)
			continue
		}
		fit.Labels[key] = c.Labels[key]
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(c.Annotations)) {
		if len(validation.IsQualifiedName(strings.ToLower(key))) > 0 {
			wrong = append(wrong, field.Invalid(spec.Child("metadata", "annotations"), key, "must be the key of an annotation"))
			continue
		}
		if key == AnnotationScaleDownReason || key == AnnotationCordonedBy {
			wrong = append(wrong, field.Forbidden(spec.Child("metadata", "annotations").Key(key), "is evaluate-autoscale's"))
			continue
		}
		if size += len(key) + len(c.Annotations[key]); size > maxCarried {
			size -= len(key) + len(c.Annotations[key])
			wrong = append(wrong, field.TooLong(spec.Child("metadata", "annotations").Key(key), "", maxCarried-size))
			continue
		}
		fit.Annotations[key] = c.Annotations[key]
	}
	for i, t := range c.Taints {
		at := spec.Child("taints").Index(i)
		errs := labelErrors(at, t.Key, t.Value)
		if effects := []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}; !slices.Contains(effects, t.Effect) {
			errs = append(errs, field.NotSupported(at.Child("effect"), t.Effect, effects))
		}
		if comeAndGo[t.Key] {
			errs = append(errs, field.Forbidden(at.Key(t.Key), "comes and goes with the state of a Node: its controller would take it off each time"))
		}
		if wrong = append(wrong, errs...); len(errs) == 0 {
			fit.Taints = append(fit.Taints, t)
		}
	}
	return fit, wrong
}

func labelErrors(at *field.Path, key, value string) (wrong field.ErrorList) {
	if len(validation.IsQualifiedName(key)) > 0 {
		wrong = append(wrong, field.Invalid(at, key, "must be the key of a label"))
	}
	if len(validation.IsValidLabelValue(value)) > 0 {
		wrong = append(wrong, field.Invalid(at.Key(key), value, "must be the value of a label"))
	}
	return wrong
}
