// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"fmt"
	"net/http"

	"github.com/vmware/govmomi/vapi/tags"
	"github.com/vmware/govmomi/vim25"
	"github.com/vmware/govmomi/vim25/mo"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// The categories of the tags that name a region and a zone, as OpenShift's installer makes them (SPEC E26).
const (
	regionCategory = "openshift-region"
	zoneCategory   = "openshift-zone"
)

// tagged reads region and zone off the cluster or what it lies in; the nearest counts.
func (d *driver) tagged(ctx context.Context, c *vim25.Client, cluster reference, req *request) error {
	path, err := mo.Ancestors(ctx, c, c.ServiceContent.PropertyCollector, cluster)
	if err != nil {
		return fmt.Errorf("folders of %s: %w", cluster.Value, err)
	}
	var refs []mo.Reference
	for _, e := range path {
		refs = append(refs, e.Self)
	}
	return d.session.tagging(ctx, c, func(m *tags.Manager) error {
		attached, err := m.ListAttachedTagsOnObjects(ctx, refs)
		if err != nil {
			return fmt.Errorf("tags of %s: %w", cluster.Value, err)
		}
		byObject := map[reference][]string{}
		for _, a := range attached {
			byObject[a.ObjectID.Reference()] = a.TagIDs
		}
		for _, e := range path { // from the root to the cluster
			for _, id := range byObject[e.Self] {
				if err := placed(ctx, m, id, req); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func placed(ctx context.Context, m *tags.Manager, id string, req *request) error {
	tag, err := m.GetTag(ctx, id)
	if err != nil {
		return fmt.Errorf("tag %s: %w", id, err)
	}
	category, err := m.GetCategory(ctx, tag.CategoryID)
	if err != nil {
		return fmt.Errorf("category of tag %s: %w", tag.Name, err)
	}
	switch category.Name {
	case regionCategory:
		req.Region = tag.Name
	case zoneCategory:
		req.Zone = tag.Name
	}
	return nil
}

// attach puts the spec's tags on a clone; those that are there already stay.
func (d *driver) attach(ctx context.Context, c *vim25.Client, ids []string, clone reference) error {
	return d.session.tagging(ctx, c, func(m *tags.Manager) error {
		for i, id := range ids {
			if !providerspec.VSphereTag(id) { // a spec that was changed since nobody has checked
				return provider.Errorf(provider.NotFound, "%s: %q: there can be no such tag; name another", at("tagIDs").Index(i), id)
			}
			err := m.AttachTag(ctx, id, clone)
			if answered(err, http.StatusNotFound) {
				return provider.Errorf(provider.NotFound, "%s: %q: there is no such tag; create it, or name another", at("tagIDs").Index(i), id)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}
