// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// wireServer is where Azure answers its instances, with what is theirs alone: the same in all regions, and no cloud's endpoint.
var wireServer = netip.MustParseAddr("168.63.129.16")

// Dialer reaches clouds, within a time, and never a link-local address or Azure's WireServer: there clouds keep the credentials
// of their instances, and whoever writes a providerSpec could name it.
func Dialer(within time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: within, KeepAlive: 30 * time.Second, Control: refuseInstances}
}

// refuseInstances refuses what only an instance may ask.
func refuseInstances(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err == nil && a.Addr().Unmap() == wireServer {
		return provider.Errorf(provider.Denied, "%s is what Azure answers its instances at: no cloud is asked there", wireServer)
	}
	if err == nil && a.Addr().Unmap().IsLinkLocalUnicast() {
		return provider.Errorf(provider.Denied, "%s is a link-local address: no cloud is asked there", a.Addr())
	}
	return err
}
