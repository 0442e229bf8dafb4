// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// maxEvent bounds the body that is kept for a second attempt; Knative's own limits are below it.
const maxEvent = 4 << 20

// network is the cluster's DNS and its Services in one: a forward proxy that takes a request for a name under svc.cluster.local to one of
// the loopback addresses behind the name.
type network struct {
	services  map[string]*service // by "name.namespace"
	channels  *service            // every in-memory channel: one server, told apart by the Host header
	transport http.RoundTripper
}

// mostUnderWay is how many requests one service may be answering at a time. More are told at once that there is no room: each holds
// two sockets here, and senders that nobody holds up use up all that a process may open, after which nothing is delivered any more.
const mostUnderWay = 1000

var errFull = errors.New("this service has no room for another request")

// service is a name with several addresses, used in turn.
type service struct {
	addresses []string
	next      atomic.Uint32
	underWay  atomic.Int32
}

func newService(addresses ...string) *service { return &service{addresses: addresses} }

// enter returns false if there is no room; leave follows it if there is.
func (s *service) enter() bool {
	if s.underWay.Add(1) <= mostUnderWay {
		return true
	}
	s.leave()
	return false
}

func (s *service) leave() { s.underWay.Add(-1) }

// turn returns all addresses, beginning with the one whose turn it is.
func (s *service) turn() []string {
	i := int(s.next.Add(1)-1) % len(s.addresses)
	return slices.Concat(s.addresses[i:], s.addresses[:i])
}

func newNetwork(services map[string]*service, channels *service) *network {
	dialer := &net.Dialer{Timeout: 2 * time.Second}
	return &network{services: services, channels: channels, transport: &http.Transport{
		DialContext:         dialer.DialContext,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 100,
		IdleConnTimeout:     30 * time.Second,
	}}
}

// resolve returns nil for a name that no Service has.
func (n *network) resolve(host string) *service {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	name, inside := strings.CutSuffix(strings.TrimSuffix(host, ".cluster.local"), ".svc")
	if !inside {
		return nil
	}
	if s := n.services[name]; s != nil {
		return s
	}
	if first, _, _ := strings.Cut(name, "."); strings.HasSuffix(first, "-kn-channel") {
		return n.channels
	}
	return nil
}

// RoundTrip sends the request to the address whose turn it is, and to the next one if nobody listens there. The service has room
// again when it answers.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	s := n.resolve(r.URL.Host)
	if s == nil {
		return nil, fmt.Errorf("no service has the name %q", r.URL.Host)
	}
	if !s.enter() {
		return nil, errFull
	}
	defer s.leave()
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(io.LimitReader(r.Body, maxEvent)); err != nil {
			return nil, fmt.Errorf("read request: %w", err)
		}
	}
	var refused error
	for _, address := range s.turn() {
		out := r.Clone(r.Context())
		out.URL.Scheme, out.URL.Host = "http", address
		out.Body = io.NopCloser(bytes.NewReader(body))
		out.ContentLength = int64(len(body))
		response, err := n.transport.RoundTrip(out)
		if err == nil || !isDial(err) {
			return response, err
		}
		refused = err
	}
	return nil, refused
}

func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}

// handler is what HTTP_PROXY points at.
func (n *network) handler() http.Handler {
	return &httputil.ReverseProxy{
		Transport: n,
		Rewrite:   func(p *httputil.ProxyRequest) { p.Out.Host = p.In.Host },
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) {
			if errors.Is(err, errFull) {
				http.Error(w, err.Error(), http.StatusServiceUnavailable)
				return
			}
			slog.Warn("request not delivered", "host", r.Host, "error", err)
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
}
