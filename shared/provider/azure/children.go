// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// child is a card, a public address or a disk that belongs to a Machine's instance.
type child struct {
	thing
	kind    string
	guid    string // Azure's own id of it: another one of the same name has another
	created time.Time
	user    string // the id of what uses it; empty: nothing
}

// name returns what the API knows it by, and that it is this very one.
func (c child) name() string { return c.kind + "/" + c.called() + "/" + strings.ToLower(c.guid) }

func childOfCard(c card) child {
	return child{thing: c.thing, kind: cardKind, guid: c.Properties.GUID, user: c.Properties.Instance.id()}
}

func childOfAddress(a address) child {
	return child{thing: a.thing, kind: addressKind, guid: a.Properties.GUID, user: a.Properties.Of.id()}
}

func childOfDisk(k disk) child {
	return child{thing: k.thing, kind: diskKind, guid: k.Properties.GUID, created: moment(k.Properties.Created), user: k.Owner}
}

// made reports whether the driver made a child for a Machine, as far as its tags and its name say, and whether it is a disk that people
// want kept: that is nobody's leftover. Nor is what carries a copy of tags: a disk is known by its whole name, which a tag says.
func (d *driver) made(c child) (made, kept bool) {
	of, name := c.tag(tagMachine), c.called()
	if !d.ours(c.thing) || !d.here(c.thing) || c.tag(tagUID) == "" || of == "" {
		return false, false
	}
	is := func(suffix string) bool { return strings.EqualFold(name, of+"_"+suffix) }
	switch c.kind {
	case cardKind:
		return strings.EqualFold(name, cardName(of)), false
	case addressKind:
		return strings.EqualFold(name, addressName(of)), false
	}
	kept = slices.ContainsFunc(strings.Fields(c.tag(tagKept)), is)
	return !kept && (strings.EqualFold(name, systemDisk(of)) || slices.ContainsFunc(strings.Fields(c.tag(tagDisks)), is)), kept
}

// meansChild reports whether r names a child. A disk that is to be kept outlives its Machine, and not the attempt that came to nothing:
// the next one makes it anew, under the same name.
func (d *driver) meansChild(r provider.Ref, c child) bool {
	made, kept := d.made(c)
	switch {
	case !made && !(kept && r.Attempt), r.Attempt && c.tag(tagToken) != r.Token:
		return false
	case r.UID == "": // what is used again since somebody called it a leftover is none
		return c.user == "" && strings.EqualFold(r.ID, c.name())
	}
	return c.tag(tagUID) == string(r.UID)
}

// leftovers are the children of the cluster that nothing uses.
func (d *driver) leftovers(cards []card, addresses []address, disks []disk) (all []provider.Instance) {
	for _, c := range children(cards, addresses, disks) {
		if made, _ := d.made(c); c.user != "" || !made {
			continue
		}
		all = append(all, provider.Instance{
			ID: c.name(), UID: types.UID(c.tag(tagUID)), ClusterUID: types.UID(c.tag(tagMark)), Token: c.tag(tagToken), Name: c.called(),
			Region: d.location, Created: c.created, Child: true,
		})
	}
	return all
}

func children(cards []card, addresses []address, disks []disk) (all []child) {
	for _, k := range disks {
		all = append(all, childOfDisk(k))
	}
	for _, c := range cards {
		all = append(all, childOfCard(c))
	}
	for _, a := range addresses {
		all = append(all, childOfAddress(a))
	}
	return all
}

// leftover reports whether an id is that of a child, as lists tell it, whose name is no Machine's.
func leftover(id string) bool { return strings.Contains(id, "/") }

// childrenOf returns the children that r names, disks first, then cards, then addresses. Those of a Machine are asked for by their names,
// and its further disks, which its spec names, by what a list leads to; where nobody says how it is called, and of a leftover, by lists.
func (d *driver) childrenOf(ctx context.Context, r provider.Ref) ([]child, error) {
	var (
		cards     []card
		addresses []address
		disks     []disk
	)
	g, side := beside.WithContext(ctx)
	if nameable.MatchString(r.Name) && r.UID != "" && !leftover(r.ID) {
		g.Go(func() (err error) { disks, err = d.disksOf(side, r); return d.unlessHidden(err) })
		g.Go(func() (err error) { cards, err = one[card](side, d, r, d.id(cardKind, cardName(r.Name))); return err })
		g.Go(func() (err error) {
			addresses, err = one[address](side, d, r, d.id(addressKind, addressName(r.Name)))
			return err
		})
	} else {
		g.Go(func() (err error) { disks, err = many[disk](side, d, r, diskKind); return d.unlessHiddenOf(disks, err) })
		g.Go(func() (err error) { cards, err = many[card](side, d, r, cardKind); return err })
		g.Go(func() (err error) { addresses, err = many[address](side, d, r, addressKind); return err })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(children(cards, addresses, disks), func(c child) bool { return !d.meansChild(r, c) }), nil
}

// disksOf returns the disk that a Machine's instance boots from, and those of its further ones that a list leads to and that are there.
func (d *driver) disksOf(ctx context.Context, r provider.Ref) ([]disk, error) {
	all, err := one[disk](ctx, d, r, d.id(diskKind, systemDisk(r.Name)))
	if err != nil {
		return nil, err
	}
	listed, err := many[disk](ctx, d, r, diskKind)
	if err != nil {
		return nil, err
	}
	for _, k := range listed {
		if strings.EqualFold(k.called(), systemDisk(r.Name)) || !d.meansChild(r, childOfDisk(k)) {
			continue
		}
		there, err := one[disk](ctx, d, r, k.ID)
		if err != nil {
			return nil, err
		}
		all = append(all, there...)
	}
	return all, nil
}

// unlessHidden returns an error about disks unless they may not be read, as with the rights that OpenShift asks for: those go
// along with their instances. Who could read them before has lost a right, which says nothing about disks.
func (d *driver) unlessHidden(err error) error {
	if err == nil {
		d.disks.Store(true)
		return nil
	}
	if r, ok := errors.AsType[*refusal](err); ok && r.status == http.StatusForbidden && r.code == "AuthorizationFailed" && !d.disks.Load() {
		return nil
	}
	return err
}

// unlessHiddenOf is unlessHidden of a list. An empty one is no sign of a right: what may not be read Azure leaves out of lists.
func (d *driver) unlessHiddenOf(listed []disk, err error) error {
	if err == nil && len(listed) == 0 {
		return nil
	}
	return d.unlessHidden(err)
}

// one reads a child by its name.
func one[T interface{ told() bool }](ctx context.Context, d *driver, r provider.Ref, id string) ([]T, error) {
	t, err := get[T](ctx, d.client, id, nil)
	if gone(err) || groupless(err) && d.records(r) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return []T{t}, nil
}

// many reads all of a kind.
func many[T interface{ told() bool }](ctx context.Context, d *driver, r provider.Ref, kind string) ([]T, error) {
	all, err := things[T](ctx, d, kind)
	if groupless(err) && d.records(r) {
		return nil, nil
	}
	return all, err
}
