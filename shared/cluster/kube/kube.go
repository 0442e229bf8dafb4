// SPDX-License-Identifier: Apache-2.0

// Package kube is the port to a real Kubernetes API server, over plain HTTP with JSON or protobuf.
package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/rest"

	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/flights"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// Options say on whose behalf a Cluster acts.
type Options struct {
	FieldManager string      // who owns the fields that are written: the function's name
	Component    string      // source of Events whose note names none; empty: the FieldManager
	Namespaces   []string    // that the deployment serves; empty: machine.Namespace
	Watched      []plan.Kind // of which lists in full are kept and brought up to date; needs the right to watch them
}

// Cluster is an API server. It knows the kinds of plan.Resources and asks no discovery for them.
type Cluster struct {
	client *http.Client
	base   *url.URL
	Options
	// ahead is how far the local clock was ahead of the server's at its latest answer, in nanoseconds.
	ahead atomic.Int64
	// notServed says when a kind was last proven not to be served. Losing it costs a request.
	notServed sync.Map // plan.Kind → time.Time
	views     map[snapshot.Query]*view
	admitted  atomic.Bool   // that it may look where it serves is proven
	places    chan struct{} // one for each request that is under way
	lists     *flights.Group[snapshot.Query, listing]
}

// listing is the answer to a list. Everybody who waited for it shares the objects.
type listing struct {
	objects []plan.Object
	date    time.Time
}

var _ cluster.Cluster = (*Cluster)(nil)

// New returns the API server that config describes, without asking it anything. At most maxRequests are under way at a time,
// others wait for their turn; how many a second that makes, the server's own priorities and fairness say.
func New(config *rest.Config, o Options) (*Cluster, error) {
	config = rest.CopyConfig(config)
	config.UserAgent = "machine-functions/" + o.FieldManager
	config.DisableCompression = true // costs more time on both ends than it saves on a cluster's own network
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", config.Host, err)
	}
	if o.Component == "" {
		o.Component = o.FieldManager
	}
	if len(o.Namespaces) == 0 {
		o.Namespaces = []string{machine.Namespace}
	}
	here := *client // that one may be everybody's; a write that is sent elsewhere becomes a GET there
	here.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c := &Cluster{
		client: &here, base: base, Options: o, views: map[snapshot.Query]*view{},
		places: make(chan struct{}, maxRequests), lists: flights.New[snapshot.Query, listing](0),
	}
	for _, k := range o.Watched {
		for _, namespace := range cluster.Namespaces(snapshot.All(k), o.Namespaces) {
			c.views[snapshot.Query{Kind: k, Namespace: namespace}] = &view{namespace: namespace, page: keptPage, fewest: keptPage + 1}
		}
	}
	return c, nil
}

// now is the server's clock as far as it is known without asking.
func (c *Cluster) now() time.Time { return time.Now().Add(-time.Duration(c.ahead.Load())) }

// Issuer returns who issues tokens of service accounts, and the keys that they are signed with, a JSON Web Key Set: both by the
// word of the API server, whose discovery document may name another place for the keys, which is not asked. Every service account
// may ask.
func (c *Cluster) Issuer(ctx context.Context) (name string, keys []byte, err error) {
	about, err := c.callNow(ctx, http.MethodGet, "/.well-known/openid-configuration", nil, "", nil, typeJSON)
	if err != nil {
		return "", nil, err
	}
	var document struct{ Issuer string }
	if err := json.Unmarshal(about.body, &document); err != nil {
		return "", nil, fmt.Errorf("read the API server's discovery document: %w", err)
	}
	a, err := c.callNow(ctx, http.MethodGet, "/openid/v1/jwks", nil, "", nil, "application/jwk-set+json")
	return document.Issuer, a.body, err
}
