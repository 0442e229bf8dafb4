// SPDX-License-Identifier: Apache-2.0

// Package network is a file for Knative's package of that name; build.sh puts it there. It stands for what a pod has of its cluster: an
// address, the names of Services, and an end to what it can have open.
package network

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// ListenAddress returns the loopback address that stands for the container's port.
func ListenAddress(port int) string {
	if address := os.Getenv("LISTEN_" + strconv.Itoa(port)); address != "" {
		return address
	}
	return "127.0.0.1:0"
}

// Every sender of a process resolves names alike, and what they send is bounded together.
var pod = sync.OnceValue(func() *cluster {
	c, err := newCluster(os.Getenv("SERVICES"))
	if err != nil {
		panic(err)
	}
	return c
})

// InCluster returns a sender that finds Services: a name under svc.cluster.local has the addresses that SERVICES says. There is no proxy
// between, as there is none in a cluster: the kernel takes a connection to a Service to a pod.
func InCluster(transport http.RoundTripper) http.RoundTripper {
	return sender{pod(), transport}
}

// Bounded returns a handler that refuses while this process waits for the answers to as many requests as MOST_UNDER_WAY says.
func Bounded(handler http.Handler) http.Handler {
	most, err := strconv.Atoi(os.Getenv("MOST_UNDER_WAY"))
	if err != nil {
		return handler // it has no bound
	}
	return pod().bounded(handler, most)
}

// cluster are the Services, by "name.namespace", and what a process waits for of them.
type cluster struct {
	services map[string]*service
	underWay atomic.Int32
}

// channels is the service that every in-memory channel is: one server, told apart by the Host header.
const channels = "kn-channel"

// newCluster reads the addresses of every service as JSON.
func newCluster(text string) (*cluster, error) {
	addresses := map[string][]string{}
	if err := json.Unmarshal([]byte(text), &addresses); err != nil {
		return nil, fmt.Errorf("SERVICES: %w", err)
	}
	c := &cluster{services: map[string]*service{}}
	for name, all := range addresses {
		c.services[name] = &service{addresses: all}
	}
	return c, nil
}

// resolve returns nil for a name that no Service has.
func (c *cluster) resolve(host string) *service {
	name, inside := strings.CutSuffix(strings.TrimSuffix(host, ".cluster.local"), ".svc")
	if !inside {
		return nil
	}
	if first, _, _ := strings.Cut(name, "."); strings.HasSuffix(first, "-"+channels) {
		name = channels
	}
	return c.services[name]
}

func (c *cluster) bounded(handler http.Handler, most int) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if int(c.underWay.Load()) >= most {
			http.Error(w, "too many requests wait for their answers", http.StatusServiceUnavailable)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

// service is a name with several addresses, used in turn.
type service struct {
	addresses []string
	next      atomic.Uint32
}

// turn returns all addresses, beginning with the one whose turn it is.
func (s *service) turn() []string {
	i := int(s.next.Add(1)-1) % len(s.addresses)
	return slices.Concat(s.addresses[i:], s.addresses[:i])
}

type sender struct {
	cluster   *cluster
	transport http.RoundTripper
}

// RoundTrip sends the request to the address whose turn it is, and to the next one if nobody listens there.
func (s sender) RoundTrip(r *http.Request) (*http.Response, error) {
	to := s.cluster.resolve(r.URL.Hostname())
	if to == nil {
		return nil, fmt.Errorf("no service has the name %q", r.URL.Host)
	}
	s.cluster.underWay.Add(1)
	defer s.cluster.underWay.Add(-1)
	var refused error
	for i, address := range to.turn() {
		out, err := readdress(r, address, i > 0)
		if err != nil {
			return nil, errors.Join(refused, err)
		}
		response, err := s.transport.RoundTrip(out)
		if err == nil || !isDial(err) {
			return response, err
		}
		refused = err
	}
	return nil, refused
}

var errOnce = errors.New("this body can be sent only once")

// readdress returns the request as it goes to an address: the Host header stays.
func readdress(r *http.Request, address string, again bool) (*http.Request, error) {
	out := r.WithContext(r.Context())
	to := *r.URL
	to.Host = address
	out.URL = &to
	if out.Host == "" {
		out.Host = r.URL.Host
	}
	if !again || r.Body == nil || r.Body == http.NoBody {
		return out, nil
	}
	if r.GetBody == nil {
		return nil, errOnce
	}
	var err error
	out.Body, err = r.GetBody()
	return out, err
}

func isDial(err error) bool {
	op, ok := errors.AsType[*net.OpError](err)
	return ok && op.Op == "dial"
}
