// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"regexp"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Kubemark is the spec of a simulated instance: what it is, how it shall fail (SPEC E46).
type Kubemark struct {
	Head
	Flavor         string            `json:"flavor,omitempty"`         // <cores>c<GiB of memory>g<GiB of disk>d, such as 4c12g30d
	NumCores       *Quantity         `json:"numCores,omitempty"`       // instead of the flavor's, or without a flavor
	MemoryCapacity *Quantity         `json:"memoryCapacity,omitempty"` // likewise
	GPUs           int64             `json:"gpus,omitempty"`
	MaxPods        int64             `json:"maxPods,omitempty"`
	Arch           string            `json:"arch,omitempty"`
	Labels         map[string]string `json:"labels,omitempty"` // that the kubelet gives its Node
	Region         string            `json:"region,omitempty"`
	Zone           string            `json:"zone,omitempty"`
	Network        string            `json:"network,omitempty"`
	Image          string            `json:"image,omitempty"`

	BootSeconds     *int64           `json:"bootSeconds,omitempty"`     // from creation to the Node
	ReadySeconds    *int64           `json:"readySeconds,omitempty"`    // from the Node to Ready
	DeletionTimeout *metav1.Duration `json:"deletionTimeout,omitempty"` // from deletion to gone

	NeverBoot                 bool             `json:"neverBoot,omitempty"`                 // the instance runs, its Node never comes
	HealthyDuration           *metav1.Duration `json:"healthyDuration,omitempty"`           // from the Node to unhealthy
	UnhealthyDuration         *metav1.Duration `json:"unhealthyDuration,omitempty"`         // until it is healthy again
	TurnUnhealthyAfter        bool             `json:"turnUnhealthyAfter,omitempty"`        // once, for good
	TurnUnhealthyPeriodically bool             `json:"turnUnhealthyPeriodically,omitempty"` // in turns
	VanishAfter               *metav1.Duration `json:"vanishAfter,omitempty"`               // from creation until the cloud loses it
}

var flavorPattern = regexp.MustCompile(`^[1-9][0-9]{0,3}c[1-9][0-9]{0,4}g[0-9]{1,5}d$`)

// check holds rules of our own.
func (s *Kubemark) check(f *findings, _ Subject) {
	switch flavor := s.Flavor; {
	case flavor != "" && !flavorPattern.MatchString(flavor):
		f.fail(field.Invalid(at("flavor"), flavor, "must be <cores>c<GiB of memory>g<GiB of disk>d, such as 4c12g30d"))
	case flavor == "" && (s.NumCores == nil || s.MemoryCapacity == nil):
		f.fail(field.Required(at("flavor"), "name a flavor such as 4c12g30d, or give numCores and memoryCapacity"))
	}
	f.positive(at("numCores"), s.NumCores)
	f.positive(at("memoryCapacity"), s.MemoryCapacity)
	f.atLeast(at("gpus"), s.GPUs, 0)
	f.atLeast(at("maxPods"), s.MaxPods, 0)
	f.natural(at("bootSeconds"), s.BootSeconds)
	f.natural(at("readySeconds"), s.ReadySeconds)
	f.errs = append(f.errs, metav1validation.ValidateLabels(s.Labels, at("labels"))...)
	f.labelValue(at("region"), s.Region)
	f.labelValue(at("zone"), s.Zone)
	f.labelValue(at("arch"), s.Arch)
	s.checkFailures(f)
}

// checkFailures refuses failures that contradict themselves.
func (s *Kubemark) checkFailures(f *findings) {
	for _, d := range []struct {
		name  string
		value *metav1.Duration
	}{
		{"deletionTimeout", s.DeletionTimeout},
		{"healthyDuration", s.HealthyDuration},
		{"unhealthyDuration", s.UnhealthyDuration},
		{"vanishAfter", s.VanishAfter},
	} {
		if d.value != nil && d.value.Duration < 0 {
			f.fail(field.Invalid(at(d.name), d.value.Duration.String(), "must not be negative"))
		}
	}
	zero := func(d *metav1.Duration) bool { return d == nil || d.Duration == 0 }
	switch {
	case s.TurnUnhealthyAfter && s.TurnUnhealthyPeriodically:
		f.fail(field.Forbidden(at("turnUnhealthyPeriodically"), "turnUnhealthyAfter is given"))
	case s.TurnUnhealthyPeriodically && slices.ContainsFunc([]*metav1.Duration{s.HealthyDuration, s.UnhealthyDuration}, zero):
		f.fail(field.Forbidden(at("turnUnhealthyPeriodically"), "needs healthyDuration and unhealthyDuration"))
	}
}

func (f *findings) natural(p *field.Path, n *int64) {
	if n != nil {
		f.atLeast(p, *n, 0)
	}
}

func (f *findings) labelValue(p *field.Path, value string) {
	if len(validation.IsValidLabelValue(value)) > 0 {
		f.fail(field.Invalid(p, value, "must be the value of a label"))
	}
}
