// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// Resolve implements [provider.Driver]. A flavor, image or zone that the cloud does not have is Invalid (SPEC E18); a
// filter that matches nothing, or too much, is NotFound and names the filter (E15, S22, S24).
func (d *driver) Resolve(ctx context.Context, raw json.RawMessage) (json.RawMessage, error) {
	s, err := parse(raw, d.account.Namespace)
	if err != nil {
		return nil, err
	}
	ctx, cancel, c, err := d.connect(ctx)
	defer cancel()
	if err != nil {
		return nil, creating(err)
	}
	r := resolver{caller: c, spec: s, virtualIPs: d.account.VirtualIPs, wanted: wanted{
		Key: s.KeyName, Zone: s.AvailabilityZone, UserData: s.UserDataSecret.Name, Tags: s.Tags, Metadata: s.ServerMetadata, ConfigDrive: s.ConfigDrive, Mark: string(d.account.ClusterUID),
	}}
	for _, part := range []func(context.Context) error{r.flavor, r.image, r.zone, r.serverGroup, r.disks, r.networks, r.ports, r.primary, r.floatingIP} {
		if err := part(ctx); err != nil {
			return nil, creating(err)
		}
	}
	if _, err := d.userData(ctx, s.UserDataSecret.Name); err != nil {
		return nil, creating(err)
	}
	resolved, err := json.Marshal(r.wanted)
	if err != nil {
		return nil, provider.Errorf(provider.Unknown, "%w", err)
	}
	return resolved, nil
}

// creating prefixes what goes wrong on the way to an instance as operators grep for it (SPEC S24).
func creating(err error) error { return fmt.Errorf("error creating Openstack instance: %w", err) }

// resolver is one spec on its way to ids.
type resolver struct {
	caller
	spec       providerspec.OpenStack
	virtualIPs []string
	groups     []string // security groups of every port that names none
	wanted     wanted
}

func (r *resolver) flavor(ctx context.Context) error {
	all, err := pages[named](ctx, r.caller, r.compute, "list flavors", "flavors", "flavors", nil)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(n named) bool { return n.Name == r.spec.Flavor })
	if i < 0 {
		i = slices.IndexFunc(all, func(n named) bool { return n.ID == r.spec.Flavor })
	}
	if i < 0 {
		return provider.Errorf(provider.Invalid, "providerSpec.value.flavor: %q: no such flavor", r.spec.Flavor)
	}
	r.wanted.Flavor, r.wanted.FlavorName = all[i].ID, all[i].Name
	return nil
}

func (r *resolver) image(ctx context.Context) error {
	at, name := "providerSpec.value.image", r.spec.Image
	if v := r.spec.RootVolume; v != nil && v.SourceUUID != "" { // which counts, as in OpenShift
		at, name = "providerSpec.value.rootVolume.sourceUUID", v.SourceUUID
	}
	all, err := pages[named](ctx, r.caller, r.caller.services.image, "list images", "images", "images", url.Values{"name": {name}})
	if err != nil {
		return err
	}
	if len(all) == 0 {
		if all, err = r.imageByID(ctx, name); err != nil {
			return err
		}
	}
	switch {
	case len(all) == 0:
		return provider.Errorf(provider.Invalid, "%s: %q: no such image", at, name)
	case len(all) > 1:
		return provider.Errorf(provider.NotFound, "%s: %q is the name of %d images: give the id of one: %s", at, name, len(all), names(all))
	case all[0].Status != "active":
		return provider.Errorf(provider.Exhausted, "%s: image %s is %s", at, all[0], all[0].Status)
	}
	r.wanted.Image = all[0].ID
	return nil
}

// imageByID gets an image by its id: no list shows those that are hidden, or of another project that offers them to everybody
// (visibility community).
func (r *resolver) imageByID(ctx context.Context, id string) ([]named, error) {
	if !isID(id) {
		return nil, nil
	}
	var image named
	err := r.get(ctx, r.caller.services.image, "get image "+id, "images/"+url.PathEscape(id), &image)
	switch {
	case provider.CodeOf(err) == provider.NotFound:
		return nil, nil
	case err == nil && image.ID == "":
		err = coded("get image "+id, errEmpty)
	}
	return []named{image}, err
}

