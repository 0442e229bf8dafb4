// SPDX-License-Identifier: Apache-2.0

package providerspec

import (
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Azure is the spec of an Azure instance (SPEC E38).
type Azure struct {
	Head
	UserDataSecret             SecretRef             `json:"userDataSecret,omitzero"`
	CredentialsSecret          SecretRef             `json:"credentialsSecret,omitzero"`
	Location                   string                `json:"location,omitempty"`
	VMSize                     string                `json:"vmSize,omitempty"`
	Image                      AzureImage            `json:"image,omitzero"`
	OSDisk                     AzureOSDisk           `json:"osDisk,omitzero"`
	DataDisks                  []AzureDataDisk       `json:"dataDisks,omitempty"`
	SSHPublicKey               string                `json:"sshPublicKey,omitempty"`
	PublicIP                   bool                  `json:"publicIP,omitempty"`
	Tags                       map[string]string     `json:"tags,omitempty"`
	SecurityGroup              string                `json:"securityGroup,omitempty"`
	ApplicationSecurityGroups  []string              `json:"applicationSecurityGroups,omitempty"`
	Subnet                     string                `json:"subnet,omitempty"`
	PublicLoadBalancer         string                `json:"publicLoadBalancer,omitempty"`
	InternalLoadBalancer       string                `json:"internalLoadBalancer,omitempty"`
	NatRule                    *int64                `json:"natRule,omitempty"`
	ManagedIdentity            string                `json:"managedIdentity,omitempty"`
	Vnet                       string                `json:"vnet,omitempty"`
	Zone                       string                `json:"zone,omitempty"`
	NetworkResourceGroup       string                `json:"networkResourceGroup,omitempty"`
	ResourceGroup              string                `json:"resourceGroup,omitempty"`
	SpotVMOptions              *AzureSpot            `json:"spotVMOptions,omitempty"`
	SecurityProfile            *AzureSecurityProfile `json:"securityProfile,omitempty"`
	UltraSSDCapability         string                `json:"ultraSSDCapability,omitempty"`
	AcceleratedNetworking      bool                  `json:"acceleratedNetworking,omitempty"`
	AvailabilitySet            string                `json:"availabilitySet,omitempty"`
	Diagnostics                AzureDiagnostics      `json:"diagnostics,omitzero"`
	CapacityReservationGroupID string                `json:"capacityReservationGroupID,omitempty"`
}

// AzureImage is either a resourceID, or publisher, offer, sku with version.
type AzureImage struct {
	Publisher  string `json:"publisher,omitempty"`
	Offer      string `json:"offer,omitempty"`
	SKU        string `json:"sku,omitempty"`
	Version    string `json:"version,omitempty"`
	ResourceID string `json:"resourceID,omitempty"`
	Type       string `json:"type,omitempty"` // ID, MarketplaceNoPlan, MarketplaceWithPlan
}

// AzureOSDisk is the disk that the instance boots from.
type AzureOSDisk struct {
	OSType       string             `json:"osType,omitempty"`
	ManagedDisk  AzureOSManagedDisk `json:"managedDisk,omitzero"`
	DiskSizeGB   int64              `json:"diskSizeGB,omitempty"`
	DiskSettings AzureDiskSettings  `json:"diskSettings,omitzero"`
	CachingType  string             `json:"cachingType,omitempty"` // None, ReadOnly, ReadWrite
}

// AzureOSManagedDisk says how the boot disk is stored.
type AzureOSManagedDisk struct {
	StorageAccountType string              `json:"storageAccountType,omitempty"`
	DiskEncryptionSet  *AzureEncryptionSet `json:"diskEncryptionSet,omitempty"`
	SecurityProfile    AzureDiskSecurity   `json:"securityProfile,omitzero"`
}

// AzureDiskSecurity encrypts the disk of a confidential instance: VMGuestStateOnly or DiskWithVMGuestState.
type AzureDiskSecurity struct {
	DiskEncryptionSet      AzureEncryptionSet `json:"diskEncryptionSet,omitzero"`
	SecurityEncryptionType string             `json:"securityEncryptionType,omitempty"`
}

// AzureEncryptionSet names a disk encryption set.
type AzureEncryptionSet struct {
	ID string `json:"id,omitempty"`
}

// AzureDiskSettings says where an ephemeral boot disk is: Local is on the host itself.
type AzureDiskSettings struct {
	EphemeralStorageLocation string `json:"ephemeralStorageLocation,omitempty"`
}

// AzureDataDisk is a further disk; its name is that of the Machine, "_" and the suffix.
type AzureDataDisk struct {
	NameSuffix     string           `json:"nameSuffix,omitempty"`
	DiskSizeGB     int64            `json:"diskSizeGB,omitempty"`
	ManagedDisk    AzureManagedDisk `json:"managedDisk,omitzero"`
	Lun            int64            `json:"lun,omitempty"`
	CachingType    string           `json:"cachingType,omitempty"`
	DeletionPolicy string           `json:"deletionPolicy,omitempty"` // Delete or Detach, when the Machine goes
}

// AzureManagedDisk says how a data disk is stored.
type AzureManagedDisk struct {
	StorageAccountType string              `json:"storageAccountType,omitempty"`
	DiskEncryptionSet  *AzureEncryptionSet `json:"diskEncryptionSet,omitempty"`
}

// AzureSpot asks for a spot instance. MaxPrice is in dollars an hour; nil means the on-demand price.
type AzureSpot struct {
	MaxPrice *Quantity `json:"maxPrice,omitempty"`
}

// AzureDiagnostics keeps what the instance prints at boot.
type AzureDiagnostics struct {
	Boot *AzureBootDiagnostics `json:"boot,omitempty"`
}

// AzureBootDiagnostics is AzureManaged or CustomerManaged.
type AzureBootDiagnostics struct {
	StorageAccountType string                `json:"storageAccountType,omitempty"`
	CustomerManaged    *AzureCustomerManaged `json:"customerManaged,omitempty"`
}

// AzureCustomerManaged is a storage account of one's own.
type AzureCustomerManaged struct {
	StorageAccountURI string `json:"storageAccountURI,omitempty"`
}

func fillAzure(d *draft, of Subject) {
	d.fill("vmSize", byArch(of, "Standard_D4ps_V5", "Standard_D4s_V3"))
	if of.ClusterID != "" {
		if d.open("vnet") && d.open("subnet") {
			d.fill("vnet", of.ClusterID+"-vnet")
			d.fill("subnet", of.ClusterID+"-worker-subnet")
		}
		if d.lacks("image") {
			d.fillIn("image", "resourceID", galleryImage(of, d.confidential()))
		}
	}
	d.fillIn("userDataSecret", "name", userData)
	d.fillIn("credentialsSecret", "name", "azure-cloud-credentials")
	d.fillIn("credentialsSecret", "namespace", of.Namespace)
}

// galleryImage is the image that the installer puts into the cluster's own gallery. The default of the marketplace is
// an image of one OpenShift release, which nothing here determines.
func galleryImage(of Subject, confidential bool) string {
	image := of.ClusterID
	if confidential || of.Arch == arm64 {
		image += "-gen2"
	}
	gallery := "gallery_" + strings.ReplaceAll(of.ClusterID, "-", "_")
	return "/resourceGroups/" + of.ClusterID + "-rg/providers/Microsoft.Compute/galleries/" + gallery + "/images/" + image + "/versions/latest"
}

// confidential reports whether the instance boots only from images of the second generation.
func (d *draft) confidential() bool {
	var p AzureSecurityProfile
	return decodeInto(d.fields["securityProfile"], &p) == nil && p.Settings.SecurityType == confidentialVM
}

const largestDisk = 32767 // GiB

var (
	cachingTypes     = []string{"None", "ReadOnly", "ReadWrite"}
	diskSuffix       = regexp.MustCompile(`^[a-zA-Z0-9]([\w.-]*[a-zA-Z0-9])?$`)
	reservationGroup = regexp.MustCompile(`(?i)^/subscriptions/[^/]+/resourceGroups/[^/]+/providers/Microsoft\.Compute/capacityReservationGroups/[^/]+$`)
)

// check holds the rules of SPEC B76.
func (s *Azure) check(f *findings, of Subject) {
	f.need(at("vmSize"), s.VMSize, "must name a size of instance")
	if s.Vnet != "" {
		f.need(at("subnet"), s.Subnet, "vnet is given")
	}
	if s.Subnet != "" {
		f.need(at("vnet"), s.Vnet, "subnet is given")
	}
	f.secret(at("userDataSecret"), s.UserDataSecret, of)
	f.secret(at("credentialsSecret"), s.CredentialsSecret, of)
	f.oneOf(at("ultraSSDCapability"), s.UltraSSDCapability, "Enabled", "Disabled")
	if id := s.CapacityReservationGroupID; id != "" && !reservationGroup.MatchString(id) {
		f.fail(field.Invalid(at("capacityReservationGroupID"), id,
			"must be /subscriptions/<id>/resourceGroups/<name>/providers/Microsoft.Compute/capacityReservationGroups/<name>"))
	}
	s.Image.check(f, at("image"))
	s.OSDisk.check(f, at("osDisk"))
	s.checkDataDisks(f, of)
	s.checkSecurity(f)
	if b := s.Diagnostics.Boot; b != nil {
		b.check(f, at("diagnostics", "boot"))
	}
}

func (i AzureImage) check(f *findings, p *field.Path) {
	f.oneOf(p.Child("type"), i.Type, "ID", "MarketplaceNoPlan", "MarketplaceWithPlan")
	parts := []struct{ name, value string }{{"offer", i.Offer}, {"publisher", i.Publisher}, {"sku", i.SKU}, {"version", i.Version}}
	given := i.Offer + i.Publisher + i.SKU + i.Version
	switch {
	case i.ResourceID == "" && given == "":
		f.fail(field.Required(p, "give resourceID, or offer, publisher, sku and version"))
	case i.ResourceID != "" && given != "":
		f.fail(field.Invalid(p.Child("resourceID"), i.ResourceID, "excludes offer, publisher, sku and version"))
	case i.ResourceID == "":
		for _, part := range parts {
			f.need(p.Child(part.name), part.value, "offer, publisher, sku and version go together")
		}
	}
}

func (d AzureOSDisk) check(f *findings, p *field.Path) {
	f.between(p.Child("diskSizeGB"), d.DiskSizeGB, 1, largestDisk)
	f.oneOf(p.Child("cachingType"), d.CachingType, cachingTypes...)
	location := d.DiskSettings.EphemeralStorageLocation
	f.oneOf(p.Child("diskSettings", "ephemeralStorageLocation"), location, "Local")
	if location == "Local" && d.CachingType != "ReadOnly" {
		f.fail(field.Invalid(p.Child("cachingType"), d.CachingType, "must be ReadOnly on an ephemeral disk"))
	}
}

func (s *Azure) checkDataDisks(f *findings, of Subject) {
	const longestName = 80
	suffixes, luns := unique[string]{}, unique[int64]{}
	for i, d := range s.DataDisks {
		p := at("dataDisks").Index(i)
		switch suffix := d.NameSuffix; {
		case !diskSuffix.MatchString(suffix):
			f.fail(field.Invalid(p.Child("nameSuffix"), suffix, "must be letters, digits, '_', '.' or '-', with a letter or digit at both ends"))
		case len(of.Name)+1+len(suffix) > longestName:
			f.fail(field.Invalid(p.Child("nameSuffix"), suffix, "is too long: with the Machine's name and '_' a disk's name may have 80 characters"))
		}
		suffixes.add(f, p.Child("nameSuffix"), d.NameSuffix)
		f.atLeast(p.Child("diskSizeGB"), d.DiskSizeGB, 4)
		f.between(p.Child("lun"), d.Lun, 0, 63)
		luns.add(f, p.Child("lun"), d.Lun)
		f.need(p.Child("deletionPolicy"), d.DeletionPolicy, "must be Delete or Detach")
		f.oneOf(p.Child("deletionPolicy"), d.DeletionPolicy, "Delete", "Detach")
		f.oneOf(p.Child("cachingType"), d.CachingType, cachingTypes...)
		if d.ManagedDisk.StorageAccountType == "UltraSSD_LRS" && (d.CachingType == "ReadOnly" || d.CachingType == "ReadWrite") {
			f.fail(field.Invalid(p.Child("cachingType"), d.CachingType, "must be None on a disk of type UltraSSD_LRS"))
		}
	}
}

func (b AzureBootDiagnostics) check(f *findings, p *field.Path) {
	f.need(p.Child("storageAccountType"), b.StorageAccountType, "must be AzureManaged or CustomerManaged")
	f.oneOf(p.Child("storageAccountType"), b.StorageAccountType, "AzureManaged", "CustomerManaged")
	switch c := b.CustomerManaged; {
	case b.StorageAccountType == "AzureManaged" && c != nil:
		f.fail(field.Forbidden(p.Child("customerManaged"), `storageAccountType is "AzureManaged"`))
	case b.StorageAccountType == "CustomerManaged" && (c == nil || c.StorageAccountURI == ""):
		f.fail(field.Required(p.Child("customerManaged", "storageAccountURI"), `storageAccountType is "CustomerManaged"`))
	}
}
