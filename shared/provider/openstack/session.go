// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/throttle"
)

const (
	// deniedFor is how long the cloud is not asked again after it refused the credentials: clouds lock accounts that
	// try a wrong password too often. A new Secret is another session and is tried at once.
	deniedFor = time.Minute
	// doubtedFor is how long services that do not answer are asked before the catalog is read anew: they may have moved.
	doubtedFor = time.Minute
	// noVolumesFor is how long a catalog without volumes is believed: those that are there stay when their Machines go.
	noVolumesFor = 10 * time.Minute
	// perSecond and atOnce are what one credential may ask: a busy Nova answers a hundred requests in a second.
	perSecond, atOnce = 40, 80
	// microversion of Nova, of its release Stein (2019): tags in the request that makes an instance, the flavor's name
	// in what is told of it, and instances of cells that do not answer are listed as such instead of being left out.
	microversion = "2.72"
)

// session is one login. It is made at the first call, again when the token has expired, and for where the services are by now.
type session struct {
	cloud  *cloud
	client http.Client
	turn   chan struct{} // of logging in; whoever waits for it can give up
	// grouping is the turn of making server groups.
	grouping chan struct{}

	mu      sync.Mutex
	made    *services
	asked   time.Time // for the catalog, at last
	doubted bool      // something else than OpenStack answered there, or nothing
	denied  error
	since   time.Time
}

// services are the endpoints of a cloud. A cloud may have no volumes.
type services struct {
	compute, network, image, volume *gophercloud.ServiceClient
	project                         string
	region                          string // of compute
}

func newSession(c *cloud, dial dialer) (*session, error) {
	wire, err := dial(c)
	if err != nil {
		return nil, err
	}
	s := &session{cloud: c, turn: make(chan struct{}, 1), grouping: make(chan struct{}, 1)}
	s.client = http.Client{
		Transport: throttle.Transport{Base: wire, Limiter: throttle.Of("openstack|"+c.identity(), perSecond, atOnce)},
		Timeout:   callTimeout,
		// The token is in a header that would be sent along to wherever a redirect leads.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return s, nil
}

// dial returns the network.
func dial(c *cloud) (http.RoundTripper, error) {
	return &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           throttle.Dialer(5 * time.Second).DialContext,
		TLSClientConfig:       c.tls,
		TLSHandshakeTimeout:   5 * time.Second,
		ForceAttemptHTTP2:     true,
		MaxIdleConnsPerHost:   10,
		IdleConnTimeout:       30 * time.Second,
		ResponseHeaderTimeout: callTimeout,
	}, nil
}

// connect logs in unless that was done. Where the catalog is read anew, and cannot be, the one that stands is used.
func (s *session) connect(ctx context.Context) (*services, error) {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return nil, coded("log in", ctx.Err())
	}
	if ctx.Err() != nil {
		return nil, coded("log in", ctx.Err())
	}
	if made, err := s.standing(); made != nil || err != nil {
		return made, err
	}
	made, err := s.login(ctx)
	s.note(err)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = time.Now()
	switch {
	case err == nil:
		s.made, s.doubted = made, false
	case s.made == nil || provider.CodeOf(err) == provider.Denied:
		return nil, err
	}
	return s.made, nil
}

// doubt remembers that a service did not answer, or not as OpenStack's do.
func (s *session) doubt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubted = true
}

// standing returns the login that stands, or the refusal.
func (s *session) standing() (*services, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.denied != nil && time.Since(s.since) < deniedFor {
		return nil, s.denied
	}
	age := time.Since(s.asked)
	if s.denied != nil || s.doubted && age >= doubtedFor || s.made != nil && s.made.volume == nil && age >= noVolumesFor {
		return nil, nil // once more
	}
	return s.made, nil
}

// note remembers whether the cloud refuses the credentials: at a login, or when a token has expired and there is no
// other.
func (s *session) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case err == nil:
		s.denied = nil
	case provider.CodeOf(err) == provider.Denied:
		s.denied, s.since = provider.ErrorAfter(provider.Denied, deniedFor, "%w", err), time.Now()
	}
}

