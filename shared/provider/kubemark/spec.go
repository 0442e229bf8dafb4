// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"encoding/json"
	"regexp"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/machine"
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
type Spec providerspec.Kubemark

// parse reads a spec. What it refuses is named with its value.
func parse(raw json.RawMessage) (Spec, error) {
	s, wrong := providerspec.ReadKubemark(raw)
	if len(wrong) > 0 {
		return Spec{}, provider.Errorf(provider.Invalid, "%w", wrong[0])
	}
	return Spec(s), nil
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
	it := parseFlavor(s.Flavor)
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
		it.GPUType = machine.ResourceGPU
	}
	return it
}

// flavors are what the cloud says it offers; any other of the pattern works too.
var flavors = []string{"16c64g200d", "2c8g30d", "4c12g30d", "4c16g30d", "8c32g100d"}

var flavorPattern = regexp.MustCompile(`^([1-9][0-9]{0,3})c([1-9][0-9]{0,4})g([0-9]{1,5})d$`)

// parseFlavor reads capacity from a flavor's name; one that is none has no capacity.
func parseFlavor(name string) provider.InstanceType {
	m := flavorPattern.FindStringSubmatch(name)
	if m == nil {
		return provider.InstanceType{}
	}
	var n [3]int64
	for i := range n {
		n[i], _ = strconv.ParseInt(m[i+1], 10, 64) // the pattern has few digits
	}
	return provider.InstanceType{Name: name, Arch: defaultArch, MilliCPU: n[0] * 1000, Memory: n[1] << 30, Disk: n[2] << 30, Zones: []string{defaultZone}}
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
