// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

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

// clusterCategory begins the name of the category in which OpenShift's installer makes a tag that is named as the cluster's id. By that tag it
// finds what it removes with the cluster.
const clusterCategory = "openshift-"

// tagOfCluster is what is known of that tag: it is looked for once, and where there is none once in a while.
type tagOfCluster struct {
	mu    sync.Mutex
	id    string
	asked time.Time
}

// untaggedFor is how long a vCenter is taken to have no tag of the cluster.
const untaggedFor = 10 * time.Minute

// ofCluster returns the id of the cluster's tag, or "" if the vCenter has none, as of a cluster that no installer made.
func (d *driver) ofCluster(ctx context.Context, c *vim25.Client) (string, error) {
	known := &d.cluster
	known.mu.Lock()
	defer known.mu.Unlock()
	if known.id != "" || !known.asked.IsZero() && time.Since(known.asked) < untaggedFor {
		return known.id, nil
	}
	var found string
	err := d.session.tagging(ctx, c, func(m *tags.Manager) (err error) {
		found, err = d.findOfCluster(ctx, m)
		return err
	})
	if err == nil {
		known.id, known.asked = found, time.Now()
	}
	return found, err
}

func (d *driver) findOfCluster(ctx context.Context, m *tags.Manager) (string, error) {
	categories, err := m.ListCategories(ctx)
	if err != nil {
		return "", fmt.Errorf("categories of tags: %w", err)
	}
	for _, id := range categories {
		category, err := m.GetCategory(ctx, id)
		if answered(err, http.StatusNotFound) { // gone since
			continue
		}
		if err != nil {
			return "", fmt.Errorf("category %s of tags: %w", id, err)
		}
		if category.Name != clusterCategory+d.account.ClusterID {
			continue
		}
		all, err := m.ListTagsForCategory(ctx, id)
		if err != nil {
			return "", fmt.Errorf("tags of category %s: %w", category.Name, err)
		}
		for _, id := range all {
			tag, err := m.GetTag(ctx, id)
			if err != nil {
				return "", fmt.Errorf("tag %s: %w", id, err)
			}
			if tag.Name == d.account.ClusterID {
				return id, nil
			}
		}
	}
	return "", nil
}

// forget has the tag looked for again.
func (t *tagOfCluster) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.id, t.asked = "", time.Time{}
}

// attach puts the spec's tags on a clone, and that of the cluster, if there is one; those that are there already stay.
func (d *driver) attach(ctx context.Context, c *vim25.Client, ids []string, ofCluster string, clone reference) error {
	return d.session.tagging(ctx, c, func(m *tags.Manager) error {
		if ofCluster != "" {
			err := m.AttachTag(ctx, ofCluster, clone)
			if answered(err, http.StatusNotFound) {
				d.cluster.forget()
				return provider.Errorf(provider.Unknown, "tag %s of the cluster is gone: it is looked for again", ofCluster)
			}
			if err != nil {
				return fmt.Errorf("tag %s of the cluster: %w", ofCluster, err)
			}
		}
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
