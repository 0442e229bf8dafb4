// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"context"
	"net/url"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// request is a spec whose names have become ids of the engine.
type request struct {
	Spec     providerspec.Ovirt `json:"spec"`
	Template string             `json:"template"`
	Disks    []string           `json:"disks,omitempty"`  // of the template
	Groups   []string           `json:"groups,omitempty"` // of affinity, one for each name
	Hosts    []string           `json:"hosts,omitempty"`  // that CPUs may be pinned to
	Mark     string             `json:"clusterUID,omitempty"`
}

// center is the engine's cluster, and the data center that it is in.
type center struct {
	ID   string    `json:"id"`
	Name string    `json:"name"`
	Data reference `json:"data_center"`
}

// resolve looks up everything that s names.
func (d *driver) resolve(ctx context.Context, s providerspec.Ovirt) (request, error) {
	req := request{Spec: s, Mark: string(d.account.ClusterUID)}
	c, err := d.cluster(ctx, at("cluster_id"), s.ClusterID)
	if err != nil {
		return req, err
	}
	t, err := d.template(ctx, s, c)
	if err != nil {
		return req, err
	}
	req.Template = t.ID
	if err := d.exist(ctx, s); err != nil {
		return req, err
	}
	if req.Disks, err = d.inspect(ctx, s, t); err != nil {
		return req, err
	}
	if req.Groups, err = d.groups(ctx, s); err != nil {
		return req, err
	}
	if s.AutoPinningPolicy == "resize_and_pin" {
		req.Hosts, err = d.hosts(ctx, s)
	}
	return req, err
}

// missing says which field names what the engine lacks.
func missing(p *field.Path, value string, err error) error {
	if provider.CodeOf(err) != provider.NotFound {
		return err
	}
	return provider.Errorf(provider.NotFound, "%s: %q: %w; create it, or name another", p, value, err)
}

func (d *driver) cluster(ctx context.Context, p *field.Path, id string) (center, error) {
	c, err := get[center](ctx, d.session, "read cluster", "/clusters/"+id)
	return c, missing(p, id, err)
}

// exist looks up what s names by its id.
func (d *driver) exist(ctx context.Context, s providerspec.Ovirt) error {
	type lookup struct {
		at             *field.Path
		what, path, id string
	}
	var all []lookup
	if s.InstanceTypeID != "" {
		all = append(all, lookup{at("instance_type_id"), "read instance type", "/instancetypes/", s.InstanceTypeID})
	}
	if s.StorageDomainID != "" {
		all = append(all, lookup{at("storage_domain_id"), "read storage domain", "/storagedomains/", s.StorageDomainID})
	}
	for i, n := range s.NetworkInterfaces {
		all = append(all, lookup{at("network_interfaces").Index(i).Child("vnic_profile_id"), "read vNIC profile", "/vnicprofiles/", n.VNICProfileID})
	}
	for _, it := range all {
		if _, err := get[reference](ctx, d.session, it.what, it.path+it.id); err != nil {
			return missing(it.at, it.id, err)
		}
	}
	return nil
}

// template returns the newest version of the template of that name in the data center.
func (d *driver) template(ctx context.Context, s providerspec.Ovirt, in center) (template, error) {
	p := at("template_name")
	all, err := search[template](ctx, d.session, "find template", "/templates", "template", "name="+s.TemplateName, "")
	if err != nil {
		return template{}, err
	}
	var found []template
	for _, t := range all {
		if t.Name != s.TemplateName || !uuids.MatchString(t.ID) {
			continue
		}
		if id := t.Cluster.ID; id != "" && id != in.ID { // names are of a data center; one without a cluster is of all
			if !uuids.MatchString(id) {
				continue
			}
			other, err := d.cluster(ctx, p, id)
			if err != nil && provider.CodeOf(err) != provider.NotFound {
				return template{}, err
			}
			if err != nil || other.Data.ID != in.Data.ID {
				continue
			}
		}
		found = append(found, t)
	}
	if len(found) == 0 {
		return template{}, provider.Errorf(provider.NotFound, "%s: the data center of cluster %s (%q) has no template %q: create it, or name another", p, in.ID, in.Name, s.TemplateName)
	}
	t := slices.MaxFunc(found, func(a, b template) int { return int(a.Version.Number - b.Version.Number) })
	if t.Status != "" && t.Status != "ok" {
		return t, provider.Errorf(provider.Exhausted, "%s: template %q is %s: wait until it is ok, or mend it", p, t.Name, t.Status)
	}
	return t, nil
}

// inspect judges the disks of the template, and returns their ids. One that is larger than the spec's stays so: disks do not shrink.
func (d *driver) inspect(ctx context.Context, s providerspec.Ovirt, t template) ([]string, error) {
	all, err := page[attachment](ctx, d.session, "list disks of template "+t.Name, "/templates/"+t.ID+"/diskattachments", "disk_attachment", url.Values{"follow": {"disk"}})
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(all, func(a attachment) bool { return bool(a.Bootable) }) {
		return nil, provider.Errorf(provider.Exhausted, "%s: %q has no disk to boot from: mend it, or name another", at("template_name"), s.TemplateName)
	}
	var disks []string
	for _, a := range all {
		if !uuids.MatchString(a.ID) {
			return nil, provider.Errorf(provider.Unknown, "list disks of template %s: the answer has a disk with the id %.40q", t.Name, a.ID)
		}
		disks = append(disks, a.ID)
	}
	slices.Sort(disks)
	return disks, nil
}

// groups returns the ids of the affinity groups.
func (d *driver) groups(ctx context.Context, s providerspec.Ovirt) ([]string, error) {
	if len(s.AffinityGroupsNames) == 0 {
		return nil, nil
	}
	all, err := page[named](ctx, d.session, "list affinity groups", "/clusters/"+s.ClusterID+"/affinitygroups", "affinity_group", nil)
	if err != nil {
		return nil, err
	}
	var groups []string
	for i, name := range s.AffinityGroupsNames {
		n := slices.IndexFunc(all, func(g named) bool { return g.Name == name && uuids.MatchString(g.ID) })
		if n < 0 {
			return nil, provider.Errorf(provider.NotFound, "%s: cluster %s has no affinity group %q: create it, or name another", at("affinity_groups_names").Index(i), s.ClusterID, name)
		}
		groups = append(groups, all[n].ID)
	}
	return groups, nil
}

// hosts returns those of the cluster, to one of which CPUs are pinned.
func (d *driver) hosts(ctx context.Context, s providerspec.Ovirt) ([]string, error) {
	all, err := search[host](ctx, d.session, "list hosts", "/hosts", "host", "", "")
	if err != nil {
		return nil, err
	}
	var hosts []string
	for _, h := range all {
		if h.Cluster.ID == s.ClusterID {
			hosts = append(hosts, h.ID)
		}
	}
	if len(hosts) == 0 {
		return nil, provider.Errorf(provider.Exhausted, "%s: cluster %s has no host to pin CPUs to", at("auto_pinning_policy"), s.ClusterID)
	}
	slices.Sort(hosts)
	return hosts, nil
}
