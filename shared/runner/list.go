// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// list answers many lookups of one account with one bulk list.
func (i *invocation) list(ctx context.Context, lookups []listed, subjects map[types.UID]subject, answer func(types.UID, snapshot.Cloud)) {
	elsewhere := map[string][]listed{}
	i.listOne(ctx, lookups, subjects, elsewhere, answer)
	for _, key := range slices.Sorted(maps.Keys(elsewhere)) {
		i.listOne(ctx, elsewhere[key], subjects, nil, answer)
	}
}

// listOne answers them from one account and cluster. What that does not show goes to elsewhere, where it may be under another
// id of the cluster.
func (i *invocation) listOne(ctx context.Context, lookups []listed, subjects map[types.UID]subject, elsewhere map[string][]listed, answer func(types.UID, snapshot.Cloud)) {
	a := lookups[0].account
	seen := i.listed(ctx, a)
	err := seen.err
	tell := func(m *machine.Machine, c snapshot.Cloud) {
		if c.Err == nil && err == nil { // else whoever asked by itself has said so
			owned(&c, m, seen.owner, seen.untold)
		}
		c.Later = c.Later || seen.cut && c.Err != nil && i.unchanged(subjects[m.UID], nil)
		answer(m.UID, c)
	}
	var silent []listed
	alone := err != nil && provider.CodeOf(err) != provider.Throttled // one that is throttled has no calls to spare
	byUID, byID := index(seen.all)
	for _, l := range lookups {
		c := cloudOf(l.account)
		c.Found, c.Err = byUID[l.UID], refusal(err)
		m, ok := subjects[l.UID].object.(*machine.Machine)
		if !ok {
			answer(l.UID, c)
			continue
		}
		if alone && l.Alone {
			silent = append(silent, l)
			continue
		}
		c.Found = byUID[machine.InstanceUID(m)]
		in, known := byID[machine.InstanceOf(machine.ProviderID(m))]
		if other := known && in.UID != machine.InstanceUID(m); other && (in.UID != "" || in.Name == m.Name) { // made for a Machine that this one was before, or by another system, which knows no such tag
			c.Found = append(slices.Clip(c.Found), in) // beside its own, where people led it away from that
		} else if len(c.Found) > 0 || machine.ProviderID(m) == "" {
		} else if o := l.other; o != nil && err == nil {
			elsewhere[o.id()] = append(elsewhere[o.id()], listed{Lookup: l.Lookup, account: *o})
		} else if l.hidden != nil {
			c.Err = refusal(l.hidden)
		} else if err == nil && m.DeletionTimestamp == nil {
			silent = append(silent, l)
			continue
		}
		tell(m, c)
	}
	if len(silent) > 0 {
		i.askInTurn(ctx, a, silent, subjects, tell)
	}
}

// index returns the instances by the UID that they carry, and by what their providerID names; what only belongs to one is left out.
func index(all []provider.Instance) (map[types.UID][]provider.Instance, map[machine.InstanceID]provider.Instance) {
	byUID, byID := map[types.UID][]provider.Instance{}, map[machine.InstanceID]provider.Instance{}
	for _, in := range all {
		if !in.Child {
			byUID[in.UID] = append(byUID[in.UID], in)
			if in.ProviderID != "" {
				byID[machine.InstanceOf(in.ProviderID)] = in
			}
		}
	}
	return byUID, byID
}

// listing is what an account shows, and which of the cloud's accounts it is.
type listing struct {
	all    []provider.Instance
	owner  string
	untold error // why nobody says which it is
	err    error
	cut    bool // by our own time
}

// listed lists an account.
func (i *invocation) listed(ctx context.Context, a account) (seen listing) {
	ctx, done, err := i.wait(ctx, a, "list")
	if err != nil {
		return listing{err: err, cut: errors.Is(err, errCut)}
	}
	seen.all, seen.err = a.driver.List(ctx)
	i.Clouds.Metrics.Called("list", seen.err)
	if seen.err == nil {
		seen.owner, seen.untold = a.driver.Identity(ctx)
	}
	seen.cut = done()
	return seen
}
