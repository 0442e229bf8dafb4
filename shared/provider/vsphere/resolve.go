// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/vmware/govmomi/find"
	"github.com/vmware/govmomi/object"
	"github.com/vmware/govmomi/property"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// request is a spec whose names have become references of the vCenter.
type request struct {
	Spec      providerspec.VSphere `json:"spec"`
	Template  reference            `json:"template"`
	Snapshot  *reference           `json:"snapshot,omitempty"` // of a linked clone
	Folder    reference            `json:"folder"`
	Pool      reference            `json:"pool"`
	Datastore reference            `json:"datastore"`
	Networks  []reference          `json:"networks"`        // one for each network card
	Group     *reference           `json:"group,omitempty"` // the cluster that has the group of Spec.Workspace.VMGroup
	Region    string               `json:"region,omitempty"`
	Zone      string               `json:"zone,omitempty"`
	Mark      string               `json:"clusterUID,omitempty"`
}

// reference is a managed object as it is frozen.
type reference = types.ManagedObjectReference

// oldestHardware is the version that a template must have at least: Nodes need what came with it (SPEC E27).
const oldestHardware = 15

// resolve looks up everything that s names.
func (d *driver) resolve(ctx context.Context, c *vim25.Client, s providerspec.VSphere) (request, error) {
	req := request{Spec: s, Mark: string(d.account.ClusterUID)}
	w := s.Workspace
	finder := find.NewFinder(c, false)
	dc, err := finder.DatacenterOrDefault(ctx, w.Datacenter)
	if err != nil {
		return req, d.missing(at("workspace", "datacenter"), w.Datacenter, err)
	}
	finder.SetDatacenter(dc)
	template, err := finder.VirtualMachine(ctx, s.Template)
	if err != nil {
		return req, d.missing(at("template"), s.Template, err)
	}
	folder, err := finder.FolderOrDefault(ctx, w.Folder)
	if err != nil {
		return req, d.missing(at("workspace", "folder"), w.Folder, err)
	}
	pool, err := finder.ResourcePoolOrDefault(ctx, w.ResourcePool)
	if err != nil {
		return req, d.missing(at("workspace", "resourcePool"), w.ResourcePool, err)
	}
	datastore, err := finder.DatastoreOrDefault(ctx, w.Datastore)
	if err != nil {
		return req, d.missing(at("workspace", "datastore"), w.Datastore, err)
	}
	for i, device := range s.Network.Devices {
		n, err := network(ctx, c, finder, pool, device.NetworkName)
		if err != nil {
			return req, d.missing(at("network", "devices").Index(i).Child("networkName"), device.NetworkName, err)
		}
		req.Networks = append(req.Networks, n)
	}
	req.Template, req.Folder, req.Pool, req.Datastore = template.Reference(), folder.Reference(), pool.Reference(), datastore.Reference()
	if err := req.inspect(ctx, c); err != nil {
		return req, err
	}
	if err := req.mayBeCloned(ctx, c); err != nil {
		return req, err
	}
	return req, d.place(ctx, c, &req)
}

// network finds a network by its name. Where several have it, as a segment of NSX-T is one of that name, and of that path, on each
// switch, it is the one that the hosts of the pool have.
func network(ctx context.Context, c *vim25.Client, finder *find.Finder, pool *object.ResourcePool, name string) (reference, error) {
	n, several := finder.Network(ctx, name)
	if several == nil {
		return n.Reference(), nil
	}
	if !severalFound(several) || strings.ContainsAny(name, pattern) {
		return reference{}, several
	}
	all, err := finder.NetworkList(ctx, name)
	if err != nil {
		return reference{}, err
	}
	owner, err := pool.Owner(ctx)
	if err != nil {
		return reference{}, fmt.Errorf("owner of resource pool %s: %w", pool.Reference().Value, err)
	}
	var hosts mo.ComputeResource
	if err := property.DefaultCollector(c).RetrieveOne(ctx, owner.Reference(), []string{"network"}, &hosts); err != nil {
		return reference{}, fmt.Errorf("networks of %s: %w", owner.Reference().Value, err)
	}
	all = slices.DeleteFunc(all, func(n object.NetworkReference) bool { return !slices.Contains(hosts.Network, n.Reference()) })
	if len(all) != 1 {
		return reference{}, several
	}
	return all[0].Reference(), nil
}

// pattern are the letters of a name that may fit several.
const pattern = "*?["

// missing says which field names what the vCenter lacks, or has more than once. Of several that have the very name one goes away again; a
// pattern that fits several is wrong as long as it stands (not so SPEC E27).
func (d *driver) missing(p *field.Path, value string, err error) error {
	several := severalFound(err)
	err = d.session.coded(err)
	code, remedy := provider.CodeOf(err), "create it, or name another"
	switch {
	case code != provider.NotFound:
		return err
	case several && strings.ContainsAny(value, pattern):
		code, remedy = provider.Invalid, "give the full path of one"
	case several:
		remedy = "take the others away, or give its full path"
	}
	return provider.Errorf(code, "%s: %q: %w; %s", p, value, err, remedy)
}

