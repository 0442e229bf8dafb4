// SPDX-License-Identifier: Apache-2.0

package libvirt

import (
	"encoding/binary"
	"encoding/xml"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/digitalocean/go-libvirt"
	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// dhcpHost is an address that a network reserves.
type dhcpHost struct {
	XMLName xml.Name `xml:"host"`
	MAC     string   `xml:"mac,attr,omitempty"`
	Name    string   `xml:"name,attr,omitempty"`
	IP      string   `xml:"ip,attr,omitempty"`
}

const (
	// mostTried is how many addresses of a range are looked at in each part of a network.
	mostTried = 1 << 16
	// mostRaces is how many others may take an address that was just free before the next call goes on.
	mostRaces = 5
)

// parseRange reads an address, or the range to take one from. The daemon reserves those of IPv4 alone by the address of a card.
func parseRange(text string) (netip.Prefix, error) {
	var p netip.Prefix
	a, err := netip.ParseAddr(text)
	if err == nil {
		p = netip.PrefixFrom(a, a.BitLen())
	} else if p, err = netip.ParsePrefix(text); err != nil {
		return p, fmt.Errorf("%q is neither an address nor a range such as 192.168.126.0/24", text)
	}
	if !p.Addr().Is4() {
		return p, fmt.Errorf("%q: only addresses of IPv4 can be reserved", text)
	}
	return p.Masked(), nil
}

// subnets returns where a network gives addresses of IPv4, and its own in each.
func (n networkXML) subnets() (all []netip.Prefix) {
	for i := range n.IPs {
		if p, ok := n.subnet(i); ok {
			all = append(all, p)
		}
	}
	return all
}

// subnet returns the part of a network at an index, if it gives addresses of IPv4.
func (n networkXML) subnet(i int) (netip.Prefix, bool) {
	ip := n.IPs[i]
	own, err := netip.ParseAddr(ip.Address)
	if err != nil || !own.Is4() || ip.DHCP == nil {
		return netip.Prefix{}, false
	}
	return prefixOf(own, ip.Netmask, ip.Prefix)
}

// part returns the index of the part of a network that an address is in: what it reserves stands there. A daemon that is told none takes the
// first that gives addresses, which may be of IPv6.
func (n networkXML) part(address string) int32 {
	a, err := netip.ParseAddr(address)
	for i := range n.IPs {
		if p, ok := n.subnet(i); err == nil && ok && p.Contains(a) {
			return int32(i) //nolint:gosec // of a few
		}
	}
	return -1
}

// prefixOf reads how long the prefix of a subnet is, which may be said as a mask.
func prefixOf(own netip.Addr, mask, prefix string) (netip.Prefix, bool) {
	if mask == "" {
		p, err := netip.ParsePrefix(own.String() + "/" + prefix)
		return p, err == nil
	}
	m, err := netip.ParseAddr(mask)
	if err != nil || !m.Is4() {
		return netip.Prefix{}, false
	}
	b := m.As4()
	bits := 0
	for v := binary.BigEndian.Uint32(b[:]); v&(1<<31) != 0; v <<= 1 {
		bits++
	}
	return netip.PrefixFrom(own, bits), true
}

func (n networkXML) hosts() (all []dhcpHost) {
	for _, ip := range n.IPs {
		if ip.DHCP != nil {
			all = append(all, ip.DHCP.Hosts...)
		}
	}
	return all
}

// reservable wants a network that can reserve an address of a range.
func reservable(n networkXML, text string) error {
	wanted, err := parseRange(text)
	if err != nil {
		return provider.Errorf(provider.Invalid, "%s: %w", at("networkInterfaceAddress"), err)
	}
	all := n.subnets()
	if !slices.ContainsFunc(all, wanted.Overlaps) {
		return provider.Errorf(provider.Exhausted, "%s: %q: network %q gives no address of it by DHCP, it has %v: name another, or change the network", at("networkInterfaceAddress"), text, n.Name, all)
	}
	return nil
}

// reserve has the network give the domain's card an address of the spec's range. Repeating it changes nothing: the daemon keeps one
// address for a card, and no address for two.
func (d *driver) reserve(l *daemon, r provider.Ref, req request) error {
	wanted, err := parseRange(req.Spec.NetworkInterfaceAddress)
	if err != nil {
		return provider.Errorf(provider.Invalid, "%s: %w", at("networkInterfaceAddress"), err)
	}
	net, err := l.NetworkLookupByName(req.Network)
	if err != nil {
		return d.failed("network "+req.Network, err)
	}
	for range mostRaces {
		has, err := l.describe(net)
		if err != nil {
			return err
		}
		if _, reserved := has.of(r.UID); reserved {
			return nil
		}
		leased, err := l.leased(net, r.UID)
		if err != nil {
			return err
		}
		ip, err := has.free(wanted, r.UID, append(leased, d.account.VirtualIPs...))
		if err != nil {
			return err
		}
		err = l.change(net, has, libvirt.NetworkUpdateCommandAddLast, dhcpHost{MAC: macOf(r.UID), Name: dhcpName(hostname(r, req)), IP: ip.String()})
		if err == nil {
			return nil
		}
		if _, refused := answered(err); !refused {
			return err
		}
		has, look := l.describe(net) // as it is since
		if look != nil {
			return look
		}
		if i := slices.IndexFunc(has.hosts(), func(h dhcpHost) bool { return h.Name == hostname(r, req) && h.MAC != macOf(r.UID) }); i >= 0 {
			return provider.Errorf(provider.Exhausted, "%s: %q has the address %s of network %q already, for the card %s: remove that, or name another",
				at("networkInterfaceHostname"), hostname(r, req), has.hosts()[i].IP, has.Name, has.hosts()[i].MAC)
		}
		if !slices.ContainsFunc(has.hosts(), func(h dhcpHost) bool { return h.IP == ip.String() }) {
			return d.failed("reserve "+ip.String()+" in network "+has.Name, err)
		}
	}
	return provider.Errorf(provider.Unknown, "reserve an address of %s in network %s: others were faster", wanted, req.Network)
}

// hostname is what the network calls a domain.
func hostname(r provider.Ref, req request) string {
	if h := req.Spec.NetworkInterfaceHostname; h != "" {
		return h
	}
	return r.Name
}

// dhcpName returns a name that a network can give to a card, or none: where a part of it is longer than names in DNS are, dnsmasq leaves out
// the whole reservation.
func dhcpName(name string) string {
	const mostLabel = 63
	for label := range strings.SplitSeq(name, ".") {
		if len(label) > mostLabel {
			return ""
		}
	}
	return name
}

// leased returns the addresses of a network that other cards have now, as far as the daemon knows.
func (l *daemon) leased(net libvirt.Network, uid types.UID) (all []string, err error) {
	leases, _, err := l.NetworkGetDhcpLeases(net, nil, 1, 0)
	if _, refused := answered(err); refused { // it gives none itself, or cannot tell
		return nil, nil
	}
	for _, lease := range leases {
		if !strings.EqualFold(strings.Join(lease.Mac, ""), macOf(uid)) {
			all = append(all, lease.Ipaddr)
		}
	}
	return all, err
}

// of returns what is reserved for a Machine's card.
func (n networkXML) of(uid types.UID) (dhcpHost, bool) {
	all := n.hosts()
	i := slices.IndexFunc(all, func(h dhcpHost) bool { return strings.EqualFold(h.MAC, macOf(uid)) })
	if i < 0 {
		return dhcpHost{}, false
	}
	return all[i], true
}

// free returns an address that nobody has, each Machine beginning to look elsewhere, so that many at once seldom want the same. Beside what
// the network reserves, and what its name server knows, others may have some.
func (n networkXML) free(wanted netip.Prefix, uid types.UID, others []string) (netip.Addr, error) {
	for _, h := range n.hosts() {
		others = append(others, h.IP)
	}
	for _, h := range n.Known {
		others = append(others, h.IP)
	}
	taken := map[netip.Addr]bool{}
	for _, text := range others {
		if a, err := netip.ParseAddr(text); err == nil {
			taken[a] = true
		}
	}
	for _, subnet := range n.subnets() {
		if a, ok := within(wanted, subnet, uid, taken); ok {
			return a, nil
		}
	}
	return netip.Addr{}, provider.Errorf(provider.Exhausted, "%s: network %q has no address of %s left beside reservations, leases, and the cluster's own: give a larger range, or remove reservations", at("networkInterfaceAddress"), n.Name, wanted)
}

// within returns an address of a range that a subnet gives and nobody has. Of two prefixes that overlap one lies in the other.
func within(wanted, subnet netip.Prefix, uid types.UID, taken map[netip.Addr]bool) (netip.Addr, bool) {
	if !wanted.Overlaps(subnet) {
		return netip.Addr{}, false
	}
	both := wanted
	if subnet.Bits() > wanted.Bits() {
		both = subnet.Masked()
	}
	size := uint64(1) << (32 - both.Bits())
	b := both.Addr().As4()
	first := uint64(binary.BigEndian.Uint32(b[:]))
	start := uint64(uuidOf(uid)[0])<<8 + uint64(uuidOf(uid)[1])
	for i := range min(size, mostTried) {
		var at [4]byte
		binary.BigEndian.PutUint32(at[:], uint32(first+(start+i)%size)) // within IPv4
		if a := netip.AddrFrom4(at); !taken[a] && inner(subnet, a) {
			return a, true
		}
	}
	return netip.Addr{}, false
}

// inner reports whether a host of a subnet may have an address: not the network's own ones.
func inner(p netip.Prefix, a netip.Addr) bool {
	if a == p.Addr() { // the daemon's
		return false
	}
	last := p.Masked().Addr().As4()
	v := binary.BigEndian.Uint32(last[:]) | uint32(uint64(1)<<(32-p.Bits())-1) // at most 32 bits
	binary.BigEndian.PutUint32(last[:], v)
	return p.Bits() >= 31 || a != p.Masked().Addr() && a != netip.AddrFrom4(last)
}

// change adds a reservation to a network, or takes it away: of what runs, and of what is kept.
func (l *daemon) change(net libvirt.Network, has networkXML, how libvirt.NetworkUpdateCommand, h dhcpHost) error {
	text, err := xml.Marshal(h)
	if err != nil {
		return fmt.Errorf("describe the reservation of %s: %w", h.MAC, err)
	}
	active, err := l.NetworkIsActive(net)
	if err != nil {
		return err
	}
	kept, err := l.NetworkIsPersistent(net)
	if err != nil {
		return err
	}
	where := libvirt.NetworkUpdateAffectCurrent
	if active != 0 {
		where |= libvirt.NetworkUpdateAffectLive
	}
	if kept != 0 {
		where |= libvirt.NetworkUpdateAffectConfig
	}
	return l.NetworkUpdateCompat(net, how, libvirt.NetworkSectionIPDhcpHost, has.part(h.IP), string(text), where)
}

// release takes a Machine's reservation away, and reports whether it had one.
func (d *driver) release(l *daemon, net libvirt.Network, uid types.UID) (had bool, err error) {
	for refused := error(nil); ; {
		has, err := l.describe(net)
		if missing(err) { // and what it reserved
			return had, nil
		}
		if err != nil {
			return had, err
		}
		h, reserved := has.of(uid)
		if !reserved {
			return had, nil
		}
		if refused != nil { // by somebody else than who was faster
			return true, d.failed("release "+h.IP+" in network "+net.Name, refused)
		}
		had = true
		if err = l.change(net, has, libvirt.NetworkUpdateCommandDelete, h); err == nil {
			return true, nil
		}
		if _, ok := answered(err); !ok {
			return true, err
		}
		refused = err
	}
}
