// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// instancesOnly are where clouds answer their instances, with what is theirs alone, beside link-local addresses: the same in all
// regions, and no cloud's endpoint.
var instancesOnly = map[netip.Prefix]string{
	netip.MustParsePrefix("168.63.129.16/32"):       "Azure", // its WireServer
	netip.MustParsePrefix("fd00:ec2::/32"):          "EC2",   // metadata over IPv6, credentials of pods
	netip.MustParsePrefix("fd20:ce::254/128"):       "Google Cloud",
	netip.MustParsePrefix("100.100.100.200/32"):     "Alibaba Cloud",
	netip.MustParsePrefix("fd00:100::100:200/128"):  "Alibaba Cloud",
	netip.MustParsePrefix("192.0.0.192/32"):         "Oracle Cloud",
	netip.MustParsePrefix("fd00:c1::a9fe:a9fe/128"): "Oracle Cloud",
	netip.MustParsePrefix("fd00:42::42/128"):        "Scaleway",
	netip.MustParsePrefix("fd00:a9fe:a9fe::1/128"):  "Akamai",
}

// Dialer reaches clouds, within a time, and never an address where clouds keep the credentials of their instances, nor the API
// server of the cluster that it is in: whoever writes a providerSpec could name it (RELIABILITY §4). Loopback is left alone: it is the
// function's own Pod, in which nothing else listens but Knative's queue-proxy.
func Dialer(within time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: within, KeepAlive: 30 * time.Second, Control: refuse}
}

func refuse(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil { // of IPv4 with a zone, or no address of the network's: nobody can tell what is reached
		return provider.Errorf(provider.Denied, "%q is no address with a port: no cloud is asked there", address)
	}
	if at := plain(a.Addr()); at.IsUnspecified() {
		return provider.Errorf(provider.Denied, "%s is no address of a host: no cloud is asked there", at)
	}
	for _, at := range reached(a.Addr()) {
		if err := refused(at); err != nil {
			return err
		}
	}
	return nil
}

// refused returns why no cloud is asked at an address.
func refused(at netip.Addr) error {
	for p, cloud := range instancesOnly {
		if p.Contains(at) {
			return provider.Errorf(provider.Denied, "%s is what %s answers its instances at: no cloud is asked there", at, cloud)
		}
	}
	api, _ := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST")) // of every container in a cluster; what cannot be read is no address
	if at == plain(api) {
		return provider.Errorf(provider.Denied, "%s is the API server of this cluster: no cloud is asked there", at)
	}
	if at.IsLinkLocalUnicast() {
		return provider.Errorf(provider.Denied, "%s is a link-local address: no cloud is asked there", at)
	}
	return nil
}

// holders are the IPv6 addresses that stand for one of IPv4, and which of their bytes are that one. Of a network's own (RFC 8215)
// nobody else knows how long its prefix is (RFC 6052 §2.2).
var holders = []struct {
	prefix netip.Prefix
	bytes  [4]int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), [4]int{12, 13, 14, 15}},   // RFC 6052, by which a network of IPv6 alone reaches IPv4
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{12, 13, 14, 15}}, // RFC 8215
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{9, 10, 11, 12}},
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{7, 9, 10, 11}},
	{netip.MustParsePrefix("64:ff9b:1::/48"), [4]int{6, 7, 9, 10}},
	{netip.MustParsePrefix("2002::/16"), [4]int{2, 3, 4, 5}},           // 6to4, RFC 3056
	{netip.MustParsePrefix("::/96"), [4]int{12, 13, 14, 15}},           // as it was first, RFC 4291 §2.5.5.1
	{netip.MustParsePrefix("::ffff:0:0:0/96"), [4]int{12, 13, 14, 15}}, // RFC 2765
}

// reached returns the addresses that are reached at a: itself, and those of IPv4 which it may hold.
func reached(a netip.Addr) []netip.Addr {
	at := plain(a)
	all, b := []netip.Addr{at}, at.As16()
	for _, h := range holders {
		if h.prefix.Contains(at) {
			all = append(all, netip.AddrFrom4([4]byte{b[h.bytes[0]], b[h.bytes[1]], b[h.bytes[2]], b[h.bytes[3]]}))
		}
	}
	return all
}

// plain returns a without its zone, of which no rule knows, and in the form of IPv4 if it is one.
func plain(a netip.Addr) netip.Addr { return a.WithZone("").Unmap() }
