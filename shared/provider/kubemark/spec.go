// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"bytes"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

const (
	// Kind is the kind of providerSpec that is served here.
	Kind = "KubemarkMachineProviderSpec"
	// APIVersion is the one to write into it; no other is refused.
	APIVersion = "kubemark.machine.openshift.io/v1alpha1"
)

// What a spec leaves open. Region and zone are those of the cloud in SPEC S20.
const (
	defaultRegion       = "regionOne"
	defaultZone         = "nova"
	defaultNetwork      = "default"
	defaultArch         = "amd64"
	defaultMaxPods      = 110 // a kubelet's own
	defaultBootSeconds  = 3
	defaultReadySeconds = 1
	defaultRemoval      = time.Second
	customType          = "custom" // of a spec with cores and memory of its own, without a flavor
)

// Spec is the providerSpec of a simulated instance: what it is, and how it shall fail (SPEC E46).
type Spec struct {
	APIVersion string          `json:"apiVersion,omitempty"`
	Kind       string          `json:"kind,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`

	Flavor         string                 `json:"flavor,omitempty"`         // <cores>c<GiB of memory>g<GiB of disk>d, such as 4c12g30d
	NumCores       *providerspec.Quantity `json:"numCores,omitempty"`       // instead of the flavor's, or without a flavor
	MemoryCapacity *providerspec.Quantity `json:"memoryCapacity,omitempty"` // likewise
	GPUs           int64                  `json:"gpus,omitempty"`
	MaxPods        int64                  `json:"maxPods,omitempty"`
	Arch           string                 `json:"arch,omitempty"`
	Labels         map[string]string      `json:"labels,omitempty"` // that the kubelet gives its Node
	Region         string                 `json:"region,omitempty"`
	Zone           string                 `json:"zone,omitempty"`
	Network        string                 `json:"network,omitempty"`
	Image          string                 `json:"image,omitempty"`

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

// parse reads a spec field by field, so that what it refuses is named with its value.
func parse(raw json.RawMessage) (Spec, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil || fields == nil {
		return Spec{}, provider.Errorf(provider.Invalid, "providerSpec.value: %.40q is no object", raw)
	}
	var s Spec
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		one, err := json.Marshal(map[string]json.RawMessage{name: fields[name]})
		if err == nil {
			d := json.NewDecoder(bytes.NewReader(one))
			d.DisallowUnknownFields()
			err = d.Decode(&s)
		}
		if err != nil {
			return Spec{}, provider.Errorf(provider.Invalid, "providerSpec.value.%s: %s: %w", name, fields[name], err)
		}
	}
	return s, s.check()
}

// check refuses what no cloud could serve.
func (s Spec) check() error {
	if s.Flavor == "" && (s.NumCores == nil || s.MemoryCapacity == nil) {
		return invalid("flavor", "", "name a flavor such as 4c12g30d, or give numCores and memoryCapacity")
	}
	if _, ok := parseFlavor(s.Flavor); s.Flavor != "" && !ok {
		return invalid("flavor", s.Flavor, "a flavor is <cores>c<GiB of memory>g<GiB of disk>d")
	}
	for name, q := range map[string]*providerspec.Quantity{"numCores": s.NumCores, "memoryCapacity": s.MemoryCapacity} {
		if q != nil && q.Sign() <= 0 {
			return invalid(name, q.String(), "must be positive")
		}
	}
	for name, n := range map[string]int64{"gpus": s.GPUs, "maxPods": s.MaxPods, "bootSeconds": value(s.BootSeconds), "readySeconds": value(s.ReadySeconds)} {
		if n < 0 {
			return invalid(name, strconv.FormatInt(n, 10), "must not be negative")
		}
	}
	if err := s.checkLabels(); err != nil {
		return err
	}
	return s.checkSwitches()
}

// checkLabels refuses words that cannot become labels.
func (s Spec) checkLabels() error {
	for _, name := range slices.Sorted(maps.Keys(s.Labels)) {
		if wrong := validation.IsQualifiedName(name); len(wrong) > 0 {
			return invalid("labels", name, strings.Join(wrong, ", "))
		}
		if wrong := validation.IsValidLabelValue(s.Labels[name]); len(wrong) > 0 {
			return invalid("labels."+name, s.Labels[name], strings.Join(wrong, ", "))
		}
	}
	for name, word := range map[string]string{"region": s.Region, "zone": s.Zone, "arch": s.Arch} {
		if wrong := validation.IsValidLabelValue(word); len(wrong) > 0 {
			return invalid(name, word, strings.Join(wrong, ", "))
		}
	}
	return nil
}

