// SPDX-License-Identifier: Apache-2.0

// Package openstack runs the OpenStack driver against a real OpenStack: `make test-openstack`.
package openstack

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"sync"
	"testing"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servergroups"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/attributestags"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/gophercloud/gophercloud/v2/pagination"
	"sigs.k8s.io/yaml"

	"github.com/machine-functions/machine-functions/shared/provider"
	driver "github.com/machine-functions/machine-functions/shared/provider/openstack"
)

// variable names the clouds.yaml of test/openstack/up.sh.
const variable = "OPENSTACK_CLOUDS"

// cloud is the real one, as its administrator and as the project that the driver works in see it.
type cloud struct {
	clouds          []byte
	name            string // of the project, which is that of the entry in clouds.yaml
	admin, user     clients
	flavor, image   string
	network, subnet string
	group           string
}

type clients struct {
	project                         string
	compute, network, image, volume *gophercloud.ServiceClient
}

// theCloud returns the cloud with what the walk-through's spec names (SPEC S9), or skips the test. Tests with projects of
// their own run side by side.
func theCloud(t *testing.T, project string) *cloud {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Skip(variable + " names no clouds.yaml: make test-openstack starts an OpenStack")
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	c := &cloud{clouds: text, name: project, admin: login(t, text, "admin"), user: login(t, text, project)}
	c.prepare(t)
	return c
}

func login(t *testing.T, text []byte, name string) clients {
	t.Helper()
	var file struct {
		Clouds map[string]struct {
			Auth map[string]string `json:"auth"`
		} `json:"clouds"`
	}
	must(t, yaml.Unmarshal(text, &file))
	a := file.Clouds[name].Auth
	p, err := openstack.AuthenticatedClient(t.Context(), gophercloud.AuthOptions{
		IdentityEndpoint: a["auth_url"], Username: a["username"], Password: a["password"], TenantName: a["project_name"], DomainName: a["user_domain_name"], AllowReauth: true,
	})
	must(t, err)
	var c clients
	for _, s := range []struct {
		open func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)
		into **gophercloud.ServiceClient
	}{
		{openstack.NewComputeV2, &c.compute}, {openstack.NewNetworkV2, &c.network}, {openstack.NewImageV2, &c.image}, {openstack.NewBlockStorageV3, &c.volume},
	} {
		*s.into, err = s.open(p, gophercloud.EndpointOpts{Region: "regionOne"})
		must(t, err)
	}
	c.compute.Microversion = "2.72"
	r, ok := p.GetAuthResult().(tokens.CreateResult)
	if !ok {
		t.Fatal("the login is no token")
	}
	project, err := r.ExtractProject()
	must(t, err)
	c.project = project.ID
	return c
}

// ids returns those of the flavor and the image.
func (c *cloud) ids(t *testing.T) (flavor, image string) {
	t.Helper()
	for _, f := range all(t, flavors.ListDetail(c.user.compute, flavors.ListOpts{}), flavors.ExtractFlavors) {
		if f.Name == c.flavor {
			flavor = f.ID
		}
	}
	return flavor, all(t, images.List(c.user.image, images.ListOpts{Name: c.image}), images.ExtractImages)[0].ID
}

var preparing sync.Mutex

