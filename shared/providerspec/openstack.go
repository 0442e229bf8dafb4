// SPDX-License-Identifier: Apache-2.0

package providerspec

// OpenStack is the spec of a Nova instance (SPEC E14).
type OpenStack struct {
	Head
	CloudsSecret           SecretRef                `json:"cloudsSecret,omitzero"`
	CloudName              string                   `json:"cloudName,omitempty"` // in the Secret's clouds.yaml
	Flavor                 string                   `json:"flavor,omitempty"`
	Image                  string                   `json:"image,omitempty"`
	KeyName                string                   `json:"keyName,omitempty"`
	SSHUserName            string                   `json:"sshUserName,omitempty"`
	Networks               []OpenStackNetwork       `json:"networks,omitempty"`
	Ports                  []OpenStackPort          `json:"ports,omitempty"`
	FloatingIP             string                   `json:"floatingIP,omitempty"`
	AvailabilityZone       string                   `json:"availabilityZone,omitempty"`
	SecurityGroups         []OpenStackSecurityGroup `json:"securityGroups,omitempty"`
	UserDataSecret         SecretRef                `json:"userDataSecret,omitzero"`
	Trunk                  bool                     `json:"trunk,omitempty"`
	Tags                   []string                 `json:"tags,omitempty"`
	ServerMetadata         map[string]string        `json:"serverMetadata,omitempty"`
	ConfigDrive            *bool                    `json:"configDrive,omitempty"`
	RootVolume             *OpenStackRootVolume     `json:"rootVolume,omitempty"`
	AdditionalBlockDevices []OpenStackBlockDevice   `json:"additionalBlockDevices,omitempty"`
	ServerGroupID          string                   `json:"serverGroupID,omitempty"`
	ServerGroupName        string                   `json:"serverGroupName,omitempty"`
	PrimarySubnet          string                   `json:"primarySubnet,omitempty"`
}

// OpenStackNetwork is one network to join, by uuid or filter; or the networks of the subnets, one port for each of
// them, if there is neither (E15).
type OpenStackNetwork struct {
	UUID                  string            `json:"uuid,omitempty"`
	FixedIP               string            `json:"fixedIp,omitempty"` // OpenShift ignores it since it is deprecated, and so do we
	Filter                OpenStackFilter   `json:"filter,omitzero"`
	Subnets               []OpenStackSubnet `json:"subnets,omitempty"`
	NoAllowedAddressPairs bool              `json:"noAllowedAddressPairs,omitempty"`
	PortTags              []string          `json:"portTags,omitempty"`
	VNICType              string            `json:"vnicType,omitempty"`
	Profile               map[string]string `json:"profile,omitempty"`
	PortSecurity          *bool             `json:"portSecurity,omitempty"`
}

// OpenStackSubnet is one subnet, by uuid or filter.
type OpenStackSubnet struct {
	UUID         string                `json:"uuid,omitempty"`
	Filter       OpenStackSubnetFilter `json:"filter,omitzero"`
	PortTags     []string              `json:"portTags,omitempty"`
	PortSecurity *bool                 `json:"portSecurity,omitempty"` // OpenShift ignores it since it is deprecated, and so do we
}

