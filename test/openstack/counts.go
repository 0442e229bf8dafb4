// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"

	"github.com/gophercloud/gophercloud/v2/openstack/blockstorage/v3/volumes"
	"github.com/gophercloud/gophercloud/v2/openstack/compute/v2/servers"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/extensions/trunks"
	"github.com/gophercloud/gophercloud/v2/openstack/networking/v2/ports"
)

// Tally is how many there are.
type Tally struct{ Servers, Ports, Trunks, Volumes int }

// Count returns how much of everything the project has: instances, ports, trunks and volumes with a tag, or any at all if
// mark is empty. A volume's metadata count as its tags.
func (c Clients) Count(ctx context.Context, mark string) (n Tally, err error) {
	all, err := All(ctx, servers.List(c.Compute, servers.ListOpts{Tags: mark}), servers.ExtractServers)
	if err != nil {
		return n, err
	}
	n.Servers = len(all)
	own, err := All(ctx, ports.List(c.Network, ports.ListOpts{Tags: mark}), ports.ExtractPorts)
	if err != nil {
		return n, err
	}
	n.Ports = len(own)
	parents, err := All(ctx, trunks.List(c.Network, trunks.ListOpts{Tags: mark}), trunks.ExtractTrunks)
	if err != nil {
		return n, err
	}
	n.Trunks = len(parents)
	disks, err := All(ctx, volumes.List(c.Volume, volumes.ListOpts{}), volumes.ExtractVolumes)
	for _, v := range disks {
		for name, value := range v.Metadata {
			if mark == "" || name+"="+value == mark {
				n.Volumes++
				break
			}
		}
	}
	return n, err
}
