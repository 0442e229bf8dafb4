// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var _ provider.Updater = (*driver)(nil)

// bare is before the name of a tag of Nova's, which has no value, among what Tags, Update and lists tell. What has a value is
// metadata, whose names never contain the separator.
const bare = "tags/"

// Tags implements [provider.Updater]: the spec's serverMetadata and its tags are what may change while an instance lives.
func (*driver) Tags(spec json.RawMessage) (map[string]string, error) {
	s, err := decode(spec)
	if err != nil {
		return nil, err
	}
	return labeled(s.Tags, s.ServerMetadata), nil
}

// labeled returns tags and metadata under one map, without those by which the driver knows an instance; nil if there are none.
func labeled(tags []string, metadata map[string]string) map[string]string {
	all := map[string]string{}
	for _, t := range tags {
		if !owning(t) {
			all[bare+t] = ""
		}
	}
	for name, value := range metadata {
		if name != metaPrimary {
			all[name] = value
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// owning reports whether a tag says whose a thing is.
func owning(t string) bool {
	name, _, _ := strings.Cut(t, "=")
	return slices.Contains([]string{tagCluster, tagUID, tagMark, tagToken, tagPart, tagServer}, name)
}

// Update implements [provider.Updater]: one request for all metadata, one for each tag.
func (d *driver) Update(ctx context.Context, r provider.Ref, tags map[string]string) error {
	ctx, cancel, c, err := d.connect(ctx)
	defer cancel()
	if err != nil {
		return err
	}
	found, err := d.find(ctx, c, r)
	if err != nil {
		return err
	}
	found = slices.DeleteFunc(found, server.deleting)
	if len(found) == 0 {
		return provider.Errorf(provider.NotFound, "tag %s: no instance is there", r.Name)
	}
	for _, s := range found {
		if err := c.label(ctx, s, tags); err != nil {
			return err
		}
	}
	return nil
}

// label gives s those tags that it lacks.
func (c caller) label(ctx context.Context, s server, tags map[string]string) error {
	has, metadata := labeled(s.Tags, s.Metadata), map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(tags)) {
		value, there := has[name]
		t, isTag := strings.CutPrefix(name, bare)
		switch {
		case there && value == tags[name], owning(t), name == metaPrimary:
		case !isTag:
			metadata[name] = tags[name]
		default:
			if err := c.request(ctx, c.compute, "tag instance "+s.ID, http.MethodPut, "servers/"+s.ID+"/tags/"+url.PathEscape(t), gophercloud.RequestOpts{}); err != nil {
				return err
			}
		}
	}
	if len(metadata) == 0 {
		return nil
	}
	return c.post(ctx, c.compute, "change metadata of instance "+s.ID, "servers/"+s.ID+"/metadata", map[string]any{"metadata": metadata}, nil)
}
