// SPDX-License-Identifier: Apache-2.0

package provisionmachine

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// wantsCapacity reports whether the cloud is asked for the capacity of a set: whenever the set itself changed, and in
// a scan while it has none (E4).
func wantsCapacity(s snapshot.Snapshot, set *machine.MachineSet) bool {
	_, known := set.Annotations[machine.AnnotationVCPU]
	paused, _ := machine.Paused(set.Spec.AuthoritativeAPI, set.Status.AuthoritativeAPI)
	return set.DeletionTimestamp == nil && paused.Status != corev1.ConditionTrue && (!known || s.Request.Is("MachineSet"))
}

// annotateCapacity writes what the cloud says about the set's instance type, so that evaluate-autoscale can plan
// from zero without asking a cloud (C15, E4, E13).
func annotateCapacity(s snapshot.Snapshot, set *machine.MachineSet) plan.Sequence {
	c, asked := s.Clouds[set.UID]
	problem := cmp.Or(c.Err, c.Refused)
	switch {
	case !asked, !wantsCapacity(s, set):
		return plan.Sequence{}
	case problem != nil:
		n := plan.Warning(set, "FailedUpdate", "capacity is unknown: "+problem.Message)
		return plan.Sequence{Notes: []plan.Note{n.From(cmp.Or(c.Source, name))}}
	case c.Type == nil:
		return plan.Sequence{}
	}
	next := set.DeepCopy()
	if next.Annotations == nil {
		next.Annotations = map[string]string{}
	}
	maps.Copy(next.Annotations, capacity(*c.Type))
	if anotherType(set.Annotations, next.Annotations) { // what was said of the former one is not true of this one
		for _, key := range []string{machine.AnnotationArch, machine.AnnotationPrice} {
			if _, said := capacity(*c.Type)[key]; !said {
				delete(next.Annotations, key)
			}
		}
	}
	if maps.Equal(next.Annotations, set.Annotations) {
		return plan.Sequence{}
	}
	return plan.Sequence{Do: []plan.Action{plan.Update{Old: set, New: next, Why: "capacity of " + c.Type.Name}}}
}

// anotherType reports whether the sizes in old are of another instance type than those in next. Where they are the same, or
// none were known, an architecture or a price that the cloud does not tell may be a person's word, which stays.
func anotherType(old, next map[string]string) bool {
	return slices.ContainsFunc([]string{machine.AnnotationVCPU, machine.AnnotationMemoryMb, machine.AnnotationGPU}, func(key string) bool {
		was, known := old[key]
		return known && was != next[key]
	})
}

func capacity(t provider.InstanceType) map[string]string {
	a := map[string]string{
		machine.AnnotationVCPU:     strconv.FormatInt((t.MilliCPU+999)/1000, 10),
		machine.AnnotationMemoryMb: strconv.FormatInt(t.Memory>>20, 10),
		machine.AnnotationGPU:      strconv.FormatInt(t.GPU, 10),
	}
	if t.Arch != "" {
		a[machine.AnnotationArch] = t.Arch
	}
	if t.PriceHour > 0 {
		a[machine.AnnotationPrice] = strconv.FormatFloat(t.PriceHour, 'f', -1, 64)
	}
	return a
}
