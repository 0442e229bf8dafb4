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
	netip.MustParsePrefix("168.63.129.16/32"):   "Azure", // its WireServer
	netip.MustParsePrefix("fd00:ec2::/32"):      "EC2",   // metadata over IPv6, credentials of pods
	netip.MustParsePrefix("fd20:ce::254/128"):   "Google Cloud",
	netip.MustParsePrefix("100.100.100.200/32"): "Alibaba Cloud",
}

// Dialer reaches clouds, within a time, and never an address where clouds keep the credentials of their instances, nor the API
// server of the cluster that it is in: whoever writes a providerSpec could name it (RELIABILITY §4).
func Dialer(within time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: within, KeepAlive: 30 * time.Second, Control: refuse}
}

func refuse(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil { // no address of the network's
		return nil
	}
	at := inner(a.Addr())
	for p, cloud := range instancesOnly {
		if p.Contains(at) {
			return provider.Errorf(provider.Denied, "%s is what %s answers its instances at: no cloud is asked there", at, cloud)
		}
	}
	if at.IsUnspecified() {
		return provider.Errorf(provider.Denied, "%s is no address of a host: no cloud is asked there", at)
	}
	if api, err := netip.ParseAddr(os.Getenv("KUBERNETES_SERVICE_HOST")); err == nil && at == inner(api) { // of every container in a cluster
		return provider.Errorf(provider.Denied, "%s is the API server of this cluster: no cloud is asked there", at)
	}
	if at.IsLinkLocalUnicast() {
		return provider.Errorf(provider.Denied, "%s is a link-local address: no cloud is asked there", a.Addr())
	}
	return nil
}

// translated are the IPv6 addresses by which a network of IPv6 alone reaches those of IPv4 (RFC 6052).
var translated = netip.MustParsePrefix("64:ff9b::/96")

// inner returns the address that is reached at a: that of IPv4 which it holds, if it holds one.
func inner(a netip.Addr) netip.Addr {
	if translated.Contains(a) {
		b := a.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return a.WithZone("").Unmap()
}
