// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/providerspec"
)

// Tags by which an instance and what belongs to it are known. The cluster's is also on what the installer made: the Machine's tells
// ours. In names of tags Azure allows no slash.
const (
	tagPrefix  = "machine-functions."
	tagUID     = tagPrefix + "machine-uid"
	tagMachine = tagPrefix + "machine"     // its name, of which names of resources are made: on another one the tags are a copy
	tagMark    = tagPrefix + "cluster-uid" // the one cluster's, whatever other has its id
	tagToken   = tagPrefix + "token"       // of the attempt
	tagDisks   = tagPrefix + "disks"       // suffixes of its data disks, by which whoever has no spec knows them
	tagKept    = tagPrefix + "kept"        // of those that outlive their instance
	tagCluster = "kubernetes.io_cluster."  // and the cluster's id
	owned      = "owned"
)

func (d *driver) tagCluster() string { return tagCluster + d.account.ClusterID }

// ours reports whether a thing carries the cluster's tag.
func (d *driver) ours(t thing) bool { return t.tag(d.tagCluster()) == owned }

// tags are those of everything that an attempt makes.
func (d *driver) tags(r provider.Ref, req request) map[string]string {
	all := wanted(req.Spec)
	all[tagUID], all[tagMachine], all[tagToken], all[d.tagCluster()] = string(r.UID), r.Name, r.Token, owned
	if req.Mark != "" {
		all[tagMark] = req.Mark
	}
	if disks, kept := suffixes(req.Spec); disks != "" {
		if all[tagDisks] = disks; kept != "" {
			all[tagKept] = kept
		}
	}
	return all
}

// suffixes are those of the data disks, and of the ones that stay when the Machine goes.
func suffixes(s providerspec.Azure) (disks, kept string) {
	var all, stay []string
	for _, d := range s.DataDisks {
		all = append(all, d.NameSuffix)
		if d.DeletionPolicy == detach {
			stay = append(stay, d.NameSuffix)
		}
	}
	return strings.Join(all, " "), strings.Join(stay, " ")
}

// wanted are the spec's own tags.
func wanted(s providerspec.Azure) map[string]string {
	all := map[string]string{}
	for name, value := range s.Tags {
		if !reserved(name) {
			all[name] = value
		}
	}
	return all
}

// reserved reports whether a tag says whose an instance is.
func reserved(name string) bool {
	name = strings.ToLower(name)
	return strings.HasPrefix(name, tagPrefix) || strings.HasPrefix(name, tagCluster) || strings.HasPrefix(name, "kubernetes.io-cluster-")
}

// What Azure takes (https://learn.microsoft.com/azure/azure-resource-manager/management/tag-resources).
const (
	mostTags     = 50
	ourTags      = 5 // besides those of data disks
	longestTag   = 512
	longestValue = 256
)

var badTag = regexp.MustCompile(`[<>%&\\?/]|^(?i:microsoft|azure|windows)`)

// taggable returns what Azure would have against the tags of a spec.
func taggable(s providerspec.Azure) error {
	p, seen := at("tags"), map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(s.Tags)) {
		switch lower := strings.ToLower(name); {
		case name == "" || len(name) > longestTag || badTag.MatchString(name):
			const says = "%s: %q is no name of a tag: it has 1 to %d characters without <>%%&\\?/, and does not begin with microsoft, azure or windows"
			return provider.Errorf(provider.Invalid, says, p, shorten(name), longestTag)
		case len(s.Tags[name]) > longestValue:
			return provider.Errorf(provider.Invalid, "%s: the value of %q has more than %d characters", p, name, longestValue)
		case seen[lower]:
			return provider.Errorf(provider.Invalid, "%s: %q is there twice: Azure does not tell capitals from small letters", p, name)
		default:
			seen[lower] = true
		}
	}
	disks, kept := suffixes(s)
	if len(disks) > longestValue {
		return provider.Errorf(provider.Invalid, "%s: the suffixes have %d characters together; a tag says them, which has %d", at("dataDisks"), len(disks), longestValue)
	}
	ours := ourTags
	for _, of := range []string{disks, kept} {
		if of != "" {
			ours++
		}
	}
	if n := len(wanted(s)); n > mostTags-ours {
		return provider.Errorf(provider.Invalid, "%s: there are %d; Azure takes %d, and %d say whose the instance is", p, n, mostTags, ours)
	}
	return nil
}

// Tags implements [provider.Updater].
func (*driver) Tags(spec json.RawMessage) (map[string]string, error) {
	s, err := decode(spec)
	if err != nil || len(s.Tags) == 0 {
		return nil, err
	}
	return wanted(s), nil
}

// Update implements [provider.Updater]. The API replaces all tags of an instance: those that were read are written back with the new
// ones, unless somebody changed it meanwhile.
func (d *driver) Update(ctx context.Context, r provider.Ref, tags map[string]string) error {
	err := d.call(ctx, func(ctx context.Context) error {
		all, err := d.named(ctx, r)
		if err != nil {
			return absent("tag "+r.Name, d.coded(err))
		}
		if len(all) == 0 {
			return provider.Errorf(provider.NotFound, "tag %s: no instance is there", r.Name)
		}
		for _, i := range all {
			if err := d.retag(ctx, i, tags); err != nil {
				return err
			}
		}
		return nil
	})
	return err
}

func (d *driver) retag(ctx context.Context, i instance, tags map[string]string) error {
	next := maps.Clone(i.Tags)
	if next == nil {
		next = map[string]string{}
	}
	for name, value := range tags {
		if reserved(name) {
			continue
		}
		if _, there := i.Tags[name]; !there && i.tag(name) == value && value != "" { // under a name in other letters, which Azure may keep
			continue
		}
		maps.DeleteFunc(next, func(have, _ string) bool { return have != name && strings.EqualFold(have, name) })
		next[name] = value
	}
	if maps.Equal(next, i.Tags) {
		return nil
	}
	header := map[string]string{}
	if i.Etag != "" {
		header["If-Match"] = i.Etag
	}
	err := d.do(ctx, ask{method: http.MethodPatch, id: i.ID, header: header, body: map[string]any{"tags": next}}, nil)
	if refused(err, http.StatusPreconditionFailed) {
		return provider.Errorf(provider.Unknown, "tag %s: it was changed meanwhile", i.called())
	}
	if err != nil {
		return fmt.Errorf("tag %s: %w", i.called(), err)
	}
	return nil
}
