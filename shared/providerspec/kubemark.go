// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"encoding/json"
	"regexp"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
	Tags           map[string]string `json:"tags,omitempty"` // may be changed while the instance lives

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

// The sizes that a flavor may have. A spec with cores and memory of its own has the same bounds.
var (
	flavorPattern = regexp.MustCompile(`^[0-9]+c[0-9]+g[0-9]+d$`)
	flavorCores   = regexp.MustCompile(`^[1-9][0-9]{0,3}c`)
	flavorMemory  = regexp.MustCompile(`c[1-9][0-9]{0,4}g`)
	flavorDisk    = regexp.MustCompile(`g[0-9]{1,5}d$`)
	mostCores     = resource.MustParse("9999")
	mostMemory    = resource.MustParse("99999Gi")
)

// mostOfAny bounds numbers of things and of seconds: far more than anybody simulates, far less than overflows.
const mostOfAny = 99999

// ReadKubemark returns a spec without defaults, whatever its kind, or what is wrong with it.
func ReadKubemark(raw json.RawMessage) (Kubemark, field.ErrorList) {
	var f findings
	s := new(Kubemark)
	f.decode(raw, s, true)
	if len(f.errs) == 0 {
		s.check(&f, Subject{})
	}
	return *s, f.errs
}

// check holds rules of our own.
func (s *Kubemark) check(f *findings, _ Subject) {
	s.checkFlavor(f)
	f.positive(at("numCores"), s.NumCores)
	f.atMostQuantity(at("numCores"), s.NumCores, mostCores)
	f.positive(at("memoryCapacity"), s.MemoryCapacity)
	f.atMostQuantity(at("memoryCapacity"), s.MemoryCapacity, mostMemory)
	f.between(at("gpus"), s.GPUs, 0, mostOfAny)
	f.between(at("maxPods"), s.MaxPods, 0, mostOfAny)
	f.between(at("bootSeconds"), orZero(s.BootSeconds), 0, mostOfAny)
	f.between(at("readySeconds"), orZero(s.ReadySeconds), 0, mostOfAny)
	f.labels(at("labels"), s.Labels)
	f.labelValue(at("region"), s.Region)
	f.labelValue(at("zone"), s.Zone)
	f.labelValue(at("arch"), s.Arch)
	s.checkFailures(f)
}

func (s *Kubemark) checkFlavor(f *findings) {
	flavor, p := s.Flavor, at("flavor")
	switch {
	case flavor == "" && (s.NumCores == nil || s.MemoryCapacity == nil):
		f.fail(field.Required(p, "name a flavor such as 4c12g30d, or give numCores and memoryCapacity"))
	case flavor == "":
	case !flavorPattern.MatchString(flavor):
		f.fail(field.Invalid(p, flavor, "must be <cores>c<GiB of memory>g<GiB of disk>d, such as 4c12g30d"))
	case !flavorCores.MatchString(flavor):
		f.fail(field.Invalid(p, flavor, "must have between 1 and 9999 cores"))
	case !flavorMemory.MatchString(flavor):
		f.fail(field.Invalid(p, flavor, "must have between 1 and 99999 GiB of memory"))
	case !flavorDisk.MatchString(flavor):
		f.fail(field.Invalid(p, flavor, "must have between 0 and 99999 GiB of disk"))
	}
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

func orZero(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}