// mayBeCloned refuses the instance of a Machine, of whatever cluster, as long as people have not made a template of it, or a copy: what it
// was started with, and what is on its disks, is not for whoever writes specs (RELIABILITY §4). Nor is what runs, as a control plane that an
// installer made; it may be switched off.
func (req *request) mayBeCloned(ctx context.Context, c *vim25.Client) error {
	found, err := known(ctx, c, []reference{req.Template})
	if err != nil {
		return err
	}
	switch m := found[0]; {
	case m.Mark.Cluster != "" && !m.copied():
		return provider.Errorf(provider.Invalid, "%s: %q is the instance of a Machine: name a template", at("template"), req.Spec.Template)
	case m.Power == types.VirtualMachinePowerStatePoweredOn && !m.Template:
		return provider.Errorf(provider.Exhausted, "%s: %q runs: name a template, or switch it off", at("template"), req.Spec.Template)
	}
	return nil
}

// inspect judges the template, and chooses the snapshot of a linked clone.
func (req *request) inspect(ctx context.Context, c *vim25.Client) error {
	var t mo.VirtualMachine
	props := []string{"config.version", "config.hardware.device", "snapshot"}
	if err := property.DefaultCollector(c).RetrieveOne(ctx, req.Template, props, &t); err != nil {
		return err
	}
	if t.Config == nil {
		return provider.Errorf(provider.Exhausted, "%s: %q is not ready to be cloned", at("template"), req.Spec.Template)
	}
	if v, err := strconv.Atoi(strings.TrimPrefix(t.Config.Version, "vmx-")); err == nil && v < oldestHardware {
		return provider.Errorf(provider.Invalid, "%s: %q has hardware version %d: upgrade it to %d or newer", at("template"), req.Spec.Template, v, oldestHardware)
	}
	disks := disksOf(t.Config.Hardware.Device)
	if len(disks) == 0 {
		return provider.Errorf(provider.Invalid, "%s: %q has no disk", at("template"), req.Spec.Template)
	}
	if req.Spec.CloneMode == "linkedClone" {
		linked, err := req.link(t.Snapshot)
		if linked || err != nil {
			return err
		}
	}
	if have := disks[0].CapacityInKB; req.Spec.DiskGiB > 0 && req.Spec.DiskGiB*kibPerGiB < have {
		return provider.Errorf(provider.Invalid, "%s: %d is less than the %d of template %q, and disks do not shrink",
			at("diskGiB"), req.Spec.DiskGiB, have/kibPerGiB, req.Spec.Template)
	}
	return nil
}

const kibPerGiB = 1 << 20

// link chooses the snapshot to link to: the named one, else the current one. A template without snapshots is cloned in
// full, as OpenShift does.
func (req *request) link(tree *types.VirtualMachineSnapshotInfo) (bool, error) {
	wanted := req.Spec.Snapshot
	if wanted == "" {
		if tree != nil {
			req.Snapshot = tree.CurrentSnapshot
		}
		return req.Snapshot != nil, nil
	}
	var found []reference
	if tree != nil {
		for _, s := range snapshots(tree.RootSnapshotList) {
			if s.Name == wanted {
				found = append(found, s.Snapshot)
			}
		}
	}
	switch len(found) {
	case 1:
		req.Snapshot = &found[0]
		return true, nil
	case 0:
		return false, provider.Errorf(provider.NotFound, "%s: template %q has no snapshot %q", at("snapshot"), req.Spec.Template, wanted)
	}
	return false, provider.Errorf(provider.Invalid, "%s: template %q has %d snapshots %q", at("snapshot"), req.Spec.Template, len(found), wanted)
}

// place finds the cluster of the resource pool, its VM group, and the region and zone that it is tagged with.
func (d *driver) place(ctx context.Context, c *vim25.Client, req *request) error {
	owner, err := object.NewResourcePool(c, req.Pool).Owner(ctx)
	if err != nil {
		return fmt.Errorf("owner of resource pool %s: %w", req.Pool.Value, err)
	}
	cluster := owner.Reference()
	if group := req.Spec.Workspace.VMGroup; group != "" {
		if cluster.Type != "ClusterComputeResource" {
			return provider.Errorf(provider.Invalid, "%s: %q: resource pool %q is in no cluster", at("workspace", "vmGroup"), group, req.Spec.Workspace.ResourcePool)
		}
		if _, err := members(ctx, c, cluster, group); err != nil {
			return err
		}
		req.Group = &cluster
	}
	return d.tagged(ctx, c, cluster, req)
}
