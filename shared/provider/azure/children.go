// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
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

// made reports whether the driver made a child for a Machine, as far as its tags and its name say. What people want kept is nobody's, and
// so is what carries a copy of tags.
func (d *driver) made(c child) bool {
	of, name := c.tag(tagMachine), c.called()
	if !d.ours(c.thing) || !d.here(c.thing) || c.tag(tagUID) == "" || of == "" {
		return false
	}
	switch c.kind {
	case cardKind:
		return strings.EqualFold(name, cardName(of))
	case addressKind:
		return strings.EqualFold(name, addressName(of))
	}
	if len(name) <= len(of) || !strings.EqualFold(name[:len(of)+1], of+"_") {
		return false
	}
	kept := strings.Fields(c.tag(tagKept))
	return !slices.ContainsFunc(kept, func(suffix string) bool { return strings.EqualFold(suffix, name[len(of)+1:]) })
}

// meansChild reports whether r names a child.
func (d *driver) meansChild(r provider.Ref, c child) bool {
	switch {
	case !d.made(c), r.Attempt && c.tag(tagToken) != r.Token:
		return false
	case r.UID == "": // what is used again since somebody called it a leftover is none
		return c.user == "" && strings.EqualFold(r.ID, c.name())
	}
	return c.tag(tagUID) == string(r.UID)
}

// leftovers are the children of the cluster that nothing uses.
func (d *driver) leftovers(cards []card, addresses []address, disks []disk) (all []provider.Instance) {
	for _, c := range children(cards, addresses, disks) {
		if c.user != "" || !d.made(c) {
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

// childrenOf returns the children that r names, disks first, then cards, then addresses. Those of a Machine are asked for by their names,
// which never lags; where nobody says how it is called, and of a leftover, by lists.
func (d *driver) childrenOf(ctx context.Context, r provider.Ref) ([]child, error) {
	var (
		cards     []card
		addresses []address
		disks     []disk
	)
	g, side := beside.WithContext(ctx)
	if nameable.MatchString(r.Name) && r.UID != "" {
		g.Go(func() (err error) {
			disks, err = one[disk](side, d, r, d.id(diskKind, systemDisk(r.Name)))
			return unlessHidden(err)
		})
		g.Go(func() (err error) { cards, err = one[card](side, d, r, d.id(cardKind, cardName(r.Name))); return err })
		g.Go(func() (err error) {
			addresses, err = one[address](side, d, r, d.id(addressKind, addressName(r.Name)))
			return err
		})
	} else {
		g.Go(func() (err error) { disks, err = many[disk](side, d, r, diskKind); return unlessHidden(err) })
		g.Go(func() (err error) { cards, err = many[card](side, d, r, cardKind); return err })
		g.Go(func() (err error) { addresses, err = many[address](side, d, r, addressKind); return err })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(children(cards, addresses, disks), func(c child) bool { return !d.meansChild(r, c) }), nil
}

// unlessHidden returns an error about disks unless they may not be read, as with the rights that OpenShift asks for: those go
// along with their instances, and one that outlives its own is found by who may.
func unlessHidden(err error) error {
	if refused(err, http.StatusForbidden) {
		return nil
	}
	return err
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
