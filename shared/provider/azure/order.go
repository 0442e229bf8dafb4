// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math/big"
	"strings"
	"sync"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// What belongs to an instance is named after it, as OpenShift does: what is there under such a name can be asked for, whatever lists show.
func cardName(machine string) string    { return machine + "-nic" }
func addressName(machine string) string { return machine + "-ip" }
func systemDisk(machine string) string  { return machine + "_" + systemSuffix }

const systemSuffix = "OSDisk"

const remove = "Delete" // what becomes of it when the instance is removed

// adminUser is who may log in where the image is no CoreOS. Without a key in the spec nobody has his.
const adminUser = "core-admin"

// order is the call that makes the instance: one, with its disks. It takes its network interface along when it goes.
func (d *driver) order(r provider.Ref, req request, data []byte) (instance, error) {
	s := req.Spec
	key := req.Key
	if key == "" {
		var err error
		if key, err = nobodys(); err != nil {
			return instance{}, err
		}
	}
	i := instance{thing: thing{Location: d.location, Tags: d.tags(r, req)}}
	if s.Zone != "" {
		i.Zones = []string{s.Zone}
	}
	if s.Image.Type == "MarketplaceWithPlan" {
		i.Plan = &plan{Name: s.Image.SKU, Product: s.Image.Offer, Publisher: s.Image.Publisher}
	}
	if req.Identity != "" {
		i.Identity = &identities{Type: "UserAssigned", User: map[string]struct{}{req.Identity: {}}}
	}
	i.Properties = instanceProperties{
		Hardware: &hardware{s.VMSize},
		Storage:  &storage{Image: d.image(s.Image), OS: bootDisk(r.Name, s.OSDisk), Data: dataDisks(r.Name, s.DataDisks)},
		System: &system{
			Name: r.Name, User: adminUser, Data: base64.StdEncoding.EncodeToString(data),
			Linux: &linux{NoPasswords: true, SSH: &ssh{[]sshKey{{Path: "/home/" + adminUser + "/.ssh/authorized_keys", Key: key}}}},
		},
		Network:      &network{[]cardRef{{ID: d.id(cardKind, cardName(r.Name)), Properties: &cardReference{Primary: true, Delete: remove}}}},
		Security:     protection(s.SecurityProfile),
		Capabilities: ultra(s),
		Diagnostics:  bootLog(s.Diagnostics.Boot),
	}
	if req.Set != "" {
		i.Properties.Set = &ref{req.Set}
	}
	if id := s.CapacityReservationGroupID; id != "" {
		i.Properties.Reservation = &reservation{ref{id}}
	}
	if spot := s.SpotVMOptions; spot != nil { // their Machine is replaced when they end
		i.Properties.Priority, i.Properties.Eviction = "Spot", remove
		if spot.MaxPrice != nil {
			i.Properties.Billing = &billing{spot.MaxPrice.AsApproximateFloat64()}
		}
	}
	return i, nil
}

// image names what the instance boots from. OpenShift leaves the subscription out where it is its own.
func (d *driver) image(i providerspec.AzureImage) *imageRef {
	lower := strings.ToLower(i.ResourceID)
	switch {
	case lower == "":
		return &imageRef{Publisher: i.Publisher, Offer: i.Offer, SKU: i.SKU, Version: i.Version}
	case strings.HasPrefix(lower, "/communitygalleries/"):
		return &imageRef{Community: i.ResourceID}
	case strings.HasPrefix(lower, "/sharedgalleries/"):
		return &imageRef{Shared: i.ResourceID}
	case strings.HasPrefix(lower, "/subscriptions/"):
		return &imageRef{ID: i.ResourceID}
	}
	return &imageRef{ID: "/subscriptions/" + d.subscription + i.ResourceID}
}

func bootDisk(machine string, o providerspec.AzureOSDisk) *osDisk {
	d := &osDisk{
		Name: systemDisk(machine), System: o.OSType, Create: "FromImage", Delete: remove, Cache: o.CachingType, Size: o.DiskSizeGB,
		Stored: &managedDisk{Type: o.ManagedDisk.StorageAccountType},
	}
	if e := o.ManagedDisk.DiskEncryptionSet; e != nil && e.ID != "" {
		d.Stored.Encryption = &ref{e.ID}
	}
	if p := o.ManagedDisk.SecurityProfile; p.SecurityEncryptionType != "" {
		d.Stored.Security = &diskSecurity{Type: p.SecurityEncryptionType}
		if p.DiskEncryptionSet.ID != "" {
			d.Stored.Security.Encryption = &ref{p.DiskEncryptionSet.ID}
		}
	}
	if option := o.DiskSettings.EphemeralStorageLocation; option != "" {
		d.Local = &localDisk{option}
	}
	return d
}

