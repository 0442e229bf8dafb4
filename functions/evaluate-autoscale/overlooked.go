// SPDX-License-Identifier: Apache-2.0

package evaluateautoscale

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/scheduling"
)

// complete refuses Pods that name a class and leave out what admission would take from it: classes are not read, and who
// is taken for another Pod than it will be is answered falsely (SPEC D43).
func (p Pods) complete() error {
	const refusal = "spec.%s %q is not looked up: say %s"
	switch class := p.Spec.RuntimeClassName; {
	case p.Spec.PriorityClassName != "" && p.Spec.Priority == nil:
		return fmt.Errorf(refusal, "priorityClassName", p.Spec.PriorityClassName, "priority")
	case class != nil && *class != "" && p.Spec.Overhead == nil:
		return fmt.Errorf(refusal, "runtimeClassName", *class, "overhead")
	}
	return nil
}

// overlooked returns the Pods that wait and that no Node is added for, whatever sets there are, by the reason.
func (sc *scan) overlooked() (all []Unplaced) {
	at := map[string]int{}
	for _, p := range sc.unbound {
		why := sc.overlooks(p)
		if why == "" {
			continue
		}
		i, known := at[why]
		if !known {
			i = len(all)
			at[why], all = i, append(all, Unplaced{Pod: p.Namespace + "/" + p.Name, Why: why})
		}
		all[i].Count++
	}
	return all
}

// overlooks returns why no Node is added for a Pod that has no place (SPEC C5, C8).
func (sc *scan) overlooks(p *corev1.Pod) string {
	switch {
	case p.DeletionTimestamp != nil || finished(p) || scheduling.OfDaemonSet(p) || sc.placeOf(p) != "":
		return ""
	case gated(p):
		return "behind the scheduling gate " + p.Spec.SchedulingGates[0].Name
	case sc.expendable(p) && unschedulable(p):
		return fmt.Sprintf("priority %d is below %d, from which on pods bring nodes", *p.Spec.Priority, sc.settings.PodPriorityThreshold)
	}
	return ""
}
