// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"encoding/json"
	"math"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

const (
	// Kind is that of the providerSpec (SPEC E45).
	Kind = "LibvirtMachineProviderConfig"
	// Secret is the name of the Secret with the credentials: a spec has no field for another one.
	Secret = "libvirt-credentials"
	// defaultPool is the pool of a spec that names none.
	defaultPool = "default"
	// mostMemory and mostVcpu are what a daemon counts with, in MiB and CPUs.
	mostMemory, mostVcpu = math.MaxInt64 >> 20, math.MaxUint16
)

func at(names ...string) *field.Path { return providerspec.At(names...) }

// decode reads a spec without judging it.
func decode(raw json.RawMessage) (providerspec.Libvirt, error) {
	s, err := providerspec.Read[providerspec.Libvirt](raw, Kind)
	return s, provider.Refused(provider.Invalid, err)
}

// parse reads a spec that can be resolved.
func parse(raw json.RawMessage) (providerspec.Libvirt, error) {
	s, err := providerspec.ReadValid[providerspec.Libvirt](raw, Kind)
	if err != nil {
		return s, provider.Refused(provider.Invalid, err)
	}
	if s.DomainMemory > mostMemory {
		return s, provider.Errorf(provider.Invalid, "%s: %d: must be at most %d", at("domainMemory"), s.DomainMemory, int64(mostMemory))
	}
	if s.DomainVcpu > mostVcpu {
		return s, provider.Errorf(provider.Invalid, "%s: %d: must be at most %d", at("domainVcpu"), s.DomainVcpu, mostVcpu)
	}
	if id := s.NetworkUUID; id != "" {
		if _, ok := parseUUID(id); !ok {
			return s, provider.Errorf(provider.Invalid, "%s: %q is no UUID", at("networkUUID"), id)
		}
	}
	if a := s.NetworkInterfaceAddress; a != "" {
		if _, err := parseRange(a); err != nil {
			return s, provider.Errorf(provider.Invalid, "%s: %w", at("networkInterfaceAddress"), err)
		}
	}
	return s, nil
}

// instanceType returns the capacity that a spec states (SPEC E45); a domain is of no type. Its architecture is the host's, which
// a spec does not tell.
func instanceType(raw json.RawMessage) (provider.InstanceType, error) {
	s, err := decode(raw)
	if err != nil {
		return provider.InstanceType{}, err
	}
	it := provider.InstanceType{MilliCPU: min(s.DomainVcpu, mostVcpu) * 1000, Memory: min(s.DomainMemory, mostMemory) << 20}
	if size := s.Volume.VolumeSize; size != nil {
		it.Disk = size.Value()
	}
	return it, nil
}