// OpenStackFilter matches what agrees in every field that is given. Its embedded part never selects anything.
type OpenStackFilter struct {
	ID          string `json:"id,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	TenantID    string `json:"tenantId,omitempty"`
	ProjectID   string `json:"projectId,omitempty"`
	Tags        string `json:"tags,omitempty"`
	TagsAny     string `json:"tagsAny,omitempty"`
	NotTags     string `json:"notTags,omitempty"`
	NotTagsAny  string `json:"notTagsAny,omitempty"`
	Status      string `json:"status,omitempty"`
	AdminState  *bool  `json:"adminStateUp,omitempty"`
	Shared      *bool  `json:"shared,omitempty"`
	OpenStackPaging
}

// OpenStackSubnetFilter matches what agrees in every field that is given. Its embedded part never selects anything.
type OpenStackSubnetFilter struct {
	ID              string `json:"id,omitempty"`
	Name            string `json:"name,omitempty"`
	Description     string `json:"description,omitempty"`
	NetworkID       string `json:"networkId,omitempty"`
	TenantID        string `json:"tenantId,omitempty"`
	ProjectID       string `json:"projectId,omitempty"`
	IPVersion       int64  `json:"ipVersion,omitempty"`
	GatewayIP       string `json:"gateway_ip,omitempty"`
	CIDR            string `json:"cidr,omitempty"`
	IPv6AddressMode string `json:"ipv6AddressMode,omitempty"`
	IPv6RAMode      string `json:"ipv6RaMode,omitempty"`
	SubnetPoolID    string `json:"subnetpoolId,omitempty"`
	Tags            string `json:"tags,omitempty"`
	TagsAny         string `json:"tagsAny,omitempty"`
	NotTags         string `json:"notTags,omitempty"`
	NotTagsAny      string `json:"notTagsAny,omitempty"`
	EnableDHCP      *bool  `json:"enableDhcp,omitempty"`
	OpenStackPaging
}

// OpenStackPaging is left over from the query that filters once were.
type OpenStackPaging struct {
	Limit   int64  `json:"limit,omitempty"`
	Marker  string `json:"marker,omitempty"`
	SortKey string `json:"sortKey,omitempty"`
	SortDir string `json:"sortDir,omitempty"`
}

// OpenStackSecurityGroup is one group, by uuid, name or filter.
type OpenStackSecurityGroup struct {
	UUID   string               `json:"uuid,omitempty"`
	Name   string               `json:"name,omitempty"`
	Filter OpenStackGroupFilter `json:"filter,omitzero"`
}

// OpenStackGroupFilter matches what agrees in every field that is given. Its embedded part never selects anything.
type OpenStackGroupFilter struct {
	ID          string `json:"id,omitempty"`
	Name        string `json:"name,omitempty"`
	Description string `json:"description,omitempty"`
	TenantID    string `json:"tenantId,omitempty"`
	ProjectID   string `json:"projectId,omitempty"`
	Tags        string `json:"tags,omitempty"`
	TagsAny     string `json:"tagsAny,omitempty"`
	NotTags     string `json:"notTags,omitempty"`
	NotTagsAny  string `json:"notTagsAny,omitempty"`
	OpenStackPaging
}

// OpenStackPort is one port, made as it stands.
type OpenStackPort struct {
	NetworkID           string                 `json:"networkID,omitempty"`
	NameSuffix          string                 `json:"nameSuffix,omitempty"`
	Description         string                 `json:"description,omitempty"`
	AdminStateUp        *bool                  `json:"adminStateUp,omitempty"`
	MACAddress          string                 `json:"macAddress,omitempty"`
	FixedIPs            []OpenStackFixedIP     `json:"fixedIPs,omitempty"`
	TenantID            string                 `json:"tenantID,omitempty"`
	ProjectID           string                 `json:"projectID,omitempty"`
	SecurityGroups      *[]string              `json:"securityGroups,omitempty"` // ids; none: those of the instance
	AllowedAddressPairs []OpenStackAddressPair `json:"allowedAddressPairs,omitempty"`
	Tags                []string               `json:"tags,omitempty"`
	VNICType            string                 `json:"vnicType,omitempty"`
	Profile             map[string]string      `json:"profile,omitempty"`
	PortSecurity        *bool                  `json:"portSecurity,omitempty"`
	Trunk               *bool                  `json:"trunk,omitempty"`  // nil: as the instance
	HostID              string                 `json:"hostID,omitempty"` // nobody reads it
}

// OpenStackFixedIP is an address of a port; any of the subnet if it is not given.
type OpenStackFixedIP struct {
	SubnetID  string `json:"subnetID,omitempty"`
	IPAddress string `json:"ipAddress,omitempty"`
}

// OpenStackAddressPair is a further address that a port may send from.
type OpenStackAddressPair struct {
	IPAddress  string `json:"ipAddress,omitempty"`
	MACAddress string `json:"macAddress,omitempty"`
}

// OpenStackRootVolume is the volume that the instance boots from, made from the image. DiskSize is in GiB.
type OpenStackRootVolume struct {
	SourceUUID       string `json:"sourceUUID,omitempty"` // of an image, or its name; counts instead of the spec's
	VolumeType       string `json:"volumeType,omitempty"`
	DiskSize         int64  `json:"diskSize,omitempty"`
	AvailabilityZone string `json:"availabilityZone,omitempty"`
	SourceType       string `json:"sourceType,omitempty"` // nobody reads it
	DeviceType       string `json:"deviceType,omitempty"` // nobody reads it
}

// OpenStackBlockDevice is a further disk.
type OpenStackBlockDevice struct {
	Name    string           `json:"name,omitempty"`
	SizeGiB int64            `json:"sizeGiB,omitempty"`
	Storage OpenStackStorage `json:"storage,omitzero"`
}

// OpenStackStorage is Local, on the host, or Volume.
type OpenStackStorage struct {
	Type   string                  `json:"type,omitempty"`
	Volume *OpenStackStorageVolume `json:"volume,omitempty"`
}

// OpenStackStorageVolume says which kind of volume it is.
type OpenStackStorageVolume struct {
	Type             string `json:"type,omitempty"`
	AvailabilityZone string `json:"availabilityZone,omitempty"`
}

// Selects reports whether the filter says anything at all. One that does not would match every network.
func (f OpenStackFilter) Selects() bool {
	f.OpenStackPaging, f.Status, f.AdminState, f.Shared = OpenStackPaging{}, "", nil, nil
	return f != OpenStackFilter{}
}

// Selects reports whether the filter says anything at all. One that does not would match every subnet.
func (f OpenStackSubnetFilter) Selects() bool {
	f.OpenStackPaging, f.EnableDHCP = OpenStackPaging{}, nil
	return f != OpenStackSubnetFilter{}
}

// Selects reports whether the filter says anything at all. One that does not would match every group.
func (f OpenStackGroupFilter) Selects() bool {
	f.OpenStackPaging = OpenStackPaging{}
	return f != OpenStackGroupFilter{}
}

func fillOpenStack(d *draft, of Subject) {
	d.fill("cloudName", "openstack")
	d.fillIn("cloudsSecret", "name", "openstack-cloud-credentials")
	d.fillIn("cloudsSecret", "namespace", of.Namespace)
	d.fillIn("userDataSecret", "name", userData)
}
