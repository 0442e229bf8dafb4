// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// serverGroups lists those of the project. Nova tells as many at a time as it is set to, and does not say that there are more.
// Each page begins with the last of the one before: if it does not, the list changed meanwhile, and may lack some.
func (c caller) serverGroups(ctx context.Context) ([]named, error) {
	const doing = "list server groups"
	var all []named
	for {
		var answer struct {
			Groups *[]named `json:"server_groups"`
		}
		from := max(len(all)-1, 0)
		if err := c.get(ctx, c.compute, doing, fmt.Sprintf("os-server-groups?limit=1000&offset=%d", from), &answer); err != nil {
			return nil, err
		}
		if answer.Groups == nil {
			return nil, coded(doing, errEmpty)
		}
		page := *answer.Groups
		if len(all) > 0 {
			if len(page) == 0 || page[0].ID != all[from].ID {
				return nil, provider.Errorf(provider.Unknown, "%s: it changes while it is read", doing)
			}
			page = page[1:]
		}
		if len(page) == 0 {
			return all, nil
		}
		all = append(all, page...)
	}
}

// groupsWithin is how long after it found no group a call may need to make one.
const groupsWithin = 2 * time.Second

// haveGroup returns the id of the server group, or "". A group that the spec names and nobody made is made, as the API has
// it, and stays when the instance goes: it belongs to all that name it. Names are not unique: of several calls in this
// process one makes it, and of the groups that several processes made at the same time all take the one with the smallest id,
// once those that had found none either have had time to make theirs.
func (a *attempt) haveGroup(ctx context.Context) (string, error) {
	if a.wanted.ServerGroup != "" || a.wanted.NewGroup == "" {
		return a.wanted.ServerGroup, nil
	}
	doing := "create server group " + a.wanted.NewGroup
	select {
	case a.driver.session.grouping <- struct{}{}:
		defer func() { <-a.driver.session.grouping }()
	case <-ctx.Done():
		return "", coded(doing, ctx.Err())
	}
	if id, err := a.group(ctx); id != "" || err != nil {
		return id, err
	}
	var answer struct {
		Group named `json:"server_group"`
	}
	body := map[string]any{"server_group": map[string]any{"name": a.wanted.NewGroup, "policy": "soft-anti-affinity"}}
	if err := a.post(ctx, a.compute, doing, "os-server-groups", body, &answer); err != nil {
		return "", err
	}
	pause(ctx, groupsWithin)
	id, err := a.group(ctx)
	if err == nil && answer.Group.ID != "" && id != answer.Group.ID {
		err = a.remove(ctx, a.compute, "delete server group "+answer.Group.ID, "os-server-groups/"+answer.Group.ID)
	}
	return id, err
}

// group returns the id of the group of that name, of several the smallest, or "".
func (a *attempt) group(ctx context.Context) (string, error) {
	all, err := a.serverGroups(ctx)
	if err != nil {
		return "", err
	}
	all = slices.DeleteFunc(all, func(n named) bool { return n.Name != a.wanted.NewGroup })
	if len(all) == 0 {
		return "", nil
	}
	return smallest(all).ID, nil
}

// smallest returns the thing with the smallest id.
func smallest(all []named) named {
	return slices.MinFunc(all, func(x, y named) int { return cmp.Compare(x.ID, y.ID) })
}
