// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/quotasets"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"

	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	c := theCloud(t, "suite")
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		return c.harness(t, c.spec(t, nil))
	})
}

// TestConformanceWithVolumes is the suite for instances that boot from a volume and have another one.
func TestConformanceWithVolumes(t *testing.T) {
	t.Parallel()
	c := theCloud(t, "volumes")
	drivertest.Run(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		return c.harness(t, c.spec(t, map[string]any{
			"rootVolume": map[string]any{"diskSize": 2}, "trunk": false,
			"additionalBlockDevices": []any{map[string]any{"name": "etcd", "sizeGiB": 1, "storage": map[string]any{"type": "Volume"}}},
		}))
	})
}

func (c *cloud) harness(t *testing.T, spec json.RawMessage) drivertest.Harness {
	t.Helper()
	before := c.count(t, "").children()
	return drivertest.Harness{
		Provider: patientProvider(),
		Account:  c.account(),
		Spec:     spec,
		Invalid:  c.invalid(t),
		Missing: &drivertest.Bad{
			Spec:  c.brokenNetwork(t),
			Names: []string{"No network was found or provided", "providerSpec.value.networks[0].subnets[0].filter", `name: "ocp43-nowhere"`},
		},
		Patience: patience,
		Pace:     300 * time.Millisecond,
		Exhaust: func(exhausted bool) {
			instances := 10000
			if exhausted {
				instances = 0
			}
			servers := all(t, servers.List(c.user.Compute, servers.ListOpts{}), servers.ExtractServers)
			if exhausted {
				instances = len(servers)
			}
			must(t, quotasets.Update(t.Context(), c.admin.Compute, c.user.Project, quotasets.UpdateOpts{Instances: &instances, Force: true}).Err)
		},
		Children:     func() int { return c.count(t, "").children() - before },
		Untagged:     func() (string, func() bool) { return c.untagged(t) },
		TokensReused: true,
		Losers:       true, // see create.go
	}
}

func (c *cloud) brokenNetwork(t *testing.T) json.RawMessage {
	t.Helper()
	return c.spec(t, map[string]any{"networks": []any{map[string]any{
		"filter": map[string]any{}, "subnets": []any{map[string]any{"filter": map[string]any{"name": "ocp43-nowhere", "tags": "openshiftClusterID=ocp43-abcde"}}},
	}}})
}

func (c *cloud) invalid(t *testing.T) []drivertest.Bad {
	t.Helper()
	return []drivertest.Bad{
		{Spec: c.spec(t, map[string]any{"flavor": "99c99g"}), Names: []string{"providerSpec.value.flavor", "99c99g"}},
		{Spec: c.spec(t, map[string]any{"image": "rhcos-nowhere"}), Names: []string{"providerSpec.value.image", "rhcos-nowhere"}},
		{Spec: c.spec(t, map[string]any{"availabilityZone": "mars"}), Names: []string{"providerSpec.value.availabilityZone", "mars", "nova"}},
		{Spec: c.spec(t, map[string]any{"flavor": ""}), Names: []string{"providerSpec.value.flavor"}},
		{Spec: c.spec(t, map[string]any{"networks": []any{map[string]any{"filter": map[string]any{}}}}), Names: []string{"providerSpec.value.networks[0].filter"}},
	}
}

// untagged makes an instance as another system would.
func (c *cloud) untagged(t *testing.T) (providerID string, exists func() bool) {
	t.Helper()
	flavor, image := c.ids(t)
	s, err := servers.Create(t.Context(), c.user.Compute, servers.CreateOpts{
		Name: "somebody-elses", FlavorRef: flavor, ImageRef: image, Networks: []servers.Network{{UUID: c.network}},
	}, nil).Extract()
	must(t, err)
	t.Cleanup(func() { _ = servers.Delete(t.Context(), c.user.Compute, s.ID) })
	return "openstack:///" + s.ID, func() bool {
		_, err := servers.Get(t.Context(), c.user.Compute, s.ID).Extract()
		return err == nil
	}
}

// portOf returns the first port of an instance.
func (c *cloud) portOf(t *testing.T, server string) string {
	t.Helper()
	return all(t, ports.List(c.user.Network, ports.ListOpts{DeviceID: server}), ports.ExtractPorts)[0].ID
}
