// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// VSphere is the spec of a clone in a vCenter (SPEC E22).
type VSphere struct {
	Head
	UserDataSecret    LocalRef          `json:"userDataSecret,omitzero"`
	CredentialsSecret LocalRef          `json:"credentialsSecret,omitzero"`
	Template          string            `json:"template,omitempty"`
	Workspace         VSphereWorkspace  `json:"workspace,omitzero"`
	Network           VSphereNetwork    `json:"network,omitzero"`
	NumCPUs           int64             `json:"numCPUs,omitempty"` // 0, like the sizes below: what the template has
	NumCoresPerSocket int64             `json:"numCoresPerSocket,omitempty"`
	MemoryMiB         int64             `json:"memoryMiB,omitempty"`
	DiskGiB           int64             `json:"diskGiB,omitempty"`
	TagIDs            []string          `json:"tagIDs,omitempty"`
	Snapshot          string            `json:"snapshot,omitempty"`
	CloneMode         string            `json:"cloneMode,omitempty"` // fullClone if empty, linkedClone
	DataDisks         []VSphereDataDisk `json:"dataDisks,omitempty"`
}

// VSphereWorkspace says where the clone is made.
type VSphereWorkspace struct {
	Server       string `json:"server,omitempty"`
	Datacenter   string `json:"datacenter,omitempty"`
	Folder       string `json:"folder,omitempty"`
	Datastore    string `json:"datastore,omitempty"`
	ResourcePool string `json:"resourcePool,omitempty"`
	VMGroup      string `json:"vmGroup,omitempty"`
}

// VSphereNetwork lists the network cards.
type VSphereNetwork struct {
	Devices []VSphereDevice `json:"devices,omitempty"`
}

// VSphereDevice is one network card. Without addresses and pools it uses DHCP.
type VSphereDevice struct {
	NetworkName        string        `json:"networkName,omitempty"`
	Gateway            string        `json:"gateway,omitempty"`
	IPAddrs            []string      `json:"ipAddrs,omitempty"` // with prefix length
	Nameservers        []string      `json:"nameservers,omitempty"`
	AddressesFromPools []VSpherePool `json:"addressesFromPools,omitempty"`
}

// VSpherePool is an object that gives addresses.
type VSpherePool struct {
	Group    string `json:"group,omitempty"`
	Resource string `json:"resource,omitempty"`
	Name     string `json:"name,omitempty"`
}

// VSphereDataDisk is a further disk. ProvisioningMode is Thin, Thick or EagerlyZeroed; empty leaves it to the datastore.
type VSphereDataDisk struct {
	Name             string `json:"name,omitempty"`
	SizeGiB          int64  `json:"sizeGiB,omitempty"`
	ProvisioningMode string `json:"provisioningMode,omitempty"`
}

func fillVSphere(d *draft, _ Subject) {
	if d.lacks("userDataSecret") {
		d.fillIn("userDataSecret", "name", userData)
	}
	if d.lacks("credentialsSecret") {
		d.fillIn("credentialsSecret", "name", "vsphere-cloud-credentials")
	}
}

const linkedClone = "linkedClone"

var (
	tagURN   = regexp.MustCompile(`^urn:vmomi:InventoryServiceTag:[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}:[^:/]+$`)
	diskName = regexp.MustCompile(`^[a-zA-Z0-9]([-_a-zA-Z0-9]{0,78}[a-zA-Z0-9])?$`)
)

// VSphereTag reports whether id has the form of a tag's (SPEC B78), and so leads to nothing else in the path of a request.
func VSphereTag(id string) bool { return tagURN.MatchString(id) }

// check holds the rules of SPEC B78.
func (s *VSphere) check(f *findings, _ Subject) {
	f.need(at("template"), s.Template, "must name the template to clone")
	f.need(at("userDataSecret", "name"), s.UserDataSecret.Name, "must name a Secret")
	f.need(at("credentialsSecret", "name"), s.CredentialsSecret.Name, "must name a Secret")
	f.oneOf(at("cloneMode"), s.CloneMode, "fullClone", linkedClone)
	w := s.Workspace
	f.need(at("workspace", "server"), w.Server, "must name the vCenter")
	if prefix := "/" + w.Datacenter + "/vm/"; w.Folder != "" && !strings.HasPrefix(w.Folder, prefix) {
		f.fail(field.Invalid(at("workspace", "folder"), w.Folder, "must begin with "+prefix))
	}
	s.checkNetwork(f)
	s.checkTags(f)
	s.checkDataDisks(f)
	s.strange(f)
}

func (s *VSphere) checkNetwork(f *findings) {
	p := at("network", "devices")
	if len(s.Network.Devices) == 0 {
		f.fail(field.Required(p, "must have at least one network card"))
	}
	f.atMost(p, len(s.Network.Devices), 10)
	for i, d := range s.Network.Devices {
		f.need(p.Index(i).Child("networkName"), d.NetworkName, "must name a network")
	}
}

func (s *VSphere) checkTags(f *findings) {
	f.atMost(at("tagIDs"), len(s.TagIDs), 10)
	for i, id := range s.TagIDs {
		if !VSphereTag(id) {
			f.fail(field.Invalid(at("tagIDs").Index(i), id, "must be urn:vmomi:InventoryServiceTag:<uuid>:<scope>"))
		}
	}
}

func (s *VSphere) checkDataDisks(f *findings) {
	f.atMost(at("dataDisks"), len(s.DataDisks), 29)
	names := unique[string]{}
	for i, d := range s.DataDisks {
		p := at("dataDisks").Index(i)
		if !diskName.MatchString(d.Name) {
			f.fail(field.Invalid(p.Child("name"), d.Name, "must be up to 80 letters, digits, '-' or '_', with a letter or digit at both ends"))
		}
		names.add(f, p.Child("name"), d.Name)
		f.between(p.Child("sizeGiB"), d.SizeGiB, 1, 16384)
		f.oneOf(p.Child("provisioningMode"), d.ProvisioningMode, "Thin", "Thick", "EagerlyZeroed")
	}
}

// strange is what works, but hardly well enough for a Node.
func (s *VSphere) strange(f *findings) {
	if s.Workspace.Datacenter == "" {
		f.warn(at("workspace", "datacenter"), "is not given, which works only if the vCenter has no other")
	}
	linked := s.CloneMode == linkedClone
	if linked && s.DiskGiB > 0 {
		f.warn(at("diskGiB"), "%d has no effect, a linked clone has the disk of its template", s.DiskGiB)
	}
	if !linked && s.Snapshot != "" {
		f.warn(at("snapshot"), "%q has no effect, a full clone has what its template has now", s.Snapshot)
	}
	for _, m := range []struct {
		name      string
		have, min int64
	}{{"numCPUs", s.NumCPUs, 2}, {"memoryMiB", s.MemoryMiB, 2048}, {"diskGiB", s.DiskGiB, 120}} {
		if m.have < m.min && (m.name != "diskGiB" || !linked) {
			f.warn(at(m.name), "%s", fmt.Sprintf("%d is less than %d, the Node may not boot", m.have, m.min))
		}
	}
}
