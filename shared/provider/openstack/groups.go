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

// haveGroup returns the id of the server group, or "", and whether there was time to learn it. A group that the spec names and
// nobody made is made, as the API has it, and stays when the instance goes: it belongs to all that name it. Names are not unique:
// of several calls in this process one makes it, and of the groups that several processes made at the same time all take the one
// with the smallest id, once those that had found none either have had time to make theirs.
func (a *attempt) haveGroup(ctx context.Context) (id string, known bool, err error) {
	if a.wanted.ServerGroup != "" || a.wanted.NewGroup == "" {
		return a.wanted.ServerGroup, true, nil
	}
	deadline, _ := ctx.Deadline() // connect has set it
	early, cancel := context.WithDeadline(ctx, deadline.Add(-reserve))
	defer cancel()
	select {
	case a.driver.session.grouping <- struct{}{}:
		defer func() { <-a.driver.session.grouping }()
	case <-early.Done():
		return "", false, nil
	}
	if id, _, err := a.group(ctx, ""); id != "" || err != nil {
		return id, true, err
	}
	var answer struct {
		Group named `json:"server_group"`
	}
	body := map[string]any{"server_group": map[string]any{"name": a.wanted.NewGroup, "policy": "soft-anti-affinity"}}
	if err := a.post(ctx, a.compute, "create server group "+a.wanted.NewGroup, "os-server-groups", body, &answer); err != nil {
		return "", false, err
	}
	a.latest = "server group"
	if !pause(ctx, groupsWithin) {
		return "", false, nil
	}
	mine := answer.Group.ID
	id, empty, err := a.group(ctx, mine)
	if err == nil && id != mine && empty {
		err = a.remove(ctx, a.compute, "delete server group "+mine, "os-server-groups/"+mine)
	}
	return id, id != "", err // without one, it went meanwhile or no list shows it yet: an instance is not made in none
}

// group returns the id of the group of that name, of several the smallest, or "". Empty says that mine is one of them and has
// nobody: another process may have found it alone, and made an instance in it.
func (a *attempt) group(ctx context.Context, mine string) (id string, empty bool, err error) {
	all, err := a.serverGroups(ctx)
	if err != nil {
		return "", false, err
	}
	all = slices.DeleteFunc(all, func(n named) bool { return n.Name != a.wanted.NewGroup })
	if len(all) == 0 {
		return "", false, nil
	}
	empty = slices.ContainsFunc(all, func(n named) bool { return n.ID == mine && len(n.Members) == 0 })
	return smallest(all).ID, empty, nil
}

// smallest returns the thing with the smallest id.
func smallest(all []named) named {
	return slices.MinFunc(all, func(x, y named) int { return cmp.Compare(x.ID, y.ID) })
}
