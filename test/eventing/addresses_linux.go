// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"syscall"
)

// holdAddresses returns loopback addresses on which nobody listens. Whoever asks for one of them can, again and again; who asks for any
// is given none of them until they are released: a socket is at each that does not listen itself.
func holdAddresses(n int) (addresses []string, release func(), err error) {
	var sockets []int
	release = func() {
		for _, s := range sockets {
			_ = syscall.Close(s)
		}
	}
	for range n {
		s, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err != nil {
			release()
			return nil, nil, fmt.Errorf("hold an address: %w", err)
		}
		sockets = append(sockets, s)
		address, err := bind(s)
		if err != nil {
			release()
			return nil, nil, fmt.Errorf("hold an address: %w", err)
		}
		addresses = append(addresses, address)
	}
	return addresses, release, nil
}

func bind(socket int) (address string, err error) {
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return "", err
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", err
	}
	at, err := syscall.Getsockname(socket)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port), nil
}