// zone looks for the zones of the instance and of its volumes.
func (r *resolver) zone(ctx context.Context) error {
	name, _, _ := strings.Cut(r.spec.AvailabilityZone, ":") // administrators may name a host behind it
	if name == "" {
		return nil
	}
	var answer struct {
		Zones []struct {
			Name string `json:"zoneName"`
		} `json:"availabilityZoneInfo"`
	}
	if err := r.get(ctx, r.compute, "list zones", "os-availability-zone", &answer); err != nil {
		return err
	}
	var all []string
	for _, z := range answer.Zones {
		all = append(all, z.Name)
	}
	if len(all) == 0 {
		return provider.Errorf(provider.Unknown, "list zones: the answer has none")
	}
	if !slices.Contains(all, name) {
		slices.Sort(all)
		return provider.Errorf(provider.Invalid, "providerSpec.value.availabilityZone: %q: no such zone, but %s", name, strings.Join(all, ", "))
	}
	return nil
}

func (r *resolver) serverGroup(ctx context.Context) error {
	id, name := r.spec.ServerGroupID, r.spec.ServerGroupName
	if id == "" && name == "" {
		return nil
	}
	all, err := r.serverGroups(ctx)
	if err != nil {
		return err
	}
	q := newQuery("")
	q.at = "providerSpec.value"
	q.add("serverGroupID", "", id)
	q.add("serverGroupName", "", name)
	match := slices.DeleteFunc(all, func(n named) bool { return id != "" && n.ID != id || id == "" && n.Name != name })
	if len(match) == 0 && id == "" {
		r.wanted.NewGroup = name
		return nil
	}
	if len(match) == 0 {
		return provider.Errorf(provider.NotFound, "%s matches no server group", q)
	}
	group := smallest(match)
	if name != "" && group.Name != name {
		return provider.Errorf(provider.Invalid, "providerSpec.value.serverGroupName: %q: the server group with the id %s is called %q", name, id, group.Name)
	}
	r.wanted.ServerGroup = group.ID
	return nil
}

func (r *resolver) disks(context.Context) error {
	if v := r.spec.RootVolume; v != nil {
		r.wanted.Root = &wantedVolume{Name: rootName, GiB: v.DiskSize, Type: v.VolumeType, Zone: v.AvailabilityZone}
	}
	for _, d := range r.spec.AdditionalBlockDevices {
		disk := wantedVolume{Name: d.Name, GiB: d.SizeGiB, Local: d.Storage.Type == "Local"}
		if v := d.Storage.Volume; v != nil {
			disk.Type, disk.Zone = v.Type, v.AvailabilityZone
		}
		r.wanted.Disks = append(r.wanted.Disks, disk)
	}
	if len(r.wanted.volumes()) > 0 && r.volume == nil {
		return provider.Errorf(provider.Exhausted, "providerSpec.value.rootVolume, additionalBlockDevices: the cloud has no volumes")
	}
	return nil
}

// primary finds the network whose addresses come first.
func (r *resolver) primary(ctx context.Context) error {
	if r.spec.PrimarySubnet == "" {
		return nil
	}
	q := newQuery("primarySubnet")
	q.add("id", "id", r.spec.PrimarySubnet)
	subnets, err := r.list(ctx, "subnets", q)
	if err != nil {
		return err
	}
	subnet, err := one(subnets, q.String(), "subnet")
	if err != nil {
		return noNetwork(err)
	}
	networks, err := pages[named](ctx, r.caller, r.network, "list networks", "networks", "networks", url.Values{"id": {subnet.Network}})
	if err != nil {
		return err
	}
	network, err := one(networks, q.String(), "network")
	r.wanted.Primary = network.Name
	return err
}

func (r *resolver) floatingIP(ctx context.Context) error {
	if r.spec.FloatingIP == "" {
		return nil
	}
	q := newQuery("floatingIP")
	q.add("address", "floating_ip_address", r.spec.FloatingIP)
	all, err := r.list(ctx, "floatingips", q)
	if err != nil {
		return err
	}
	found, err := one(all, q.String(), "floating IP")
	r.wanted.FloatingIP = found.ID
	return err
}

func (r *resolver) list(ctx context.Context, path string, q *query) ([]named, error) {
	return pages[named](ctx, r.caller, r.network, "list "+path, path, strings.ReplaceAll(path, "-", "_"), q.values)
}

// isID reports whether text has the form of the cloud's ids.
func isID(text string) bool {
	if len(text) != 36 {
		return false
	}
	for i, c := range text {
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash != (c == '-') || !dash && !strings.ContainsRune("0123456789abcdefABCDEF", c) {
			return false
		}
	}
	return true
}