func dataDisks(machine string, wanted []providerspec.AzureDataDisk) (all []osDisk) {
	for _, w := range wanted {
		d := osDisk{
			Lun: new(w.Lun), Name: machine + "_" + w.NameSuffix, Create: "Empty", Delete: w.DeletionPolicy, Cache: w.CachingType, Size: w.DiskSizeGB,
			Stored: &managedDisk{Type: w.ManagedDisk.StorageAccountType},
		}
		if e := w.ManagedDisk.DiskEncryptionSet; e != nil && e.ID != "" {
			d.Stored.Encryption = &ref{e.ID}
		}
		all = append(all, d)
	}
	return all
}

// protection is what keeps the host out. The rules of the spec see to it that its parts go together.
func protection(p *providerspec.AzureSecurityProfile) *security {
	if p == nil {
		return nil
	}
	s := &security{AtHost: p.EncryptionAtHost, Type: p.Settings.SecurityType}
	settings := p.Settings.TrustedLaunch
	if s.Type == "ConfidentialVM" {
		settings = p.Settings.ConfidentialVM
	}
	if s.Type != "" && settings != nil {
		u := settings.UEFISettings
		s.UEFI = &uefi{SecureBoot: u.SecureBoot == "Enabled", TPM: u.VirtualizedTrustedPlatformModule == "Enabled"}
	}
	return s
}

// ultra is whether ultra disks can be attached: as the spec says, else if it has one.
func ultra(s providerspec.Azure) *capabilities {
	switch s.UltraSSDCapability {
	case "Enabled":
		return &capabilities{true}
	case "Disabled":
		return &capabilities{false}
	}
	for _, d := range s.DataDisks {
		if d.ManagedDisk.StorageAccountType == "UltraSSD_LRS" {
			return &capabilities{true}
		}
	}
	return nil
}

func bootLog(b *providerspec.AzureBootDiagnostics) *diagnostics {
	if b == nil {
		return nil
	}
	d := &diagnostics{bootDiagnostics{Enabled: true}}
	if b.CustomerManaged != nil {
		d.Boot.URI = b.CustomerManaged.StorageAccountURI
	}
	return d
}

// cardOrder is the network interface. It takes the public address along when it goes with its instance.
func (d *driver) cardOrder(r provider.Ref, req request) card {
	first := ipConfiguration{Name: "pipConfig", Properties: ipProperties{Primary: true, Subnet: &ref{req.Subnet}, Allocation: "Dynamic", Version: "IPv4"}}
	p := &first.Properties
	for _, id := range req.Pools {
		p.Pools = append(p.Pools, ref{id})
	}
	for _, id := range req.AppGroups {
		p.AppGroups = append(p.AppGroups, ref{id})
	}
	if req.NATRule != "" {
		p.NATRules = []ref{{req.NATRule}}
	}
	if req.Spec.PublicIP {
		p.Public = &publicRef{ID: d.id(addressKind, addressName(r.Name)), Properties: &publicReference{remove}}
	}
	c := card{thing: thing{Location: d.location, Tags: d.tags(r, req)}}
	c.Properties = cardProperties{Accelerated: req.Spec.AcceleratedNetworking, Addresses: []ipConfiguration{first}}
	if req.IPv6 {
		second := ipProperties{Subnet: &ref{req.Subnet}, Allocation: "Dynamic", Version: "IPv6", AppGroups: p.AppGroups}
		c.Properties.Addresses = append(c.Properties.Addresses, ipConfiguration{"pipConfig-v6", second})
	}
	if req.Group != "" {
		c.Properties.Group = &ref{req.Group}
	}
	return c
}

// addressOrder is the public address, of the kind that goes with load balancers of today.
func (d *driver) addressOrder(r provider.Ref, req request) address {
	a := address{thing: thing{Location: d.location, Tags: d.tags(r, req)}, SKU: &sku{"Standard"}}
	a.Properties = addressProperties{Allocation: "Static", Version: "IPv4"}
	return a
}

// nobodys is the key of instances whose spec has none. It is made once in a process, as that takes as long as a request.
var nobodys = sync.OnceValues(nobodysKey)

// nobodysKey returns a public key whose private half is forgotten: Azure makes no instance of Linux without a key or a password.
func nobodysKey() (string, error) {
	const bits = 2048
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return "", fmt.Errorf("make a key: %w", err)
	}
	var wire []byte // RFC 4253 §6.6: each part after its length; a number begins with a bit that is not set
	for _, part := range [][]byte{[]byte("ssh-rsa"), big.NewInt(int64(private.E)).Bytes(), append([]byte{0}, private.N.Bytes()...)} {
		wire = append(binary.BigEndian.AppendUint32(wire, uint32(len(part))), part...) //nolint:gosec // a few hundred bytes
	}
	return "ssh-rsa " + base64.StdEncoding.EncodeToString(wire), nil
}
