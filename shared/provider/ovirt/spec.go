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

// parse reads a spec that can be resolved.
func parse(raw json.RawMessage) (providerspec.Ovirt, error) {
	s, err := providerspec.ReadValid[providerspec.Ovirt](raw, Kind)
	if err != nil {
		return s, provider.Refused(provider.Invalid, err)
	}
	lower(&s)
	for p, id := range ids(s) {
		if !uuids.MatchString(id) {
			return s, provider.Errorf(provider.Invalid, "%s: %q is no id of an oVirt engine, which is a UUID", p, id)
		}
	}
	if !words.MatchString(s.TemplateName) {
		return s, provider.Errorf(provider.Invalid, "%s: %q is no name of a template: it has other characters than letters, digits, '.', '_', '+' and '-'", at("template_name"), s.TemplateName)
	}
	for _, a := range amounts(s) {
		if a.n > most {
			return s, provider.Errorf(provider.Invalid, "%s: %d is more than any engine gives", a.at, a.n)
		}
	}
	return s, thin(s)
}

// most is what an amount of a spec may be: 2^30 MiB of memory, or GiB of disk, and no product of three passes what can be counted.
const most = 1 << 30

// amount is a number of a spec.
type amount struct {
	at *field.Path
	n  int64
}

func amounts(s providerspec.Ovirt) []amount {
	all := []amount{{at("memory_mb"), s.MemoryMB}, {at("guaranteed_memory_mb"), s.GuaranteedMemoryMB}, {at("os_disk", "size_gb"), s.OSDisk.SizeGB}}
	if s.CPU != nil {
		all = append(all, amount{at("cpu"), processorsOf(s)})
	}
	return all
}

// processorsOf returns how many CPUs s states; of absurd numbers one that is too large.
func processorsOf(s providerspec.Ovirt) int64 {
	n := int64(1)
	for _, of := range []int64{s.CPU.Sockets, s.CPU.Cores, s.CPU.Threads} {
		if of > most || n > most {
			return most + 1
		}
		n *= max(0, of)
	}
	return n
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

// ids yields the fields of s that are ids, sorted as they stand in it.
func ids(s providerspec.Ovirt) func(func(*field.Path, string) bool) {
	return func(yield func(*field.Path, string) bool) {
		if !yield(at("cluster_id"), s.ClusterID) {
			return
		}
		if s.InstanceTypeID != "" && !yield(at("instance_type_id"), s.InstanceTypeID) {
			return
		}
		if s.StorageDomainID != "" && !yield(at("storage_domain_id"), s.StorageDomainID) {
			return
		}
		for i, n := range s.NetworkInterfaces {
			if !yield(at("network_interfaces").Index(i).Child("vnic_profile_id"), n.VNICProfileID) {
				return
			}
		}
	}
}

// thin refuses disks that only a clone can have: those that depend on the template's are layers of format cow, which are sparse.
func thin(s providerspec.Ovirt) error {
	if clones(s) {
		return nil
	}
	if s.Format == "raw" {
		return provider.Errorf(provider.Invalid, "%s: %q needs clone: true: a disk that depends on its template's is of format cow", at("format"), s.Format)
	}
	if s.Sparse != nil && !*s.Sparse {
		return provider.Errorf(provider.Invalid, "%s: false needs clone: true: a disk that depends on its template's is sparse", at("sparse"))
	}
	return nil
}

// clones reports whether the disks are copies of the template's: as the spec says, else by its type, as OpenShift documents it.
func clones(s providerspec.Ovirt) bool {
	if s.Clone != nil {
		return *s.Clone
	}
	return s.Type != "desktop"
}

// instanceType returns the capacity that a spec states; with an instance type the engine is asked for that.
func instanceType(raw json.RawMessage) (provider.InstanceType, error) {
	s, err := decode(raw)
	if err != nil {
		return provider.InstanceType{}, err
	}
	it := provider.InstanceType{Name: s.InstanceTypeID, Arch: arch, Memory: min(s.MemoryMB, most) << 20, Disk: min(s.OSDisk.SizeGB, most) << 30}
	if s.CPU != nil {
		it.MilliCPU = min(processorsOf(s), most) * 1000
	}
	return it, nil
}
