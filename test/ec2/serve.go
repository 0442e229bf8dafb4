// SPDX-License-Identifier: Apache-2.0

package ec2

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"
)

// Region is a cloud that listens on loopback, with HTTP.
type Region struct {
	*Cloud
	URL string

	server *http.Server
}

// Serve returns when the cloud listens. The context bounds the start only.
func (c *Cloud) Serve(ctx context.Context) (*Region, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("serve EC2: %w", err)
	}
	r := &Region{Cloud: c, URL: "http://" + l.Addr().String(), server: &http.Server{Handler: c, ReadHeaderTimeout: 10 * time.Second}}
	go func() { _ = r.server.Serve(l) }() // until Stop
	return r, nil
}

// Stop closes every connection and forgets nothing.
func (r *Region) Stop() { _ = r.server.Close() }
