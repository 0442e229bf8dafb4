// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A segment of NSX-T is a port group of one name, and of one path, on each distributed switch: a Machine's is that of the hosts on which it
// is made. Where they have both, or neither, people have to say which.
func TestNetworkOfANameIsThatOfTheHosts(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, _ := v.wired(t, v.account())
	ctx, c := t.Context(), v.client(t)
	finder := find.NewFinder(c, false)
	dc, err := finder.Datacenter(ctx, "DC0")
	must(t, err)
	finder.SetDatacenter(dc)
	first, err := finder.Network(ctx, "DC0_DVPG0")
	must(t, err)
	folders, err := dc.Folders(ctx)
	must(t, err)
	done(t)(folders.NetworkFolder.CreateDVS(ctx, types.DVSCreateSpec{ConfigSpec: &types.VMwareDVSConfigSpec{DVSConfigSpec: types.DVSConfigSpec{Name: "DVS1"}}}))
	n, err := finder.Network(ctx, "DVS1")
	must(t, err)
	done(t)(object.NewDistributedVirtualSwitch(c, n.Reference()).AddPortgroup(ctx, []types.DVPortgroupConfigSpec{{Name: "second", NumPorts: 1}}))
	second, err := finder.Network(ctx, "second")
	must(t, err)
	group := v.service.Context.Map.Get(second.Reference()).(*simulator.DistributedVirtualPortgroup)
	v.service.Context.WithLock(group, func() { group.Name, group.Config.Name = "DC0_DVPG0", "DC0_DVPG0" })

	cluster, err := finder.ClusterComputeResource(ctx, "DC0_C0")
	must(t, err)
	hosts := v.service.Context.Map.Get(cluster.Reference()).(*simulator.ClusterComputeResource)
	has := func(networks ...mo.Reference) {
		v.service.Context.WithLock(hosts, func() {
			hosts.Network = nil
			for _, n := range networks {
				hosts.Network = append(hosts.Network, n.Reference())
			}
		})
	}
	for _, one := range []mo.Reference{first, second} {
		has(one)
		resolved, err := d.Resolve(ctx, v.spec(nil))
		must(t, err)
		var req request
		must(t, json.Unmarshal(resolved, &req))
		if req.Networks[0] != one.Reference() {
			t.Errorf("it is %v, want %v", req.Networks[0], one.Reference())
		}
	}
	for _, networks := range [][]mo.Reference{{first, second}, nil} {
		has(networks...)
		if _, err := d.Resolve(ctx, v.spec(nil)); provider.CodeOf(err) != provider.NotFound || !strings.Contains(err.Error(), "networkName") || !strings.Contains(err.Error(), "DC0_DVPG0") {
			t.Errorf("of %v: %v", networks, err)
		}
	}
	has(first)
	pattern := map[string]any{"network": map[string]any{"devices": []any{map[string]any{"networkName": "DC0_DVPG?"}}}}
	if _, err := d.Resolve(ctx, v.spec(pattern)); provider.CodeOf(err) != provider.Invalid {
		t.Errorf("of a pattern: %v", err)
	}
}
