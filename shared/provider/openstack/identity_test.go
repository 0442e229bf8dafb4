// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// Whose project it is, and where, comes with the login, which every other call needs too; who cannot log in does not know it.
func TestIdentityIsTheProject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d, err := providerOf(f).Open(t.Context(), accountOf("secret"))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := d.(provider.Identified).Identity(t.Context()); got != own+":regionOne" || err != nil {
				t.Errorf("Identity = %q, %v; want %q", got, err, own+":regionOne")
			}
		}
		if len(f.calls) != 1 {
			t.Errorf("%d requests, want the login alone: %v", len(f.calls), f.calls)
		}
		f.refuses = "stale"
		stale, err := providerOf(f).Open(t.Context(), accountOf("stale"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := stale.(provider.Identified).Identity(t.Context()); got != "" || provider.CodeOf(err) != provider.Denied {
			t.Errorf("Identity = %q, %v; want it denied", got, err)
		}
	})
}

// One project may have instances in several regions, as public clouds have it, and none of them shows those of another: a Secret that
// is edited from one to the other leads elsewhere (RELIABILITY 2b.9, R-S15).
func TestAnotherRegionIsAnotherAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		whose := func(region string) string {
			a := accountOf("secret")
			a.Credentials["clouds.yaml"] = bytes.ReplaceAll(a.Credentials["clouds.yaml"], []byte("region_name: regionOne"), []byte(region))
			d, err := providerOf(newFake()).Open(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			owner, err := d.(provider.Identified).Identity(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return owner
		}
		one, two, first := whose("region_name: regionOne"), whose("region_name: regionTwo"), whose("")
		if one != own+":regionOne" || two != own+":regionTwo" {
			t.Errorf("in two regions the account is %q and %q", one, two)
		}
		if first != two { // the catalog has it first
			t.Errorf("without a region it is %q, want that of the first, %q", first, two)
		}
	})
}

// Where nobody names a region all services are of one: the instances of one region have no ports, and no volumes, in another.
func TestServicesAreOfOneRegion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
			if after || !strings.HasSuffix(r.URL.Path, "/auth/tokens") {
				return nil, nil
			}
			return loggedIn(map[string]any{"id": own}, map[string][]string{"compute": {"b", "a"}, "network": {"a", "b"}, "image": {"a"}, "volumev3": {"a", "b"}})
		}
		a := accountOf("secret")
		a.Credentials["clouds.yaml"] = bytes.ReplaceAll(a.Credentials["clouds.yaml"], []byte("region_name: regionOne"), nil)
		c, err := readClouds(a.Credentials, a.Region)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newSession(c, func(*cloud) (http.RoundTripper, error) { return f, nil })
		if err != nil {
			t.Fatal(err)
		}
		made, err := s.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for want, at := range map[string]string{
			"http://b.test/compute/": made.compute.Endpoint, "http://b.test/network/v2.0/": made.network.Endpoint,
			"http://a.test/image/v2/": made.image.Endpoint, "http://b.test/volumev3/": made.volume.Endpoint,
		} {
			if at != want {
				t.Errorf("the service is at %s, want %s", at, want)
			}
		}
	})
}

// loggedIn answers a login with a catalog: the regions of each type of service, in its order.
func loggedIn(project map[string]any, services map[string][]string) (*http.Response, error) {
	var catalog []any
	for kind, regions := range services {
		var endpoints []any
		for _, region := range regions {
			endpoints = append(endpoints, map[string]any{"interface": "public", "region": region, "url": "http://" + region + ".test/" + kind})
		}
		catalog = append(catalog, map[string]any{"type": kind, "endpoints": endpoints})
	}
	return reply(http.StatusCreated, map[string]any{"token": map[string]any{
		"expires_at": "2100-01-01T00:00:00.000000Z", "project": project, "catalog": catalog,
	}}, http.Header{"X-Subject-Token": {"t"}}), nil
}

// A cloud gets another region, which its catalog may have first, or takes one out of the catalog for a while. What is in the other is not
// gone for that: whose account it is says the region also where the catalog has one alone (R-S12, R-S15).
func TestRegionThatComesOrGoesIsAnotherAccount(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		whose := func(regions ...string) string {
			f := newFake()
			f.wire = func(_ context.Context, r *http.Request, after bool) (*http.Response, error) {
				if after || !strings.HasSuffix(r.URL.Path, "/auth/tokens") {
					return nil, nil
				}
				return loggedIn(map[string]any{"id": own}, map[string][]string{"compute": regions, "network": regions, "image": regions})
			}
			a := accountOf("secret")
			a.Credentials["clouds.yaml"] = bytes.ReplaceAll(a.Credentials["clouds.yaml"], []byte("region_name: regionOne"), nil)
			d, err := providerOf(f).Open(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			owner, err := d.(provider.Identified).Identity(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return owner
		}
		if one, other := whose("a"), whose("b", "a"); machine.SameOwner(one, other) {
			t.Errorf("a cloud of one region is %q, and with another before it %q", one, other)
		}
		if both, left := whose("a", "b"), whose("b"); machine.SameOwner(both, left) {
			t.Errorf("a cloud of two regions is %q, and without the first %q", both, left)
		}
	})
}

// A login that is of no project says of no account whose it is, though two of them may be of one region; nor is a region written that there
// is none of: the project alone is that of all of its regions (R-S15).
func TestIdentitySaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, region string
		project      map[string]any
		want         string
	}{
		{"of no project", "a", nil, ""},
		{"of no region", "", map[string]any{"id": own}, own},
		{"of both", "a", map[string]any{"id": own}, own + ":a"},
	} {
		synctest.Test(t, func(t *testing.T) {
			f := newFake()
			f.wire = func(context.Context, *http.Request, bool) (*http.Response, error) {
				one := []string{tt.region}
				return loggedIn(tt.project, map[string][]string{"compute": one, "network": one, "image": one})
			}
			a := accountOf("secret")
			a.Credentials["clouds.yaml"] = bytes.ReplaceAll(a.Credentials["clouds.yaml"], []byte("region_name: regionOne"), nil)
			d, err := providerOf(f).Open(t.Context(), a)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := d.(provider.Identified).Identity(t.Context()); got != tt.want || err != nil {
				t.Errorf("%s: %q, %v; want %q", tt.name, got, err, tt.want)
			}
		})
	}
}
