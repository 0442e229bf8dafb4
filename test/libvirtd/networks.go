// SPDX-License-Identifier: Apache-2.0

package libvirtd

import (
	"encoding/xml"
	"fmt"
	"html"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"github.com/google/uuid"
)

// network is one with DHCP, of 254 addresses.
type network struct {
	name   string
	uuid   libvirt.UUID
	prefix string // of its addresses, three numbers; the first is the daemon's
	active bool
	hosts  []Host
	leases []string // MACs, in the order in which they came
	six    bool     // addresses of IPv6 come first
	known  []string // addresses, to its name server
}

// Host is an address that is reserved for a card.
type Host struct {
	MAC  string `xml:"mac,attr"`
	Name string `xml:"name,attr"`
	IP   string `xml:"ip,attr"`
}

func (d *Daemon) network(name string) (*network, error) {
	if n := d.networks[name]; n != nil {
		return n, nil
	}
	return nil, failure(libvirt.ErrNoNetwork, "Network not found: no network with matching name '%s'", name)
}

func (n *network) ref() libvirt.Network { return libvirt.Network{Name: n.name, UUID: n.uuid} }

func (n *network) describe() string {
	var hosts strings.Builder
	for _, h := range n.hosts {
		fmt.Fprintf(&hosts, "<host mac='%s' name='%s' ip='%s'/>", h.MAC, html.EscapeString(h.Name), h.IP)
	}
	var known strings.Builder
	for _, ip := range n.known {
		fmt.Fprintf(&known, "<dns><host ip='%s'><hostname>api</hostname></host></dns>", ip)
	}
	if n.six {
		known.WriteString("<ip family='ipv6' address='2001:db8::1' prefix='64'><dhcp><range start='2001:db8::100' end='2001:db8::200'/></dhcp></ip>")
	}
	return fmt.Sprintf(`<network><name>%s</name><uuid>%s</uuid><forward mode='nat'/>%s<ip address='%s.1' netmask='255.255.255.0'><dhcp><range start='%s.2' end='%s.254'/>%s</dhcp></ip></network>`,
		html.EscapeString(n.name), uuid.UUID(n.uuid), known.String(), n.prefix, n.prefix, n.prefix, hosts.String())
}

// update adds a reservation, or takes it away.
func (n *network) update(command, section uint32, part int32, text string) error {
	var h Host
	if n.six && part < 1 { // the first that gives addresses
		return failure(libvirt.ErrXMLError, "XML error: Invalid to specify MAC address '%s' in network '%s' IPv6 static host definition", text, n.name)
	}
	if err := xml.Unmarshal([]byte(text), &h); err != nil || section != uint32(libvirt.NetworkSectionIPDhcpHost) {
		return failure(libvirt.ErrXMLError, "XML error: %v", err)
	}
	at := slices.IndexFunc(n.hosts, func(o Host) bool {
		return h.MAC != "" && strings.EqualFold(o.MAC, h.MAC) || h.IP != "" && o.IP == h.IP || h.Name != "" && o.Name == h.Name
	})
	switch {
	case command == uint32(libvirt.NetworkUpdateCommandDelete) && at < 0:
		return failure(libvirt.ErrOperationInvalid, "Requested operation is not valid: couldn't locate a matching dhcp host entry in network '%s'", n.name)
	case command == uint32(libvirt.NetworkUpdateCommandDelete):
		n.hosts = slices.Delete(n.hosts, at, at+1)
	case command != uint32(libvirt.NetworkUpdateCommandAddLast):
		return failure(libvirt.ErrNoSupport, "this function is not supported")
	case at >= 0:
		return failure(libvirt.ErrOperationInvalid, "Requested operation is not valid: there is an existing dhcp host entry in network '%s' that matches %q", n.name, text)
	case !strings.HasPrefix(h.IP, n.prefix+"."):
		return failure(libvirt.ErrXMLError, "XML error: %s is not in the network", h.IP)
	default:
		n.hosts = append(n.hosts, h)
	}
	return nil
}

// lease returns the address of a card: the one that is reserved, or one that no other card has.
func (n *network) lease(mac string) string {
	for _, h := range n.hosts {
		if strings.EqualFold(h.MAC, mac) {
			return h.IP
		}
	}
	at := slices.Index(n.leases, mac)
	if at < 0 {
		n.leases, at = append(n.leases, mac), len(n.leases)
	}
	return fmt.Sprintf("%s.%d", n.prefix, 2+at%253)
}

// given are the leases that cards have. Where one is of an address that was reserved for another since, that one gets none of it.
func (n *network) given() (all []libvirt.NetworkDhcpLease) {
	for _, mac := range n.leases {
		all = append(all, libvirt.NetworkDhcpLease{Iface: n.name, Mac: libvirt.OptString{mac}, Ipaddr: n.lease(mac), Prefix: 24})
	}
	return all
}

// cards returns the addresses of a domain's cards.
func (d *Daemon) cards(m *domain) (all []libvirt.DomainInterface) {
	for i, c := range m.def.Cards {
		if n := d.networks[c.Source.Network]; n != nil && n.prefix != "" {
			all = append(all, libvirt.DomainInterface{
				Name: fmt.Sprintf("vnet%d", i), Hwaddr: libvirt.OptString{c.MAC.Address}, Addrs: []libvirt.DomainIPAddr{{Addr: n.lease(c.MAC.Address), Prefix: 24}},
			})
		}
	}
	return all
}

// Reserved returns the addresses that a network reserves.
func (d *Daemon) Reserved(name string) []Host {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.networks[name].hosts)
}

// SixFirst gives a network addresses of IPv6 before the others.
func (d *Daemon) SixFirst(name string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.networks[name].six = true
}

// Name tells the name server of a network an address.
func (d *Daemon) Name(name, ip string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.networks[name].known = append(d.networks[name].known, ip)
}

// Reserve reserves an address as people do.
func (d *Daemon) Reserve(name string, h Host) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.networks[name].hosts = append(d.networks[name].hosts, h)
}

// Switch starts a network or stops it.
func (d *Daemon) Switch(name string, on bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.networks[name].active = on
}
