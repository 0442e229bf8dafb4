// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// at reads an instance with how it is now.
func (d *driver) at(ctx context.Context, id string) (instance, error) {
	return get[instance](ctx, d.client, id, map[string]string{"$expand": "instanceView"})
}

// named returns the instances that r names: what has its name, or is recorded, is asked for by its id, which never lags; and the list is
// looked through where that does not lead to what r means.
func (d *driver) named(ctx context.Context, r provider.Ref) ([]instance, error) {
	var all []instance
	for _, id := range d.idsOf(r) {
		i, err := d.at(ctx, id)
		switch {
		case gone(err), groupless(err) && d.records(r):
			continue
		case err != nil:
			return nil, err
		}
		if d.means(r, i) {
			all = append(all, i)
		}
	}
	if len(all) > 0 || r.UID == "" && r.ID == "" {
		return all, nil
	}
	listed, err := d.listed(ctx)
	if groupless(err) && d.records(r) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for _, l := range listed {
		if !d.means(r, l) {
			continue
		}
		i, err := d.at(ctx, l.ID)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if d.means(r, i) {
			all = append(all, i)
		}
	}
	return all, nil
}

// idsOf returns the ids of the instances that r may name: in the driver's subscription, in whatever group.
func (d *driver) idsOf(r provider.Ref) (all []string) {
	add := func(id string) {
		if !slices.ContainsFunc(all, func(have string) bool { return strings.EqualFold(have, id) }) {
			all = append(all, id)
		}
	}
	if nameable.MatchString(r.Name) {
		add(d.id(instanceKind, r.Name))
	}
	id := strings.TrimPrefix(r.ProviderID, scheme)
	if id != r.ProviderID && providerID(id) != "" && ids.MatchString(id) && strings.HasPrefix(strings.ToLower(id), "/subscriptions/"+d.subscription+"/") {
		add(id)
	}
	return all
}

// records reports whether r's record says that its instance was in the driver's resource group: where that is gone, so is the instance.
func (d *driver) records(r provider.Ref) bool {
	under := strings.ToLower(scheme + d.id(instanceKind, ""))
	return strings.HasPrefix(strings.ToLower(r.ProviderID), under)
}

// means reports whether r names i. What carries no Machine's tag, or a copy of it, was made by another system: it is the Machine's that
// records its provider id. Of two that had one name Azure's own id tells which is meant. What is recorded and carries the
// Machine's own tag stays its own where somebody took the cluster's off.
func (d *driver) means(r provider.Ref, i instance) bool {
	uid := i.tag(tagUID)
	same := strings.EqualFold(r.ID, i.Properties.VMID)
	recorded := machine.SameID(r.ProviderID, providerID(i.ID)) && (same || !subscriptions.MatchString(strings.ToLower(r.ID)))
	switch {
	case r.Attempt && i.tag(tagToken) != r.Token:
		return false
	case uid == "" || copied(i.thing, i.called()):
		return recorded && d.mayBeNamed(i.thing)
	case !d.ours(i.thing):
		return recorded && uid == string(r.UID) && !d.anothers(i.thing)
	case r.UID == "":
		return recorded || same
	}
	return uid == string(r.UID)
}

// anothers reports whether a tag says that t is another cluster's.
func (d *driver) anothers(t thing) bool {
	for name := range t.Tags {
		if strings.HasPrefix(strings.ToLower(name), tagCluster) && !strings.EqualFold(name, d.tagCluster()) {
			return true
		}
	}
	return false
}

// mayBeNamed reports whether a Machine can say that what carries no tag of it is its own: what carries the cluster's; and in the driver's
// resource group what carries no other cluster's. Whoever writes Machines has not the whole subscription.
func (d *driver) mayBeNamed(t thing) bool {
	others := false
	for name := range t.Tags {
		others = others || strings.HasPrefix(strings.ToLower(name), tagCluster)
	}
	inside := strings.HasPrefix(strings.ToLower(t.ID), strings.ToLower(d.id(instanceKind, "")))
	return d.ours(t) || inside && !others
}

// listed returns every instance of the resource group and the location, without how it is now.
func (d *driver) listed(ctx context.Context) ([]instance, error) {
	found, err := all[instance](ctx, d.client, ask{method: http.MethodGet, id: strings.TrimSuffix(d.id(instanceKind, ""), "/")})
	if err != nil {
		return nil, err
	}
	for _, i := range found {
		if !i.told() {
			return nil, errStrange
		}
	}
	return slices.DeleteFunc(found, func(i instance) bool { return !d.here(i.thing) }), nil
}

// instances tells of what was found, with its addresses.
func (d *driver) instances(ctx context.Context, found []instance) ([]provider.Instance, error) {
	cards, addresses, err := d.connections(ctx, found)
	if err != nil {
		return nil, err
	}
	var all []provider.Instance
	for _, i := range found {
		all = append(all, d.view(i, cards, addresses))
	}
	return all, nil
}

