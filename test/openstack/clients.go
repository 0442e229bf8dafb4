// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/gophercloud/gophercloud/v2"
	"github.com/gophercloud/gophercloud/v2/openstack"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/flavors"
	"github.com/gophercloud/gophercloud/v2/openstack/identity/v3/tokens"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/imagedata"
	"github.com/gophercloud/gophercloud/v2/openstack/image/v2/images"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/attributestags"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/security/groups"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/networks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/subnets"
	"github.com/gophercloud/gophercloud/v2/pagination"
	"sigs.k8s.io/yaml"
)

// Clients are the services as one user of one project sees them.
type Clients struct {
	Project                         string // its id
	Compute, Network, Image, Volume *gophercloud.ServiceClient
}

// Login returns the services for an entry of a clouds.yaml.
func Login(ctx context.Context, clouds []byte, entry string) (Clients, error) {
	var (
		c    Clients
		file struct {
			Clouds map[string]struct {
				Auth map[string]string `json:"auth"`
			} `json:"clouds"`
		}
	)
	if err := yaml.Unmarshal(clouds, &file); err != nil {
		return c, err
	}
	a := file.Clouds[entry].Auth
	p, err := openstack.AuthenticatedClient(ctx, gophercloud.AuthOptions{
		IdentityEndpoint: a["auth_url"], Username: a["username"], Password: a["password"], TenantName: a["project_name"], DomainName: a["user_domain_name"], AllowReauth: true,
	})
	if err != nil {
		return c, fmt.Errorf("log in as %s: %w", entry, err)
	}
	for _, s := range []struct {
		open func(*gophercloud.ProviderClient, gophercloud.EndpointOpts) (*gophercloud.ServiceClient, error)
		into **gophercloud.ServiceClient
	}{
		{openstack.NewComputeV2, &c.Compute}, {openstack.NewNetworkV2, &c.Network}, {openstack.NewImageV2, &c.Image}, {openstack.NewBlockStorageV3, &c.Volume},
	} {
		if *s.into, err = s.open(p, gophercloud.EndpointOpts{Region: "regionOne"}); err != nil {
			return c, err
		}
	}
	c.Compute.Microversion = "2.72"
	r, ok := p.GetAuthResult().(tokens.CreateResult)
	if !ok {
		return c, errors.New("the login is no token")
	}
	project, err := r.ExtractProject()
	if err == nil {
		c.Project = project.ID
	}
	return c, err
}

// HaveFlavor makes a flavor unless there is one of that name; memory and disk are in GiB.
func (c Clients) HaveFlavor(ctx context.Context, name string, cpus, memory, disk int) error {
	err := flavors.Create(ctx, c.Compute, flavors.CreateOpts{Name: name, VCPUs: cpus, RAM: memory << 10, Disk: &disk}).Err
	if gophercloud.ResponseCodeIs(err, 409) {
		return nil
	}
	return err
}

// HaveImage makes an image that everybody may boot unless there is one of that name.
func (c Clients) HaveImage(ctx context.Context, name string) error {
	have, err := All(ctx, images.List(c.Image, images.ListOpts{Name: name}), images.ExtractImages)
	if err != nil || len(have) > 0 {
		return err
	}
	public := images.ImageVisibilityPublic
	image, err := images.Create(ctx, c.Image, images.CreateOpts{Name: name, DiskFormat: "qcow2", ContainerFormat: "bare", Visibility: &public}).Extract()
	if err != nil {
		return err
	}
	return imagedata.Upload(ctx, c.Image, image.ID, bytes.NewReader(qcow2())).ExtractErr()
}

// HaveNetwork makes a network with one subnet unless there is one of that name, and returns the ids of both.
func (c Clients) HaveNetwork(ctx context.Context, name, subnet, cidr string, tags ...string) (network, itsSubnet string, err error) {
	have, err := All(ctx, networks.List(c.Network, networks.ListOpts{Name: name}), networks.ExtractNetworks)
	if err != nil {
		return "", "", err
	}
	if len(have) > 0 {
		return have[0].ID, have[0].Subnets[0], nil
	}
	n, err := networks.Create(ctx, c.Network, networks.CreateOpts{Name: name}).Extract()
	if err != nil {
		return "", "", err
	}
	s, err := subnets.Create(ctx, c.Network, subnets.CreateOpts{NetworkID: n.ID, Name: subnet, IPVersion: 4, CIDR: cidr}).Extract()
	if err != nil {
		return "", "", err
	}
	if len(tags) == 0 {
		return n.ID, s.ID, nil
	}
	return n.ID, s.ID, attributestags.ReplaceAll(ctx, c.Network, "subnets", s.ID, attributestags.ReplaceAllOpts{Tags: tags}).Err
}

// HaveGroup makes a security group unless there is one of that name, and returns its id.
func (c Clients) HaveGroup(ctx context.Context, name string) (string, error) {
	have, err := All(ctx, groups.List(c.Network, groups.ListOpts{Name: name}), groups.ExtractGroups)
	if err != nil {
		return "", err
	}
	if len(have) > 0 {
		return have[0].ID, nil
	}
	g, err := groups.Create(ctx, c.Network, groups.CreateOpts{Name: name}).Extract()
	if err != nil {
		return "", err
	}
	return g.ID, nil
}

// All reads all pages of a list.
func All[T any](ctx context.Context, p pagination.Pager, extract func(pagination.Page) ([]T, error)) ([]T, error) {
	pages, err := p.AllPages(ctx)
	if err != nil {
		return nil, err
	}
	return extract(pages)
}

// qcow2 is the smallest image that Glance and Cinder take for one: a header, 1 MiB of nothing.
func qcow2() []byte {
	b := make([]byte, 3<<16)
	copy(b, []byte{'Q', 'F', 'I', 0xfb, 0, 0, 0, 2})
	b[23], b[29], b[39], b[45], b[53], b[59] = 16, 0x10, 1, 1, 2, 1 // cluster bits; size; L1 size and offset; refcounts
	return b
}
