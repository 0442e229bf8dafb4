// SPDX-License-Identifier: Apache-2.0

package throttle

import (
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Dialer reaches clouds, within a time, and never a link-local address: there clouds keep the credentials of their
// instances, and whoever writes a providerSpec could name it.
func Dialer(within time.Duration) *net.Dialer {
	return &net.Dialer{Timeout: within, KeepAlive: 30 * time.Second, Control: refuseLinkLocal}
}

func refuseLinkLocal(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err == nil && a.Addr().Unmap().IsLinkLocalUnicast() {
		return provider.Errorf(provider.Denied, "%s is a link-local address: no cloud is asked there", a.Addr())
	}
	return err
}
