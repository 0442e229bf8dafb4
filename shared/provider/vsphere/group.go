// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"slices"

	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// members returns the instances of a cluster's VM group.
func members(ctx context.Context, c *vim25.Client, cluster reference, group string) ([]reference, error) {
	config, err := object.NewClusterComputeResource(c, cluster).Configuration(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range config.Group {
		if vms, ok := g.(*types.ClusterVmGroup); ok && vms.Name == group {
			return vms.Vm, nil
		}
	}
	return nil, provider.Errorf(provider.NotFound, "%s: the cluster has no VM group %q; create it, or name another", at("workspace", "vmGroup"), group)
}

// join adds a clone to its VM group, and reports the task that does it; none if it is a member already. The API replaces
// the whole list: members that vanish because somebody else wrote at the same time are added again, as the group is
// looked at before the instance starts and after.
func join(ctx context.Context, c *vim25.Client, cluster reference, group string, clone reference) (*reference, error) {
	have, err := members(ctx, c, cluster, group)
	if err != nil || slices.Contains(have, clone) {
		return nil, err
	}
	spec := &types.ClusterConfigSpecEx{GroupSpec: []types.ClusterGroupSpec{{
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationEdit},
		Info:            &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: group}, Vm: append(slices.Clone(have), clone)},
	}}}
	task, err := object.NewClusterComputeResource(c, cluster).Reconfigure(ctx, spec, true)
	if name(faultOf(err)) == "ManagedObjectNotFound" { // of a member that went since the list was read, not of the clone
		return nil, provider.Errorf(provider.Unknown, "join VM group %q: %w", group, err)
	}
	if err != nil {
		return nil, err
	}
	ref := task.Reference()
	return &ref, nil
}
