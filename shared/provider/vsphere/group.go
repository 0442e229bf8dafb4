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

// groupOf names a VM group as a mark does: those of two clusters may have one name.
func groupOf(req request) string {
	if req.Group == nil {
		return ""
	}
	return req.Group.Value + "/" + req.Spec.Workspace.VMGroup
}

// join adds a clone to its VM group, and reports the task that does it; none if it is a member already. The API replaces the whole list, on no
// condition: whoever reads it before somebody else's write, and writes after it, takes the other out. So who joins adds all whose marks name the
// group, and looks once more when its instance has started, for those that came while it wrote.
func (d *driver) join(ctx context.Context, c *vim25.Client, req request, m clone) (*reference, error) {
	cluster, group := *req.Group, req.Spec.Workspace.VMGroup
	have, err := members(ctx, c, cluster, group)
	joined := slices.Contains(have, m.Ref)
	if err != nil || joined && m.Power != types.VirtualMachinePowerStatePoweredOn {
		return nil, err
	}
	want := slices.Clone(have)
	if !joined {
		want = append(want, m.Ref)
	}
	want, err = d.belonging(ctx, c, req, want)
	if err != nil {
		return nil, err
	}
	if len(want) == len(have) {
		return nil, nil
	}
	spec := &types.ClusterConfigSpecEx{GroupSpec: []types.ClusterGroupSpec{{
		ArrayUpdateSpec: types.ArrayUpdateSpec{Operation: types.ArrayUpdateOperationEdit},
		Info:            &types.ClusterVmGroup{ClusterGroupInfo: types.ClusterGroupInfo{Name: group}, Vm: want},
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

// belonging adds to members of the group those of its cluster whose marks name it. A copy's does not count. What people have moved to another
// cluster the group does not take, and nobody asks about it: the user may not see it there.
func (d *driver) belonging(ctx context.Context, c *vim25.Client, req request, members []reference) ([]reference, error) {
	all, err := within(ctx, c, *req.Group, keyed(keyMark), "config.instanceUuid", "config.template")
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		m := read(o)
		if m.Mark.Cluster == d.account.ClusterID && m.Mark.Group == groupOf(req) && !m.copied() && !slices.Contains(members, m.Ref) {
			members = append(members, m.Ref)
		}
	}
	return members, nil
}
