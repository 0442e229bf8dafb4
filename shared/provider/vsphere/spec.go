// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"encoding/json"
	"path"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// Kind is that of the providerSpec (SPEC E22).
const Kind = "VSphereMachineProviderSpec"

func at(names ...string) *field.Path { return providerspec.At(names...) }

// decode reads a spec without judging it.
func decode(raw json.RawMessage) (providerspec.VSphere, error) {
	s, err := providerspec.Read[providerspec.VSphere](raw, Kind)
	return s, provider.Refused(provider.Invalid, err)
}

// parse reads a spec that can be resolved.
func parse(raw json.RawMessage) (providerspec.VSphere, error) {
	s, err := providerspec.ReadValid[providerspec.VSphere](raw, Kind)
	if err != nil {
		return s, provider.Refused(provider.Invalid, err)
	}
	if s.MemoryMiB > most {
		return s, provider.Errorf(provider.Invalid, "%s: %d: must be at most %d", at("memoryMiB"), s.MemoryMiB, int64(most))
	}
	if s.DiskGiB > most {
		return s, provider.Errorf(provider.Invalid, "%s: %d: must be at most %d", at("diskGiB"), s.DiskGiB, int64(most))
	}
	for i, d := range s.Network.Devices {
		if err := checkDevice(d); err != nil {
			return s, provider.Errorf(provider.Invalid, "%s: %w", at("network", "devices").Index(i), err)
		}
	}
	return s, nil
}

// most bounds the sizes of a spec, in CPUs, MiB and GiB: nothing is more than can be counted.
const most = 1 << 30

// counted returns a size of a spec that nobody has judged.
func counted(n int64) int64 { return max(0, min(n, most)) }

// instanceType returns the capacity that a spec states (SPEC E28), and its template's name: what the spec leaves out is the
// template's, for which the vCenter is asked.
func instanceType(raw json.RawMessage) (provider.InstanceType, error) {
	s, err := decode(raw)
	if err != nil {
		return provider.InstanceType{}, err
	}
	it := provider.InstanceType{Arch: arch, MilliCPU: counted(s.NumCPUs) * 1000, Memory: counted(s.MemoryMiB) << 20, Disk: counted(s.DiskGiB) << 30}
	if s.Template != "" { // or the path of one
		it.Name = path.Base(s.Template)
	}
	return it, nil
}

// arch is that of every host that a vCenter manages.
const arch = "amd64"
