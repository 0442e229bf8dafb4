// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package main

import "net"

// holdAddresses returns loopback addresses on which nobody listens; somebody else may be given them.
func holdAddresses(n int) (addresses []string, release func(), err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		defer l.Close()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, func() {}, nil
}