// checkSwitches refuses failures that contradict themselves.
func (s Spec) checkSwitches() error {
	for name, d := range map[string]*metav1.Duration{
		"deletionTimeout": s.DeletionTimeout, "healthyDuration": s.HealthyDuration,
		"unhealthyDuration": s.UnhealthyDuration, "vanishAfter": s.VanishAfter,
	} {
		if d != nil && d.Duration < 0 {
			return invalid(name, d.Duration.String(), "must not be negative")
		}
	}
	switch {
	case s.TurnUnhealthyAfter && s.TurnUnhealthyPeriodically:
		return invalid("turnUnhealthyPeriodically", "true", "contradicts turnUnhealthyAfter")
	case s.TurnUnhealthyPeriodically && (duration(s.HealthyDuration) == 0 || duration(s.UnhealthyDuration) == 0):
		return invalid("turnUnhealthyPeriodically", "true", "needs healthyDuration and unhealthyDuration")
	}
	return nil
}

func invalid(field, value, why string) error {
	return provider.Errorf(provider.Invalid, "providerSpec.value.%s: %q: %s", field, value, why)
}

// filled returns the spec with what it leaves open.
func (s Spec) filled() Spec {
	fill(&s.Region, defaultRegion)
	fill(&s.Zone, defaultZone)
	fill(&s.Network, defaultNetwork)
	fill(&s.Arch, defaultArch)
	fill(&s.MaxPods, defaultMaxPods)
	fill(&s.BootSeconds, new(int64(defaultBootSeconds)))
	fill(&s.ReadySeconds, new(int64(defaultReadySeconds)))
	fill(&s.DeletionTimeout, &metav1.Duration{Duration: defaultRemoval})
	return s
}

func fill[T comparable](field *T, value T) {
	if *field == *new(T) {
		*field = value
	}
}

// InstanceType returns what the spec asks for. The spec must have been parsed.
func (s Spec) InstanceType() provider.InstanceType {
	it, _ := parseFlavor(s.Flavor)
	if s.Flavor == "" {
		it.Name = customType
	}
	if s.NumCores != nil {
		it.MilliCPU = s.NumCores.MilliValue()
	}
	if s.MemoryCapacity != nil {
		it.Memory = s.MemoryCapacity.Value()
	}
	it.Arch, it.Zones, it.GPU = s.filled().Arch, []string{s.filled().Zone}, s.GPUs
	if s.GPUs > 0 {
		it.GPUType = gpuType
	}
	return it
}

// gpuType is the extended resource that simulated GPUs are.
const gpuType = "nvidia.com/gpu"

// flavors are what the cloud says it offers; any other of the pattern works too.
var flavors = []string{"16c64g200d", "2c8g30d", "4c12g30d", "4c16g30d", "8c32g100d"}

var flavorPattern = regexp.MustCompile(`^([1-9][0-9]{0,3})c([1-9][0-9]{0,4})g([0-9]{1,5})d$`)

// parseFlavor reads capacity from a flavor's name.
func parseFlavor(name string) (provider.InstanceType, bool) {
	m := flavorPattern.FindStringSubmatch(name)
	if m == nil {
		return provider.InstanceType{}, false
	}
	var n [3]int64
	for i := range n {
		n[i], _ = strconv.ParseInt(m[i+1], 10, 64) // the pattern has few digits
	}
	return provider.InstanceType{Name: name, Arch: defaultArch, MilliCPU: n[0] * 1000, Memory: n[1] << 30, Disk: n[2] << 30, Zones: []string{defaultZone}}, true
}

// boot returns how long the instance takes from creation to its Node.
func (s Spec) boot() time.Duration { return time.Duration(value(s.BootSeconds)) * time.Second }

// healthy reports whether the kubelet is, so long after its Node came.
func (s Spec) healthy(up time.Duration) bool {
	switch {
	case s.TurnUnhealthyAfter:
		return up < duration(s.HealthyDuration)
	case s.TurnUnhealthyPeriodically:
		return up%(duration(s.HealthyDuration)+duration(s.UnhealthyDuration)) < duration(s.HealthyDuration)
	}
	return true
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func duration(d *metav1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	return d.Duration
}

// encode returns the spec as it is frozen.
func (s Spec) encode() (json.RawMessage, error) {
	b, err := json.Marshal(s)
	if err != nil {
		return nil, provider.Errorf(provider.Unknown, "freeze providerSpec: %w", err)
	}
	return b, nil
}
