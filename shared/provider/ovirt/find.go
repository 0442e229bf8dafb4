// SPDX-License-Identifier: Apache-2.0

package ovirt

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// details are what is told of an instance beside itself: its network cards, and what the guest says of them. They cost the engine more questions for
// each, one that fails fails the whole list, and what is made, removed or power-cycled needs none.
const details = "nics,reported_devices"

// seen returns the instances that the engine finds. Only lists are asked: one that could have had an instance proves that it is not there, which
// no 404 does, as proxies write those too (RELIABILITY G5).
func (d *driver) seen(ctx context.Context, doing, asked, follow string) ([]instance, error) {
	all, err := search[instance](ctx, d.session, doing, "/vms", "vm", asked, follow)
	if err != nil {
		return nil, err
	}
	for n := range all {
		if !uuids.MatchString(all[n].ID) {
			return nil, provider.Errorf(provider.Unknown, "%s: the answer has an instance with the id %.40q", doing, all[n].ID)
		}
		all[n].Mark, _ = marked(all[n].Comment)
	}
	return all, nil
}

// everyone returns every instance of the cluster: those with its mark, and those that have nothing but its tag, which other systems made.
func (d *driver) everyone(ctx context.Context) ([]instance, error) {
	ours, err := d.seen(ctx, "list instances", "comment="+prefix(d.account.ClusterID, "")+"*", details)
	if err != nil {
		return nil, err
	}
	all := map[string]instance{}
	for _, i := range ours {
		if i.Mark.Cluster == d.account.ClusterID {
			all[i.ID] = i
		}
	}
	others, err := d.others(ctx)
	if err != nil {
		return nil, err
	}
	for _, i := range others {
		all[i.ID] = i
	}
	return sorted(all), nil
}

// others returns the instances that have the cluster's tag and no mark. Details cost the engine queries for each: it is asked for them where
// there is such an instance, as few clusters have.
func (d *driver) others(ctx context.Context) (all []instance, err error) {
	tag := d.tag()
	if tag == "" {
		return nil, nil
	}
	unmarked := func(i instance) bool { return i.Mark.Cluster == "" }
	for _, follow := range []string{"", details + ",tags"} {
		if all, err = d.seen(ctx, "list instances with tag "+tag, "tag="+tag, follow); err != nil || !slices.ContainsFunc(all, unmarked) {
			return nil, err
		}
	}
	return slices.DeleteFunc(all, func(i instance) bool { return !unmarked(i) || !i.tagged(tag) }), nil
}

func (i instance) tagged(tag string) bool {
	return slices.ContainsFunc(i.Tags.All, func(t named) bool { return t.Name == tag })
}

func sorted(all map[string]instance) []instance {
	return slices.SortedFunc(maps.Values(all), func(a, b instance) int { return cmp.Compare(a.ID, b.ID) })
}

// named returns the instances that r names: by the Machine's UID, or by an id unless the mark is another Machine's. They are told with what is
// followed. What one search has shown, no other has to.
func (d *driver) named(ctx context.Context, r provider.Ref, follow string) ([]instance, error) {
	found, shown := map[string]instance{}, map[string]bool{}
	for _, asked := range d.questions(r) {
		if shown[asked] {
			continue
		}
		all, err := d.seen(ctx, "find "+r.Name, asked, follow)
		if err != nil {
			return nil, err
		}
		for _, i := range all {
			shown[byID(i.ID)] = true
			if d.means(r, i) {
				found[i.ID] = i
			}
		}
	}
	all := sorted(found)
	if slices.ContainsFunc(all, func(i instance) bool { return !i.copied() }) {
		all = slices.DeleteFunc(all, instance.copied)
	}
	return all, nil
}

// questions are the searches that lead to what r names. Somebody is always asked: what is not asked for is not absent.
func (d *driver) questions(r provider.Ref) []string {
	var all []string
	if r.UID != "" {
		all = append(all, "comment="+prefix(d.account.ClusterID, string(r.UID))+"*")
	}
	for _, id := range []string{r.ID, strings.TrimPrefix(r.ProviderID, scheme), progressOf(r).ID} {
		if asked := byID(id); uuids.MatchString(id) && !slices.Contains(all, asked) {
			all = append(all, asked)
		}
	}
	if all == nil {
		all = append(all, "comment="+prefix(d.account.ClusterID, "none")+"*")
	}
	return all
}

// byID is the search for an id.
func byID(id string) string { return "id=" + strings.ToLower(id) }

// means reports whether r names i. What carries no mark was made by another system: it is the Machine's that records its id. What looks like a
// copy is the Machine's only as long as nothing else is, and is never removed.
func (d *driver) means(r provider.Ref, i instance) bool {
	recorded := machine.SameID(strings.ToLower(r.ProviderID), i.providerID())
	switch {
	case r.Attempt && i.Mark.Token != r.Token:
		return false
	case i.Mark.Cluster == "":
		return recorded
	case i.Mark.Cluster != d.account.ClusterID:
		return false
	case i.copied():
		return recorded && r.UID != "" && i.Mark.UID == string(r.UID)
	case r.UID == "":
		return recorded || r.ID != "" && strings.EqualFold(r.ID, i.ID)
	}
	return i.Mark.UID == string(r.UID)
}

// loose returns the disks that were made for instances of the cluster, or of one Machine, and are attached to none. Of the cluster's are those
// that are called so and have no mark, too: whose they are people have to say, who may have changed it.
func (d *driver) loose(ctx context.Context, uid string) ([]disk, error) {
	p := prefix(d.account.ClusterID, uid)
	all, err := search[disk](ctx, d.session, "list disks left behind", "/disks", "disk", "alias="+p+"* and number_of_vms=0", "")
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(k disk) bool {
		m, said := k.mark(), k.described()
		switch {
		case !uuids.MatchString(k.ID):
			return true
		case said.Cluster == "" && said.UID == "":
			return uid != "" || !strings.HasPrefix(k.Alias, p)
		}
		return m.Cluster != d.account.ClusterID || m.UID == "" || uid != "" && m.UID != uid
	}), nil
}

// longestTag is how many letters the name of a tag has at most.
const longestTag = 50

// tag returns the name of the cluster's tag, by which OpenShift's installer knows what it has to remove; empty if no tag can be called so.
func (d *driver) tag() string {
	if id := d.account.ClusterID; words.MatchString(id) && len(id) <= longestTag && !strings.ContainsAny(id, "+") {
		return id
	}
	return ""
}
