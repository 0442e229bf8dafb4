// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"cmp"
	"path"
	"strings"
	"time"
)

// What the API's models have that is read or written here, under its own names. The models' packages would take a minute and more to
// compile, and their network part alone is larger than all other clouds together.

// thing is what every resource has.
type thing struct {
	ID       string            `json:"id,omitempty"`
	Name     string            `json:"name,omitempty"`
	Location string            `json:"location,omitempty"`
	Etag     string            `json:"etag,omitempty"`
	Tags     map[string]string `json:"tags,omitempty"`
	Zones    []string          `json:"zones,omitempty"`
}

// tag returns a tag. Azure tells names apart without regard to their letters' case, and may tell them in another.
func (t thing) tag(name string) string {
	if value, ok := t.Tags[name]; ok {
		return value
	}
	for have, value := range t.Tags {
		if strings.EqualFold(have, name) {
			return value
		}
	}
	return ""
}

// ref names another resource.
type ref struct {
	ID string `json:"id,omitempty"`
}

// id returns which, or "".
func (r *ref) id() string {
	if r == nil {
		return ""
	}
	return r.ID
}

// is reports whether r names the resource with an id.
func (r *ref) is(id string) bool { return r != nil && strings.EqualFold(r.ID, id) }

// What a resource says of the latest change to it.
const (
	succeeded = "Succeeded"
	creating  = "Creating"
	updating  = "Updating"
	deleting  = "Deleting"
	failed    = "Failed"
)

// instance is a virtual machine.
type instance struct {
	thing
	Plan       *plan              `json:"plan,omitempty"`
	Identity   *identities        `json:"identity,omitempty"`
	Properties instanceProperties `json:"properties,omitzero"`
}

// told reports whether an answer is about one. Without the state nobody knows how it is (SPEC E39).
func (i instance) told() bool {
	return i.ID != "" && i.Properties.State != "" && i.Properties.VMID != ""
}

type instanceProperties struct {
	Hardware     *hardware     `json:"hardwareProfile,omitempty"`
	Storage      *storage      `json:"storageProfile,omitempty"`
	System       *system       `json:"osProfile,omitempty"`
	Network      *network      `json:"networkProfile,omitempty"`
	Security     *security     `json:"securityProfile,omitempty"`
	Capabilities *capabilities `json:"additionalCapabilities,omitempty"`
	Diagnostics  *diagnostics  `json:"diagnosticsProfile,omitempty"`
	Set          *ref          `json:"availabilitySet,omitempty"`
	Reservation  *reservation  `json:"capacityReservation,omitempty"`
	Priority     string        `json:"priority,omitempty"`
	Eviction     string        `json:"evictionPolicy,omitempty"`
	Billing      *billing      `json:"billingProfile,omitempty"`

	State   string `json:"provisioningState,omitempty"`
	VMID    string `json:"vmId,omitempty"`
	View    *view  `json:"instanceView,omitempty"`
	Created string `json:"timeCreated,omitempty"`
}

type plan struct {
	Name      string `json:"name"`
	Product   string `json:"product"`
	Publisher string `json:"publisher"`
}

type identities struct {
	Type string              `json:"type"`
	User map[string]struct{} `json:"userAssignedIdentities,omitempty"`
}

type hardware struct {
	Size string `json:"vmSize,omitempty"`
}

type storage struct {
	Image *imageRef `json:"imageReference,omitempty"`
	OS    *osDisk   `json:"osDisk,omitempty"`
	Data  []osDisk  `json:"dataDisks,omitempty"`
}

type imageRef struct {
	ID        string `json:"id,omitempty"`
	Community string `json:"communityGalleryImageId,omitempty"`
	Shared    string `json:"sharedGalleryImageId,omitempty"`
	Publisher string `json:"publisher,omitempty"`
	Offer     string `json:"offer,omitempty"`
	SKU       string `json:"sku,omitempty"`
	Version   string `json:"version,omitempty"`
}

// osDisk is a disk of an instance, be it the one that it boots from or another.
type osDisk struct {
	Lun    *int64       `json:"lun,omitempty"`
	Name   string       `json:"name,omitempty"`
	System string       `json:"osType,omitempty"`
	Create string       `json:"createOption,omitempty"`
	Cache  string       `json:"caching,omitempty"`
	Delete string       `json:"deleteOption,omitempty"`
	Size   int64        `json:"diskSizeGB,omitempty"`
	Local  *localDisk   `json:"diffDiskSettings,omitempty"`
	Stored *managedDisk `json:"managedDisk,omitempty"`
}

type localDisk struct {
	Option string `json:"option"`
}

type managedDisk struct {
	ID         string        `json:"id,omitempty"`
	Type       string        `json:"storageAccountType,omitempty"`
	Encryption *ref          `json:"diskEncryptionSet,omitempty"`
	Security   *diskSecurity `json:"securityProfile,omitempty"`
}

type diskSecurity struct {
	Type       string `json:"securityEncryptionType,omitempty"`
	Encryption *ref   `json:"diskEncryptionSet,omitempty"`
}

type system struct {
	Name  string `json:"computerName,omitempty"`
	User  string `json:"adminUsername,omitempty"`
	Data  string `json:"customData,omitempty"`
	Linux *linux `json:"linuxConfiguration,omitempty"`
}

type linux struct {
	NoPasswords bool `json:"disablePasswordAuthentication"`
	SSH         *ssh `json:"ssh,omitempty"`
}

type ssh struct {
	Keys []sshKey `json:"publicKeys"`
}

type sshKey struct {
	Path string `json:"path"`
	Key  string `json:"keyData"`
}

