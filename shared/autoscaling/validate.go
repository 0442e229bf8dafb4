// SPDX-License-Identifier: Apache-2.0

package autoscaling

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Validate repeats the rules of the CustomResourceDefinition, for objects that were admitted without it. Every error
// names field and value.
func (a *ClusterAutoscaler) Validate() field.ErrorList {
	var errs field.ErrorList
	if a.Name != Name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), a.Name, "must be "+strconv.Quote(Name)))
	}
	return append(errs, a.Spec.validate(field.NewPath("spec"))...)
}

// Warnings names what is valid and has no effect (SPEC B94).
func (a *ClusterAutoscaler) Warnings() (all []string) {
	if a.Spec.ResourceLimits == nil {
		return nil
	}
	for i, g := range a.Spec.ResourceLimits.GPUs {
		if wrong := validation.IsValidLabelValue(g.Type); len(wrong) > 0 {
			all = append(all, fmt.Sprintf("spec.resourceLimits.gpus[%d].type: %q can be the value of no Node's label, so that the limit holds for nothing", i, g.Type))
		}
	}
	return all
}

// Validate repeats the rules of the CustomResourceDefinition, for objects that were admitted without it. Every error
// names field and value.
func (a *MachineAutoscaler) Validate() field.ErrorList {
	s, p := a.Spec, field.NewPath("spec")
	errs := atLeast(p.Child("minReplicas"), s.MinReplicas, 0)
	errs = append(errs, atLeast(p.Child("maxReplicas"), s.MaxReplicas, 1)...)
	if s.MaxReplicas < s.MinReplicas {
		errs = append(errs, field.Invalid(p.Child("maxReplicas"), s.MaxReplicas,
			"must not be less than minReplicas "+strconv.Itoa(int(s.MinReplicas))))
	}
	ref := p.Child("scaleTargetRef")
	if s.ScaleTargetRef.Kind == "" {
		errs = append(errs, field.Required(ref.Child("kind"), "must name what is scaled"))
	}
	if s.ScaleTargetRef.Name == "" {
		errs = append(errs, field.Required(ref.Child("name"), "must name what is scaled"))
	}
	if _, err := ParseSchedule(a.Annotations[ScheduleAnnotation]); err != nil {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "annotations").Key(ScheduleAnnotation), a.Annotations[ScheduleAnnotation], err.Error()))
	}
	return errs
}

func (s ClusterAutoscalerSpec) validate(p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if l := s.ResourceLimits; l != nil {
		errs = append(errs, l.validate(p.Child("resourceLimits"))...)
	}
	if d := s.ScaleDown; d != nil {
		errs = append(errs, d.validate(p.Child("scaleDown"))...)
	}
	if u := s.ScaleUp; u != nil {
		errs = append(errs, validDuration(p.Child("scaleUp", "newPodScaleUpDelay"), u.NewPodScaleUpDelay)...)
	}
	errs = append(errs, validDuration(p.Child("maxNodeProvisionTime"), s.MaxNodeProvisionTime)...)
	errs = append(errs, atLeast(p.Child("maxPodGracePeriod"), or(s.MaxPodGracePeriod, 0), 0)...)
	errs = append(errs, atLeast(p.Child("logVerbosity"), or(s.LogVerbosity, 0), 0)...)
	errs = append(errs, validToggle(p.Child("enforceNodeGroupMinSize"), s.EnforceNodeGroupMinSize)...)
	return append(errs, validExpanders(p.Child("expanders"), s.Expanders)...)
}

func (l ResourceLimits) validate(p *field.Path) field.ErrorList {
	errs := atLeast(p.Child("maxNodesTotal"), or(l.MaxNodesTotal, 0), 0)
	if l.Cores != nil {
		errs = append(errs, validRange(p.Child("cores"), *l.Cores)...)
	}
	if l.Memory != nil {
		errs = append(errs, validRange(p.Child("memory"), *l.Memory)...)
	}
	for i, g := range l.GPUs {
		at := p.Child("gpus").Index(i)
		if g.Type == "" {
			errs = append(errs, field.Required(at.Child("type"), "must be the value of the Nodes' accelerator label"))
		}
		errs = append(errs, atLeast(at.Child("max"), g.Max, 1)...)
		errs = append(errs, validRange(at, Range{Min: g.Min, Max: g.Max})...)
	}
	return errs
}

func (d ScaleDown) validate(p *field.Path) field.ErrorList {
	errs := validDuration(p.Child("delayAfterAdd"), d.DelayAfterAdd)
	errs = append(errs, validDuration(p.Child("delayAfterDelete"), d.DelayAfterDelete)...)
	errs = append(errs, validDuration(p.Child("delayAfterFailure"), d.DelayAfterFailure)...)
	errs = append(errs, validDuration(p.Child("unneededTime"), d.UnneededTime)...)
	if t := d.UtilizationThreshold; t != nil && !isFraction(*t) {
		errs = append(errs, field.Invalid(p.Child("utilizationThreshold"), *t, "must be a decimal number strictly between 0 and 1, such as 0.5"))
	}
	return append(errs, validToggle(p.Child("cordonNodeBeforeTerminating"), d.CordonNodeBeforeTerminating)...)
}

func validRange(p *field.Path, r Range) field.ErrorList {
	errs := atLeast(p.Child("min"), r.Min, 0)
	if r.Max < r.Min {
		errs = append(errs, field.Invalid(p.Child("max"), r.Max, "must not be less than min "+strconv.Itoa(int(r.Min))))
	}
	return errs
}

func atLeast(p *field.Path, value, lowest int32) field.ErrorList {
	if value >= lowest {
		return nil
	}
	return field.ErrorList{field.Invalid(p, value, "must be at least "+strconv.Itoa(int(lowest)))}
}

func validDuration(p *field.Path, value *string) field.ErrorList {
	if value == nil || isDuration(*value) {
		return nil
	}
	return field.ErrorList{field.Invalid(p, *value, "must be a duration that is not negative, such as 10m or 1h30m")}
}

func validToggle(p *field.Path, value Toggle) field.ErrorList {
	if value == "" || value == Enabled || value == Disabled {
		return nil
	}
	return field.ErrorList{field.NotSupported(p, value, []Toggle{Enabled, Disabled})}
}

func validExpanders(p *field.Path, list []Expander) field.ErrorList {
	var errs field.ErrorList
	known := []Expander{LeastWaste, Priority, Random, Price}
	for i, e := range list {
		if !slices.Contains(known, e) {
			errs = append(errs, field.NotSupported(p.Index(i), e, known))
		}
		if slices.Contains(list[:i], e) {
			errs = append(errs, field.Duplicate(p.Index(i), e))
		}
	}
	return errs
}

// The patterns stand in the CustomResourceDefinition too: an object is valid here exactly if it is valid there.
var (
	durationPattern = regexp.MustCompile(`^(0|([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+)$`)
	fractionPattern = regexp.MustCompile(`^0?\.[0-9]+$`)
)

func isDuration(s string) bool {
	_, err := time.ParseDuration(s)
	return err == nil && durationPattern.MatchString(s)
}

func isFraction(s string) bool {
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && fractionPattern.MatchString(s) && 0 < f && f < 1
}
