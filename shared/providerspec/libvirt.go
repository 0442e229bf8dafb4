// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Libvirt is the spec of a domain of one libvirt daemon (SPEC E45).
type Libvirt struct {
	Head
	URI                      string            `json:"uri,omitempty"`
	DomainMemory             int64             `json:"domainMemory,omitempty"` // MiB
	DomainVcpu               int64             `json:"domainVcpu,omitempty"`
	IgnKey                   string            `json:"ignKey,omitempty"` // key of a volume with the user data
	Ignition                 *LibvirtIgnition  `json:"ignition,omitempty"`
	CloudInit                *LibvirtCloudInit `json:"cloudInit,omitempty"`
	Volume                   LibvirtVolume     `json:"volume,omitzero"`
	NetworkInterfaceName     string            `json:"networkInterfaceName,omitempty"` // of the network
	NetworkInterfaceHostname string            `json:"networkInterfaceHostname,omitempty"`
	NetworkInterfaceAddress  string            `json:"networkInterfaceAddress,omitempty"` // an address, or the range to take one from
	NetworkUUID              string            `json:"networkUUID,omitempty"`
	Autostart                bool              `json:"autostart,omitempty"`
}

// LibvirtIgnition hands the Secret's userData to Ignition.
type LibvirtIgnition struct {
	UserDataSecret string `json:"userDataSecret,omitempty"`
}

// LibvirtCloudInit hands the Secret's userData to cloud-init.
type LibvirtCloudInit struct {
	UserDataSecret string `json:"userDataSecret,omitempty"`
	SSHAccess      bool   `json:"sshAccess,omitempty"`
}

// LibvirtVolume is the boot disk, a copy-on-write volume over the base. An empty pool is "default", an empty name the
// Machine's.
type LibvirtVolume struct {
	PoolName     string    `json:"poolName,omitempty"`
	BaseVolumeID string    `json:"baseVolumeID,omitempty"`
	VolumeName   string    `json:"volumeName,omitempty"`
	VolumeSize   *Quantity `json:"volumeSize,omitempty"`
}

func fillLibvirt(d *draft, _ Subject) {
	if d.open("ignKey") && d.lacks("ignition") && d.lacks("cloudInit") {
		d.fillIn("ignition", "userDataSecret", userData)
	}
}

// check holds rules of our own (SPEC B79, E45).
func (s *Libvirt) check(f *findings, _ Subject) {
	f.need(at("uri"), s.URI, "must be the address of a libvirt daemon")
	f.atLeast(at("domainMemory"), s.DomainMemory, 1)
	f.atLeast(at("domainVcpu"), s.DomainVcpu, 1)
	f.need(at("volume", "baseVolumeID"), s.Volume.BaseVolumeID, "must be the id of the volume to boot from")
	f.positive(at("volume", "volumeSize"), s.Volume.VolumeSize)
	if s.NetworkInterfaceName == "" && s.NetworkUUID == "" {
		f.fail(field.Required(at("networkInterfaceName"), "give networkInterfaceName or networkUUID"))
	}
	if a := s.NetworkInterfaceAddress; a != "" && !isAddress(a) {
		f.fail(field.Invalid(at("networkInterfaceAddress"), a, "must be an IP address or a CIDR"))
	}
	s.checkUserData(f)
}

// isAddress reports whether text is what isIP or isCIDR of a policy takes: in whatever spelling, and of a CIDR any address.
func isAddress(text string) bool {
	ip, _, ranged := strings.Cut(text, "/")
	return len(validation.IsValidIPForLegacyField(root, ip, true, nil)) == 0 &&
		(!ranged || len(validation.IsValidCIDRForLegacyField(root, text, false, nil)) == 0)
}

func (s *Libvirt) checkUserData(f *findings) {
	if s.Ignition != nil {
		f.need(at("ignition", "userDataSecret"), s.Ignition.UserDataSecret, "must name a Secret")
	}
	if s.CloudInit != nil {
		f.need(at("cloudInit", "userDataSecret"), s.CloudInit.UserDataSecret, "must name a Secret")
	}
	if s.IgnKey != "" && s.Ignition != nil {
		f.fail(field.Forbidden(at("ignition"), "ignKey is given"))
	}
	if s.CloudInit != nil && (s.IgnKey != "" || s.Ignition != nil) {
		f.fail(field.Forbidden(at("cloudInit"), "ignKey or ignition is given"))
	}
}