type network struct {
	Cards []cardRef `json:"networkInterfaces"`
}

type cardRef struct {
	ID         string         `json:"id"`
	Properties *cardReference `json:"properties,omitempty"`
}

type cardReference struct {
	Primary bool   `json:"primary"`
	Delete  string `json:"deleteOption,omitempty"`
}

type security struct {
	AtHost *bool  `json:"encryptionAtHost,omitempty"`
	Type   string `json:"securityType,omitempty"`
	UEFI   *uefi  `json:"uefiSettings,omitempty"`
}

type uefi struct {
	SecureBoot bool `json:"secureBootEnabled"`
	TPM        bool `json:"vTpmEnabled"`
}

type capabilities struct {
	Ultra bool `json:"ultraSSDEnabled"`
}

type diagnostics struct {
	Boot bootDiagnostics `json:"bootDiagnostics"`
}

type bootDiagnostics struct {
	Enabled bool   `json:"enabled"`
	URI     string `json:"storageUri,omitempty"`
}

type reservation struct {
	Group ref `json:"capacityReservationGroup"`
}

type billing struct {
	Most float64 `json:"maxPrice"`
}

// view is how an instance is now.
type view struct {
	Statuses []status `json:"statuses,omitempty"`
}

// status is one word about it, such as PowerState/running or ProvisioningState/failed/AllocationFailed.
type status struct {
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// card is a network interface.
type card struct {
	thing
	Properties cardProperties `json:"properties,omitzero"`
}

func (c card) told() bool { return c.ID != "" && c.Properties.State != "" }

type cardProperties struct {
	Accelerated bool              `json:"enableAcceleratedNetworking,omitempty"`
	Addresses   []ipConfiguration `json:"ipConfigurations,omitempty"`
	Group       *ref              `json:"networkSecurityGroup,omitempty"`

	State    string `json:"provisioningState,omitempty"`
	Instance *ref   `json:"virtualMachine,omitempty"`
	DNS      *dns   `json:"dnsSettings,omitempty"`
	GUID     string `json:"resourceGuid,omitempty"`
}

type dns struct {
	Suffix string `json:"internalDomainNameSuffix,omitempty"`
	FQDN   string `json:"fqdn,omitempty"`
}

type ipConfiguration struct {
	Name       string       `json:"name"`
	Properties ipProperties `json:"properties"`
}

type ipProperties struct {
	Primary    bool       `json:"primary,omitempty"`
	Subnet     *ref       `json:"subnet,omitempty"`
	Allocation string     `json:"privateIPAllocationMethod,omitempty"`
	Version    string     `json:"privateIPAddressVersion,omitempty"`
	Private    string     `json:"privateIPAddress,omitempty"`
	Public     *publicRef `json:"publicIPAddress,omitempty"`
	Pools      []ref      `json:"loadBalancerBackendAddressPools,omitempty"`
	NATRules   []ref      `json:"loadBalancerInboundNatRules,omitempty"`
	AppGroups  []ref      `json:"applicationSecurityGroups,omitempty"`
}

type publicRef struct {
	ID         string           `json:"id"`
	Properties *publicReference `json:"properties,omitempty"`
}

type publicReference struct {
	Delete string `json:"deleteOption,omitempty"`
}

// address is a public address.
type address struct {
	thing
	SKU        *sku              `json:"sku,omitempty"`
	Properties addressProperties `json:"properties,omitzero"`
}

func (a address) told() bool { return a.ID != "" && a.Properties.State != "" }

type sku struct {
	Name string `json:"name"`
}

type addressProperties struct {
	Allocation string `json:"publicIPAllocationMethod,omitempty"`
	Version    string `json:"publicIPAddressVersion,omitempty"`

	State string `json:"provisioningState,omitempty"`
	IP    string `json:"ipAddress,omitempty"`
	Of    *ref   `json:"ipConfiguration,omitempty"`
	DNS   *dns   `json:"dnsSettings,omitempty"`
	GUID  string `json:"resourceGuid,omitempty"`
}

// disk is a managed disk. Azure gives it the tags that its instance has when it is made.
type disk struct {
	thing
	Owner      string         `json:"managedBy,omitempty"`
	Properties diskProperties `json:"properties,omitzero"`
}

func (d disk) told() bool { return d.ID != "" && d.Properties.State != "" }

type diskProperties struct {
	State   string `json:"provisioningState,omitempty"`
	Use     string `json:"diskState,omitempty"`
	GUID    string `json:"uniqueId,omitempty"`
	Created string `json:"timeCreated,omitempty"`
}

// subnet, balancer and named are what specs name and the driver only reads.
type subnet struct {
	thing
	Properties struct {
		Prefix   string   `json:"addressPrefix,omitempty"`
		Prefixes []string `json:"addressPrefixes,omitempty"`
	} `json:"properties,omitzero"`
}

func (s subnet) told() bool { return s.ID != "" }

type balancer struct {
	thing
	Properties struct {
		Pools    []ref `json:"backendAddressPools,omitempty"`
		NATRules []ref `json:"inboundNatRules,omitempty"`
	} `json:"properties,omitzero"`
}

func (b balancer) told() bool { return b.ID != "" }

type named struct{ thing }

func (n named) told() bool { return n.ID != "" }

// nameOf returns the last part of an id.
func nameOf(id string) string { return path.Base(id) }

// moment reads a time; zero if it is none.
func moment(text string) time.Time {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}

// here reports whether a thing is in the driver's location.
func (c *client) here(t thing) bool { return normal(t.Location) == c.location }

// called returns a thing's name, which some answers leave out.
func (t thing) called() string { return cmp.Or(t.Name, nameOf(t.ID)) }