// connections returns the cards and public addresses of instances, by id in small letters. One that is gone has no address.
func (d *driver) connections(ctx context.Context, found []instance) (map[string]card, map[string]address, error) {
	cards, addresses := map[string]card{}, map[string]address{}
	for _, i := range found {
		for _, of := range i.cards() {
			if err := known(ctx, d, cards, of.ID); err != nil {
				return nil, nil, err
			}
			for _, a := range cards[strings.ToLower(of.ID)].Properties.Addresses {
				if a.Properties.Public == nil {
					continue
				}
				if err := known(ctx, d, addresses, a.Properties.Public.ID); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	return cards, addresses, nil
}

// known reads a thing, by its id in small letters. What is gone is none; nor is what lies in another resource group that may not be read.
func known[T interface{ told() bool }](ctx context.Context, d *driver, all map[string]T, id string) error {
	t, err := get[T](ctx, d.client, id, nil)
	switch {
	case gone(err), d.outside(id) && refused(err, http.StatusForbidden):
		return nil
	case err != nil:
		return err
	}
	all[strings.ToLower(id)] = t
	return nil
}

// outside reports whether an id is of another resource group: no list of the driver's has it.
func (d *driver) outside(id string) bool {
	return !strings.HasPrefix(strings.ToLower(id), strings.ToLower("/subscriptions/"+d.subscription+"/resourceGroups/"+d.group+"/"))
}

// beyond adds to cards and addresses those of instances that are in other resource groups, as a look finds them there.
func (d *driver) beyond(ctx context.Context, found []instance, cards map[string]card, addresses map[string]address) error {
	public := func(a ipConfiguration) bool { return a.Properties.Public != nil && d.outside(a.Properties.Public.ID) }
	away := func(c cardRef) bool {
		return d.outside(c.ID) || slices.ContainsFunc(cards[strings.ToLower(c.ID)].Properties.Addresses, public)
	}
	var abroad []instance
	for _, i := range found {
		if d.ours(i.thing) && slices.ContainsFunc(i.cards(), away) {
			abroad = append(abroad, i)
		}
	}
	const most = 8 // side by side
	var mu sync.Mutex
	g, side := beside.WithContext(ctx)
	g.SetLimit(most)
	for _, i := range abroad {
		g.Go(func() error {
			c, a, err := d.connections(side, []instance{i})
			mu.Lock()
			defer mu.Unlock()
			maps.Copy(cards, c)
			maps.Copy(addresses, a)
			return err
		})
	}
	return g.Wait()
}

// every lists the instances of the cluster, and what is left of some: five lists side by side, whatever the number of instances, and a
// look at each that failed, where that is not told.
func (d *driver) every(ctx context.Context) ([]provider.Instance, error) {
	var (
		found     []instance
		views     map[string]*view
		cards     []card
		addresses []address
		disks     []disk
	)
	g, side := beside.WithContext(ctx)
	g.Go(func() (err error) { found, err = d.listed(side); return err })
	g.Go(func() (err error) { views, err = d.views(side); return err })
	g.Go(func() (err error) { cards, err = things[card](side, d, cardKind); return err })
	g.Go(func() (err error) { addresses, err = things[address](side, d, addressKind); return err })
	g.Go(func() (err error) { disks, err = things[disk](side, d, diskKind); return d.unlessHiddenOf(disks, err) })
	if err := g.Wait(); err != nil {
		return nil, err
	}
	byCard, byAddress, tokens := map[string]card{}, map[string]address{}, map[string]bool{}
	for _, c := range cards {
		byCard[strings.ToLower(c.ID)] = c
	}
	for _, a := range addresses {
		byAddress[strings.ToLower(a.ID)] = a
	}
	for k := range found {
		found[k].Properties.View = views[strings.ToLower(found[k].ID)]
	}
	found, err := d.failures(ctx, found)
	if err != nil {
		return nil, err
	}
	if err := d.beyond(ctx, found, byCard, byAddress); err != nil {
		return nil, err
	}
	var all []provider.Instance
	for _, i := range found {
		if !d.ours(i.thing) {
			continue
		}
		if !copied(i.thing, i.called()) { // a copy has nothing of what is the original's
			tokens[i.tag(tagToken)] = true
		}
		all = append(all, d.view(i, byCard, byAddress))
	}
	left := d.leftovers(cards, addresses, disks)
	left = slices.DeleteFunc(left, func(in provider.Instance) bool { return in.Token != "" && tokens[in.Token] })
	return append(all, left...), nil
}

// things lists what there is of a kind in the resource group and the location.
func things[T interface{ told() bool }](ctx context.Context, d *driver, kind string) ([]T, error) {
	found, err := all[T](ctx, d.client, ask{method: http.MethodGet, id: strings.TrimSuffix(d.id(kind, ""), "/")})
	if err != nil {
		return nil, err
	}
	for _, t := range found {
		if !t.told() {
			return nil, errStrange
		}
	}
	return found, nil
}