// prepare makes what is there before any Machine: once, whichever test comes first.
func (c *cloud) prepare(t *testing.T) {
	t.Helper()
	preparing.Lock()
	defer preparing.Unlock()
	ctx := t.Context()
	c.flavor, c.image = "4c12g30d", "rhcos-ocp43"
	err := flavors.Create(ctx, c.admin.compute, flavors.CreateOpts{Name: c.flavor, VCPUs: 4, RAM: 12288, Disk: pointer(30)}).Err
	if !gophercloud.ResponseCodeIs(err, 409) {
		must(t, err)
	}
	if len(all(t, images.List(c.admin.image, images.ListOpts{Name: c.image}), images.ExtractImages)) == 0 {
		public := images.ImageVisibilityPublic
		image, err := images.Create(ctx, c.admin.image, images.CreateOpts{Name: c.image, DiskFormat: "qcow2", ContainerFormat: "bare", Visibility: &public}).Extract()
		must(t, err)
		must(t, imagedata.Upload(ctx, c.admin.image, image.ID, bytes.NewReader(qcow2())).ExtractErr())
	}
	if nets := all(t, networks.List(c.user.network, networks.ListOpts{Name: "ocp43-net"}), networks.ExtractNetworks); len(nets) > 0 {
		c.network = nets[0].ID
		c.subnet = all(t, subnets.List(c.user.network, subnets.ListOpts{NetworkID: c.network}), subnets.ExtractSubnets)[0].ID
		c.group = all(t, groups.List(c.user.network, groups.ListOpts{Name: "ocp43-worker"}), groups.ExtractGroups)[0].ID
		return
	}
	n, err := networks.Create(ctx, c.user.network, networks.CreateOpts{Name: "ocp43-net"}).Extract()
	must(t, err)
	s, err := subnets.Create(ctx, c.user.network, subnets.CreateOpts{NetworkID: n.ID, Name: "ocp43-nodes", IPVersion: 4, CIDR: "10.0.0.0/16"}).Extract()
	must(t, err)
	must(t, attributestags.ReplaceAll(ctx, c.user.network, "subnets", s.ID, attributestags.ReplaceAllOpts{Tags: []string{"openshiftClusterID=ocp43-abcde"}}).Err)
	g, err := groups.Create(ctx, c.user.network, groups.CreateOpts{Name: "ocp43-worker"}).Extract()
	must(t, err)
	must(t, servergroups.Create(ctx, c.user.compute, servergroups.CreateOpts{Name: "ocp43-worker", Policy: "soft-anti-affinity"}).Err)
	c.network, c.subnet, c.group = n.ID, s.ID, g.ID
}

// account is what the runner would open for a spec of the walk-through.
func (c *cloud) account() provider.Account {
	return provider.Account{
		Kind: driver.Kind, Region: c.name, Namespace: "openshift-machine-api", Secret: "openstack-cloud-credentials",
		Credentials: map[string][]byte{"clouds.yaml": c.clouds},
		UserData: func(_ context.Context, name string) (map[string][]byte, string, error) {
			if name != "worker-user-data" {
				return nil, "", errors.New("not found")
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

// tally is how many there are.
type tally struct{ Servers, Ports, Trunks, Volumes int }

func (n tally) children() int { return n.Ports + n.Trunks + n.Volumes }

// count is how much of everything the project has: instances, ports, trunks and volumes with a tag of ours, or any at
// all if mark is empty.
func (c *cloud) count(t *testing.T, mark string) (n tally) {
	t.Helper()
	n.Servers = len(all(t, servers.List(c.user.compute, servers.ListOpts{Tags: mark}), servers.ExtractServers))
	n.Ports = len(all(t, ports.List(c.user.network, ports.ListOpts{Tags: mark}), ports.ExtractPorts))
	n.Trunks = len(all(t, trunks.List(c.user.network, trunks.ListOpts{Tags: mark}), trunks.ExtractTrunks))
	for _, v := range all(t, volumes.List(c.user.volume, volumes.ListOpts{}), volumes.ExtractVolumes) {
		for name, value := range v.Metadata {
			if mark == "" || name+"="+value == mark {
				n.Volumes++
				break
			}
		}
	}
	return n
}

func all[T any](t *testing.T, p pagination.Pager, extract func(pagination.Page) ([]T, error)) []T {
	t.Helper()
	pages, err := p.AllPages(t.Context())
	must(t, err)
	found, err := extract(pages)
	must(t, err)
	return found
}

// qcow2 is the smallest image that Glance and Cinder take for one: a header, 1 MiB of nothing.
func qcow2() []byte {
	b := make([]byte, 3<<16)
	copy(b, []byte{'Q', 'F', 'I', 0xfb, 0, 0, 0, 2})
	b[23], b[29], b[39], b[45], b[53], b[59] = 16, 0x10, 1, 1, 2, 1 // cluster bits; size; L1 size and offset; refcounts
	return b
}

func pointer[T any](v T) *T { return &v }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
