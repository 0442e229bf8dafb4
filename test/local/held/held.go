// SPDX-License-Identifier: Apache-2.0

// Package held keeps loopback addresses for those who will listen there.
package held

import (
	"fmt"
	"os"
	"syscall"
)

// Addresses returns so many loopback addresses on which nobody listens. Whoever asks for one of them can, again and again; who
// asks for any is given none of them as long as the sockets are open, which do not listen themselves.
func Addresses(n int) (addresses []string, held []*os.File, err error) {
	for range n {
		address, socket, err := one()
		if err != nil {
			for _, h := range held {
				_ = h.Close()
			}
			return nil, nil, fmt.Errorf("hold an address: %w", err)
		}
		addresses, held = append(addresses, address), append(held, socket)
	}
	return addresses, held, nil
}

func one() (string, *os.File, error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, err
	}
	socket := os.NewFile(uintptr(fd), "held")
	err = syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
	if err == nil {
		err = syscall.Bind(fd, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	var at syscall.Sockaddr
	if err == nil {
		at, err = syscall.Getsockname(fd)
	}
	if err != nil {
		_ = socket.Close()
		return "", nil, err
	}
	return fmt.Sprintf("127.0.0.1:%d", at.(*syscall.SockaddrInet4).Port), socket, nil
}
