// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"encoding/xml"
	"fmt"
	"path"
	"slices"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// definition is a domain as the daemon is told to define it.
type definition struct {
	XMLName     xml.Name  `xml:"domain"`
	Type        string    `xml:"type,attr"`
	Name        string    `xml:"name"`
	UUID        string    `xml:"uuid"`
	Description string    `xml:"description"`
	Mark        mark      `xml:"metadata>mark"`
	Memory      amount    `xml:"memory"`
	VCPU        int64     `xml:"vcpu"`
	SysInfo     *sysInfo  `xml:"sysinfo"`
	OS          system    `xml:"os"`
	Features    *features `xml:"features"`
	CPU         *cpu      `xml:"cpu"`
	Disks       []disk    `xml:"devices>disk"`
	Card        card      `xml:"devices>interface"`
	Console     character `xml:"devices>serial"`
	Random      entropy   `xml:"devices>rng"`
}

type amount struct {
	Unit  string `xml:"unit,attr"`
	Value int64  `xml:",chardata"`
}

// sysInfo is what qemu's firmware hands to the guest.
type sysInfo struct {
	Type  string  `xml:"type,attr"`
	Entry fwEntry `xml:"entry"`
}

type fwEntry struct {
	Name string `xml:"name,attr"`
	File string `xml:"file,attr"`
}

type system struct {
	Firmware string `xml:"firmware,attr,omitempty"`
	Type     struct {
		Arch string `xml:"arch,attr"`
		Name string `xml:",chardata"`
	} `xml:"type"`
	Boot struct {
		Device string `xml:"dev,attr"`
	} `xml:"boot"`
}

type features struct {
	ACPI *struct{} `xml:"acpi"`
	APIC *struct{} `xml:"apic"`
}

type cpu struct {
	Mode string `xml:"mode,attr"`
}

type disk struct {
	Type   string `xml:"type,attr"`
	Device string `xml:"device,attr"`
	Driver struct {
		Name string `xml:"name,attr"`
		Type string `xml:"type,attr"`
	} `xml:"driver"`
	Source struct {
		Pool   string `xml:"pool,attr,omitempty"`
		Volume string `xml:"volume,attr,omitempty"`
		File   string `xml:"file,attr,omitempty"`
	} `xml:"source"`
	Target struct {
		Device string `xml:"dev,attr"`
		Bus    string `xml:"bus,attr"`
	} `xml:"target"`
	Serial   string    `xml:"serial,omitempty"`
	ReadOnly *struct{} `xml:"readonly"`
}

type card struct {
	Type string `xml:"type,attr"`
	MAC  struct {
		Address string `xml:"address,attr"`
	} `xml:"mac"`
	Source struct {
		Network string `xml:"network,attr"`
	} `xml:"source"`
	Model struct {
		Type string `xml:"type,attr"`
	} `xml:"model"`
}

type character struct {
	Type string `xml:"type,attr"`
}

type entropy struct {
	Model   string `xml:"model,attr"`
	Backend struct {
		Model string `xml:"model,attr"`
		File  string `xml:",chardata"`
	} `xml:"backend"`
}

const (
	// fwConfig is where Ignition looks in what the firmware hands over.
	fwConfig = "opt/com.coreos/config"
	// ignitionSerial is how it knows a disk with its configuration, where there is no such firmware.
	ignitionSerial = "ignition"
)

// hasFirmwareConfig are the architectures on which qemu's firmware hands files to Ignition.
var hasFirmwareConfig = []string{"x86_64", "i686", "aarch64"}

// mark returns what a new domain carries.
func (d *driver) mark(r provider.Ref, req request, host string, now time.Time) mark {
	m := mark{
		Cluster: d.account.ClusterID, Of: req.Mark, UID: r.UID, Token: r.Token, Namespace: d.account.Namespace, Name: r.Name,
		Stem: stem(or(req.Spec.Volume.VolumeName, r.Name)), Pool: req.Pool, Host: host, Hostname: req.Spec.NetworkInterfaceHostname,
		Autostart: req.Spec.Autostart, Created: now.UTC().Format(time.RFC3339),
	}
	if req.Spec.NetworkInterfaceAddress != "" {
		m.Network = req.Network
	}
	return m
}

// define describes a domain. Its volumes need not be there yet: the daemon looks for them when it starts it.
func define(req request, m mark) (string, error) {
	def := definition{
		Type: req.Hypervisor, Name: m.Name, UUID: idOf(uuidOf(m.UID)),
		Description: fmt.Sprintf("Machine %s/%s of cluster %s", m.Namespace, m.Name, m.Cluster),
		Mark:        m, Memory: amount{"MiB", req.Spec.DomainMemory}, VCPU: req.Spec.DomainVcpu,
		Disks: []disk{volumeDisk(req.Pool, m.volume(roleRoot), "qcow2", "vda")}, Console: character{Type: "pty"},
	}
	def.OS.Type.Arch, def.OS.Type.Name, def.OS.Boot.Device = req.Arch, "hvm", "hd"
	switch req.Arch {
	case "x86_64", "i686":
		def.Features = &features{ACPI: &struct{}{}, APIC: &struct{}{}}
	case "aarch64": // whose distributions expect the tables of such firmware
		def.OS.Firmware, def.Features = "efi", &features{ACPI: &struct{}{}}
	}
	switch req.Hypervisor { // the newest guests do not run on the oldest CPU that a hypervisor can show them
	case "kvm":
		def.CPU = &cpu{"host-passthrough"}
	case "qemu":
		def.CPU = &cpu{"maximum"}
	}
	def.Card.Type, def.Card.MAC.Address, def.Card.Source.Network, def.Card.Model.Type = "network", macOf(m.UID), req.Network, "virtio"
	def.Random.Model, def.Random.Backend.Model, def.Random.Backend.File = "virtio", "random", "/dev/urandom"
	def.userData(req, m)
	text, err := xml.Marshal(def)
	if err != nil {
		return "", provider.Errorf(provider.Invalid, "describe domain %s: %w", m.Name, err)
	}
	return string(text), nil
}

// userData hands the user data over: to Ignition by the firmware or on a disk of its own, to cloud-init on a disk of its own.
func (def *definition) userData(req request, m mark) {
	file := req.UserData
	if req.Spec.Ignition != nil {
		file = path.Join(req.Folder, m.volume(roleIgnition))
	}
	switch {
	case req.Spec.CloudInit != nil:
		def.Disks = append(def.Disks, readOnly(volumeDisk(req.Pool, m.volume(roleCloudInit), "raw", "vdb")))
	case file == "": // the spec hands none over
	case slices.Contains(hasFirmwareConfig, req.Arch):
		def.SysInfo = &sysInfo{Type: "fwcfg", Entry: fwEntry{fwConfig, file}}
	default:
		it := readOnly(disk{Type: "file", Device: "disk", Serial: ignitionSerial})
		it.Driver.Name, it.Driver.Type, it.Source.File, it.Target.Device, it.Target.Bus = "qemu", "raw", file, "vdb", "virtio"
		def.Disks = append(def.Disks, it)
	}
}

func volumeDisk(pool, volume, format, device string) disk {
	it := disk{Type: "volume", Device: "disk"}
	it.Driver.Name, it.Driver.Type, it.Source.Pool, it.Source.Volume, it.Target.Device, it.Target.Bus = "qemu", format, pool, volume, device, "virtio"
	return it
}

func readOnly(it disk) disk {
	it.ReadOnly = &struct{}{}
	return it
}