func (s *session) login(ctx context.Context) (*services, error) {
	client, err := openstack.NewClient(s.cloud.auth.IdentityEndpoint)
	if err != nil {
		return nil, provider.Errorf(provider.Denied, "log in to %s: auth_url cannot be used", s.cloud.name)
	}
	client.HTTPClient = s.client
	options := s.cloud.auth
	if err := openstack.AuthenticateV3(ctx, client, &options, gophercloud.EndpointOpts{}); err != nil {
		return nil, refusedLogin(coded("log in to "+s.cloud.name, err))
	}
	return s.services(client)
}

// services reads the catalog that came with the token.
func (s *session) services(client *gophercloud.ProviderClient) (*services, error) {
	result, ok := client.GetAuthResult().(interface {
		ExtractServiceCatalog() (*tokens.ServiceCatalog, error)
		ExtractProject() (*tokens.Project, error)
	})
	if !ok {
		return nil, provider.Errorf(provider.Unknown, "log in to %s: the answer is no token", s.cloud.name)
	}
	catalog, err := result.ExtractServiceCatalog()
	if err != nil {
		return nil, provider.Errorf(provider.Unknown, "log in to %s: the catalog of services: %w", s.cloud.name, err)
	}
	region := s.region(catalog)
	made := &services{
		region:  region,
		compute: s.service(client, catalog, region, "", "compute"),
		network: s.service(client, catalog, region, "v2.0", "network"),
		image:   s.service(client, catalog, region, "v2", "image"),
		volume:  s.service(client, catalog, region, "", "block-storage", "volumev3", "volume"),
	}
	for name, found := range map[string]*gophercloud.ServiceClient{"compute": made.compute, "network": made.network, "image": made.image} {
		if found == nil {
			return nil, provider.Errorf(provider.Denied, "log in to %s: the catalog has no %s endpoint for %s in region %q", s.cloud.name, s.cloud.faces, name, s.cloud.region)
		}
	}
	made.compute.Microversion = microversion
	if project, err := result.ExtractProject(); err == nil && project != nil {
		made.project = project.ID
	}
	return made, nil
}

// endpoints returns those of a type that are for where the cloud is called from, as the catalog orders them.
func (s *session) endpoints(catalog *tokens.ServiceCatalog, kind string) (all []tokens.Endpoint) {
	for _, e := range catalog.Entries {
		if e.Type == kind {
			all = append(all, e.Endpoints...)
		}
	}
	return slices.DeleteFunc(all, func(at tokens.Endpoint) bool { return at.Interface != s.cloud.faces })
}

// region returns the region of the instances: the one that is named, else that of the first endpoint that has one.
func (s *session) region(catalog *tokens.ServiceCatalog) string {
	region := s.cloud.region
	for _, at := range s.endpoints(catalog, "compute") {
		region = first(region, at.Region, at.RegionID)
	}
	return region
}

// service returns the endpoint of the first of several types that the catalog has, with the version that its paths
// begin with, or nil. Where nobody names a region one of another does, if this one has none.
func (s *session) service(client *gophercloud.ProviderClient, catalog *tokens.ServiceCatalog, region, version string, types ...string) *gophercloud.ServiceClient {
	for _, kind := range types {
		all := s.endpoints(catalog, kind)
		at := slices.IndexFunc(all, func(at tokens.Endpoint) bool { return first(at.Region, at.RegionID) == region })
		if at < 0 && s.cloud.region == "" && len(all) > 0 {
			at = 0
		}
		if at < 0 {
			continue
		}
		base := strings.TrimRight(all[at].URL, "/") + "/"
		if version != "" && !strings.HasSuffix(base, "/"+version+"/") {
			base += version + "/"
		}
		return &gophercloud.ServiceClient{ProviderClient: client, Endpoint: base, Type: types[0]}
	}
	return nil
}
