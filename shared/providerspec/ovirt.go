// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
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

func fillOvirt(d *draft, _ Subject) {
	d.fillIn("userDataSecret", "name", userData)
	d.fillIn("credentialsSecret", "name", "ovirt-credentials")
	d.fill("type", "server")
}

// check holds rules of our own (SPEC B79, E43).
func (s *Ovirt) check(f *findings, _ Subject) {
	f.need(at("cluster_id"), s.ClusterID, "must be the id of an oVirt cluster")
	f.need(at("template_name"), s.TemplateName, "must name a template")
	f.need(at("userDataSecret", "name"), s.UserDataSecret.Name, "must name a Secret")
	f.need(at("credentialsSecret", "name"), s.CredentialsSecret.Name, "must name a Secret")
	f.atLeast(at("os_disk", "size_gb"), s.OSDisk.SizeGB, 1)
	f.need(at("type"), s.Type, "must be desktop, server or high_performance")
	f.oneOf(at("type"), s.Type, "desktop", "server", "high_performance")
	f.oneOf(at("auto_pinning_policy"), s.AutoPinningPolicy, "none", "resize_and_pin")
	f.oneOf(at("format"), s.Format, "cow", "raw")
	if h := s.Hugepages; h != 0 && h != 2048 && h != 1048576 {
		f.fail(field.Invalid(at("hugepages"), h, "must be 2048 or 1048576"))
	}
	for i, n := range s.NetworkInterfaces {
		f.need(at("network_interfaces").Index(i).Child("vnic_profile_id"), n.VNICProfileID, "must be the id of a vNIC profile")
	}
	s.checkSize(f)
}

// checkSize: an instance type says everything, or else CPU and memory do.
func (s *Ovirt) checkSize(f *findings) {
	if id := s.InstanceTypeID; id != "" {
		if s.CPU != nil || s.MemoryMB != 0 {
			f.fail(field.Invalid(at("instance_type_id"), id, "excludes cpu and memory_mb"))
		}
		f.atLeast(at("guaranteed_memory_mb"), s.GuaranteedMemoryMB, 0)
		return
	}
	f.atLeast(at("memory_mb"), s.MemoryMB, 1)
	f.between(at("guaranteed_memory_mb"), s.GuaranteedMemoryMB, 0, max(0, s.MemoryMB))
	if s.CPU == nil {
		f.fail(field.Required(at("cpu"), "give instance_type_id, or cpu and memory_mb"))
		return
	}
	f.atLeast(at("cpu", "sockets"), s.CPU.Sockets, 1)
	f.atLeast(at("cpu", "cores"), s.CPU.Cores, 1)
	f.atLeast(at("cpu", "threads"), s.CPU.Threads, 1)
}
