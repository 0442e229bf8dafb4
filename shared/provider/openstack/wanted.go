// SPDX-License-Identifier: Apache-2.0

package openstack

// wanted is a spec with every name and filter turned into an id. It is frozen in the Machine's intent, so its fields keep
// their names.
type wanted struct {
	Flavor      string            `json:"flavor"`
	FlavorName  string            `json:"flavorName"`
	Image       string            `json:"image,omitempty"` // to boot from, or to make the root volume of
	Key         string            `json:"key,omitempty"`
	Zone        string            `json:"zone,omitempty"`
	ServerGroup string            `json:"serverGroup,omitempty"`
	NewGroup    string            `json:"newGroup,omitempty"` // name of a server group that was not there
	UserData    string            `json:"userData,omitempty"` // name of the Secret
	Tags        []string          `json:"tags,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	ConfigDrive *bool             `json:"configDrive,omitempty"`
	Ports       []wantedPort      `json:"ports"`
	Root        *wantedVolume     `json:"root,omitempty"`
	Disks       []wantedVolume    `json:"disks,omitempty"`
	FloatingIP  string            `json:"floatingIP,omitempty"` // id
	Mark        string            `json:"clusterUID,omitempty"`
	Primary     string            `json:"primary,omitempty"` // name of the network whose address comes first
}

// wantedPort is a port, but for its name and its tags of ours. Body is what Neutron gets.
type wantedPort struct {
	Suffix string   `json:"suffix,omitempty"` // of its name, after the instance's
	Trunk  bool     `json:"trunk,omitempty"`
	Own    bool     `json:"own,omitempty"` // the network is the project's: its ports may get MAC addresses
	Tags   []string `json:"tags,omitempty"`
	Body   portBody `json:"body"`
}

// portBody is a port as Neutron's API has it.
type portBody struct {
	Network        string         `json:"network_id"`
	Name           string         `json:"name,omitempty"`
	Description    string         `json:"description,omitempty"`
	AdminStateUp   *bool          `json:"admin_state_up,omitempty"`
	MAC            string         `json:"mac_address,omitempty"`
	FixedIPs       []fixedIP      `json:"fixed_ips,omitempty"`
	SecurityGroups *[]string      `json:"security_groups,omitempty"`
	Pairs          []addressPair  `json:"allowed_address_pairs,omitempty"`
	VNICType       string         `json:"binding:vnic_type,omitempty"`
	Profile        map[string]any `json:"binding:profile,omitempty"`
	Security       *bool          `json:"port_security_enabled,omitempty"`
}

type fixedIP struct {
	Subnet  string `json:"subnet_id,omitempty"`
	Address string `json:"ip_address,omitempty"`
}

type addressPair struct {
	Address string `json:"ip_address,omitempty"`
	MAC     string `json:"mac_address,omitempty"`
}

// wantedVolume is a disk: a volume, or space on the host if Local. The root volume is made from the image.
type wantedVolume struct {
	Name  string `json:"name"`
	GiB   int64  `json:"gib"`
	Type  string `json:"type,omitempty"`
	Zone  string `json:"zone,omitempty"`
	Local bool   `json:"local,omitempty"`
}

// rootName is what the root volume is called; no other disk may be.
const rootName = "root"

// volumes lists the volumes that the driver makes, the root first.
func (w wanted) volumes() []wantedVolume {
	var all []wantedVolume
	if w.Root != nil {
		all = append(all, *w.Root)
	}
	for _, d := range w.Disks {
		if !d.Local {
			all = append(all, d)
		}
	}
	return all
}
