// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Ovirt is the spec of an oVirt instance (SPEC E43).
type Ovirt struct {
	Head
	UserDataSecret      LocalRef                `json:"userDataSecret,omitzero"`
	CredentialsSecret   LocalRef                `json:"credentialsSecret,omitzero"`
	ID                  string                  `json:"id,omitempty"`   // nobody reads it
	Name                string                  `json:"name,omitempty"` // nobody reads it: an instance is named after its Machine
	ClusterID           string                  `json:"cluster_id,omitempty"`
	TemplateName        string                  `json:"template_name,omitempty"`
	InstanceTypeID      string                  `json:"instance_type_id,omitempty"`
	CPU                 *OvirtCPU               `json:"cpu,omitempty"`
	MemoryMB            int64                   `json:"memory_mb,omitempty"` // MiB, in spite of its name
	GuaranteedMemoryMB  int64                   `json:"guaranteed_memory_mb,omitempty"`
	OSDisk              OvirtDisk               `json:"os_disk,omitzero"`
	Type                string                  `json:"type,omitempty"` // desktop, server, high_performance
	NetworkInterfaces   []OvirtNetworkInterface `json:"network_interfaces,omitempty"`
	AffinityGroupsNames []string                `json:"affinity_groups_names,omitempty"`
	AutoPinningPolicy   string                  `json:"auto_pinning_policy,omitempty"` // none, resize_and_pin
	Hugepages           int64                   `json:"hugepages,omitempty"`           // KiB; 0: none
	Clone               *bool                   `json:"clone,omitempty"`
	Sparse              *bool                   `json:"sparse,omitempty"`
	Format              string                  `json:"format,omitempty"` // cow, raw
	StorageDomainID     string                  `json:"storage_domain_id,omitempty"`
}

// OvirtCPU has sockets × cores × threads.
type OvirtCPU struct {
	Sockets int64 `json:"sockets,omitempty"`
	Cores   int64 `json:"cores,omitempty"`
	Threads int64 `json:"threads,omitempty"`
}

// OvirtDisk is the boot disk, in GiB.
type OvirtDisk struct {
	SizeGB int64 `json:"size_gb,omitempty"`
}

// OvirtNetworkInterface is one network card. Without any the template's are kept, or with an instance type that one's.
type OvirtNetworkInterface struct {
	VNICProfileID string `json:"vnic_profile_id,omitempty"`
}

// mostOvirt is what an amount may be: 2^30 MiB of memory, or GiB of disk, which no engine has; mostOvirtCPU is what each factor of a topology may be.
const mostOvirt, mostOvirtCPU = 1 << 30, 1 << 10

var (
	ovirtID   = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
	ovirtName = regexp.MustCompile(`^[\p{L}\p{N}._+-]+$`)
)

func fillOvirt(d *draft, _ Subject) {
	d.fillIn("userDataSecret", "name", userData)
	d.fillIn("credentialsSecret", "name", "ovirt-credentials")
	d.fill("type", "server")
}

// Copies reports whether the disks are copies of the template's: as the spec says, else by its type, as OpenShift documents it.
func (s *Ovirt) Copies() bool {
	if s.Clone != nil {
		return *s.Clone
	}
	return s.Type != "desktop"
}

// check holds rules of our own (SPEC B79, E43): above all, nothing but ids and words leads into requests and searches.
func (s *Ovirt) check(f *findings, _ Subject) {
	f.need(at("cluster_id"), s.ClusterID, "must be the id of an oVirt cluster")
	f.ovirtID(at("cluster_id"), s.ClusterID)
	f.ovirtID(at("instance_type_id"), s.InstanceTypeID)
	f.ovirtID(at("storage_domain_id"), s.StorageDomainID)
	f.need(at("template_name"), s.TemplateName, "must name a template")
	if n := s.TemplateName; n != "" && !ovirtName.MatchString(n) {
		f.fail(field.Invalid(at("template_name"), n, "must be letters, digits, '.', '_', '+' or '-'"))
	}
	f.need(at("userDataSecret", "name"), s.UserDataSecret.Name, "must name a Secret")
	f.need(at("credentialsSecret", "name"), s.CredentialsSecret.Name, "must name a Secret")
	f.between(at("os_disk", "size_gb"), s.OSDisk.SizeGB, 1, mostOvirt)
	f.need(at("type"), s.Type, "must be desktop, server or high_performance")
	f.oneOf(at("type"), s.Type, "desktop", "server", "high_performance")
	f.oneOf(at("auto_pinning_policy"), s.AutoPinningPolicy, "none", "resize_and_pin")
	f.oneOf(at("format"), s.Format, "cow", "raw")
	if h := s.Hugepages; h != 0 && h != 2048 && h != 1048576 {
		f.fail(field.Invalid(at("hugepages"), h, "must be 2048 or 1048576"))
	}
	for i, n := range s.NetworkInterfaces {
		p := at("network_interfaces").Index(i).Child("vnic_profile_id")
		f.need(p, n.VNICProfileID, "must be the id of a vNIC profile")
		f.ovirtID(p, n.VNICProfileID)
	}
	s.checkThin(f)
	s.checkSize(f)
}

// ovirtID wants an id of an engine, or none.
func (f *findings) ovirtID(p *field.Path, id string) {
	if id != "" && !ovirtID.MatchString(id) {
		f.fail(field.Invalid(p, id, "must be an id of an oVirt engine, which is a UUID"))
	}
}

// checkThin: disks that depend on the template's are layers of format cow, which are sparse.
func (s *Ovirt) checkThin(f *findings) {
	if s.Copies() {
		return
	}
	if s.Format == "raw" {
		f.fail(field.Invalid(at("format"), s.Format, "needs clone: true, as a disk that depends on its template's is of format cow"))
	}
	if s.Sparse != nil && !*s.Sparse {
		f.fail(field.Invalid(at("sparse"), false, "needs clone: true, as a disk that depends on its template's is sparse"))
	}
}

// checkSize: an instance type says everything, or else CPU and memory do.
func (s *Ovirt) checkSize(f *findings) {
	if id := s.InstanceTypeID; id != "" {
		if s.CPU != nil || s.MemoryMB != 0 {
			f.fail(field.Invalid(at("instance_type_id"), id, "excludes cpu and memory_mb"))
		}
		f.between(at("guaranteed_memory_mb"), s.GuaranteedMemoryMB, 0, mostOvirt)
		return
	}
	f.between(at("memory_mb"), s.MemoryMB, 1, mostOvirt)
	f.between(at("guaranteed_memory_mb"), s.GuaranteedMemoryMB, 0, max(0, s.MemoryMB))
	if s.CPU == nil {
		f.fail(field.Required(at("cpu"), "give instance_type_id, or cpu and memory_mb"))
		return
	}
	f.between(at("cpu", "sockets"), s.CPU.Sockets, 1, mostOvirtCPU)
	f.between(at("cpu", "cores"), s.CPU.Cores, 1, mostOvirtCPU)
	f.between(at("cpu", "threads"), s.CPU.Threads, 1, mostOvirtCPU)
}
