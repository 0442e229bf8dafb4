// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/pagination"

	"github.com/machine-functions/machine-functions/shared/provider"
	driver "github.com/machine-functions/machine-functions/shared/provider/openstack"
)

// cloud is the real one, as its administrator and as the project that the driver works in see it.
type cloud struct {
	clouds          []byte
	name            string // of the project, which is that of the entry in clouds.yaml
	admin, user     Clients
	flavor, image   string
	network, subnet string
}

// theCloud returns the cloud with what the walk-through's spec names (SPEC S9), or skips the test. Tests with projects of
// their own run side by side.
func theCloud(t *testing.T, project string) *cloud {
	t.Helper()
	path := os.Getenv(Variable)
	if path == "" {
		t.Skip(Variable + " names no clouds.yaml: make test-openstack starts an OpenStack")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{clouds: text, name: project, admin: login(t, text, "admin"), user: login(t, text, project)}
	c.prepare(t)
	return c
}

func login(t *testing.T, text []byte, name string) Clients {
	t.Helper()
	c, err := Login(t.Context(), text, name)
	must(t, err)
	return c
}

// ids returns those of the flavor and the image.
func (c *cloud) ids(t *testing.T) (flavor, image string) {
	t.Helper()
	for _, f := range all(t, flavors.ListDetail(c.user.Compute, flavors.ListOpts{}), flavors.ExtractFlavors) {
		if f.Name == c.flavor {
			flavor = f.ID
		}
	}
	return flavor, all(t, images.List(c.user.Image, images.ListOpts{Name: c.image}), images.ExtractImages)[0].ID
}

var preparing sync.Mutex

// prepare makes what is there before any Machine: once, whichever test comes first.
func (c *cloud) prepare(t *testing.T) {
	t.Helper()
	preparing.Lock()
	defer preparing.Unlock()
	ctx := t.Context()
	c.flavor, c.image = "4c12g30d", "rhcos-ocp43"
	must(t, c.admin.HaveFlavor(ctx, c.flavor, 4, 12, 30))
	must(t, c.admin.HaveImage(ctx, c.image))
	var err error
	c.network, c.subnet, err = c.user.HaveNetwork(ctx, "ocp43-net", "ocp43-nodes", "10.0.0.0/16", "openshiftClusterID=ocp43-abcde")
	must(t, err)
	_, err = c.user.HaveGroup(ctx, "ocp43-worker")
	must(t, err)
	if len(all(t, servergroups.List(c.user.Compute, servergroups.ListOpts{}), servergroups.ExtractServerGroups)) == 0 {
		must(t, servergroups.Create(ctx, c.user.Compute, servergroups.CreateOpts{Name: "ocp43-worker", Policy: "soft-anti-affinity"}).Err)
	}
}

// account is what the runner would open for a spec of the walk-through.
func (c *cloud) account() provider.Account {
	return provider.Account{
		Kind: driver.Kind, Region: c.name, Namespace: "openshift-machine-api", Secret: "openstack-cloud-credentials",
		Credentials: map[string][]byte{"clouds.yaml": c.clouds},
		UserData: func(_ context.Context, name string) (map[string][]byte, string, error) {
			if name != "worker-user-data" {
				return nil, "", provider.Errorf(provider.Exhausted, "not found")
			}
			return map[string][]byte{"userData": []byte(`{"ignition": {"version": "3.2.0"}}`)}, "1", nil
		},
	}
}

// spec is the walk-through's (SPEC S9), with some fields changed.
func (c *cloud) spec(t *testing.T, changes map[string]any) json.RawMessage {
	t.Helper()
	s := map[string]any{
		"apiVersion": "openstackproviderconfig.openshift.io/v1alpha1", "kind": driver.Kind, "cloudName": c.name,
		"cloudsSecret": map[string]any{"name": "openstack-cloud-credentials", "namespace": "openshift-machine-api"},
		"flavor":       "4c12g30d", "image": "rhcos-ocp43",
		"networks": []any{map[string]any{
			"filter":  map[string]any{},
			"subnets": []any{map[string]any{"filter": map[string]any{"name": "ocp43-nodes", "tags": "openshiftClusterID=ocp43-abcde"}}},
		}},
		"securityGroups": []any{map[string]any{"filter": map[string]any{}, "name": "ocp43-worker"}},
		"serverMetadata": map[string]any{"Name": "ocp43-worker", "openshiftClusterID": "ocp43-abcde"},
		"tags":           []any{"openshiftClusterID=ocp43-abcde"}, "trunk": true,
		"userDataSecret": map[string]any{"name": "worker-user-data"},
	}
	for name, value := range changes {
		s[name] = value
	}
	raw, err := json.Marshal(s)
	must(t, err)
	return raw
}

// count is how much of everything the project has with a tag of ours, or at all if mark is empty.
func (c *cloud) count(t *testing.T, mark string) Tally {
	t.Helper()
	n, err := c.user.Count(t.Context(), mark)
	must(t, err)
	return n
}

func (n Tally) children() int { return n.Ports + n.Trunks + n.Volumes }

func all[T any](t *testing.T, p pagination.Pager, extract func(pagination.Page) ([]T, error)) []T {
	t.Helper()
	found, err := All(t.Context(), p, extract)
	must(t, err)
	return found
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
