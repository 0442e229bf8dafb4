// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"encoding/json"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// Kind is that of the providerSpec (SPEC E43).
const Kind = "OvirtMachineProviderSpec"

// arch is that of the hosts of engines that OpenShift supports.
const arch = "amd64"

var (
	// uuids are the engine's ids. What is none comes into no path of a request.
	uuids = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	// words are what may stand in a search: nothing in them is its syntax.
	words = regexp.MustCompile(`^[\p{L}\p{N}._+-]+$`)
)

func at(names ...string) *field.Path { return providerspec.At(names...) }

// decode reads a spec without judging it.
func decode(raw json.RawMessage) (providerspec.Ovirt, error) {
	s, err := providerspec.Read[providerspec.Ovirt](raw, Kind)
	return s, provider.Refused(provider.Invalid, err)
}

// parse reads a spec that can be resolved. Its ids are UUIDs and its template's name is a word, so that nothing else comes into a request.
func parse(raw json.RawMessage) (providerspec.Ovirt, error) {
	s, err := providerspec.ReadValid[providerspec.Ovirt](raw, Kind)
	lower(&s)
	return s, provider.Refused(provider.Invalid, err)
}

// lower writes the ids of s as the engine does, by which some are compared.
func lower(s *providerspec.Ovirt) {
	for _, id := range []*string{&s.ClusterID, &s.InstanceTypeID, &s.StorageDomainID} {
		*id = strings.ToLower(*id)
	}
	for n := range s.NetworkInterfaces {
		id := &s.NetworkInterfaces[n].VNICProfileID
		*id = strings.ToLower(*id)
	}
}

// most bounds the amounts of a spec that nobody has judged, and mostOf the factors of its topology: nothing is more than can be counted.
const most, mostOf = 1 << 30, 1 << 10

// instanceType returns the capacity that a spec states; with an instance type the engine is asked for that.
func instanceType(raw json.RawMessage) (provider.InstanceType, error) {
	s, err := decode(raw)
	if err != nil {
		return provider.InstanceType{}, err
	}
	it := provider.InstanceType{Name: s.InstanceTypeID, Arch: arch, Memory: min(s.MemoryMB, most) << 20, Disk: min(s.OSDisk.SizeGB, most) << 30}
	if s.CPU != nil {
		it.MilliCPU = 1000
		for _, n := range []int64{s.CPU.Sockets, s.CPU.Cores, s.CPU.Threads} {
			it.MilliCPU *= max(0, min(n, mostOf))
		}
	}
	return it, nil
}
