// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"net/http"
	"strings"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// remove takes the next step of a removal and reports whether nothing is there: first the instance goes, and takes along what hangs on
// it; then, if anything is left, disks and network interfaces, and at last public addresses, which those hold (SPEC E40).
func (d *driver) remove(ctx context.Context, r provider.Ref) (none bool, err error) {
	found, err := d.named(ctx, r)
	if err != nil {
		return false, err
	}
	for _, i := range found {
		if err := d.end(ctx, i); err != nil {
			return false, err
		}
	}
	if len(found) > 0 {
		return false, nil
	}
	left, err := d.childrenOf(ctx, r)
	if err != nil {
		return false, err
	}
	return d.clear(ctx, r, left)
}

// end begins the removal of an instance.
func (d *driver) end(ctx context.Context, i instance) error {
	if i.Properties.State == deleting {
		return nil
	}
	if said, err := d.takeAlong(ctx, i); said || err != nil {
		return err
	}
	return d.drop(ctx, i.ID)
}

// clear begins the removal of what is left, and reports whether there is nothing of it. An address that a network interface holds goes
// after that.
func (d *driver) clear(ctx context.Context, r provider.Ref, left []child) (none bool, err error) {
	var free []child
	for _, c := range left {
		used, ended, err := d.used(ctx, r, c)
		if ended || err != nil {
			return false, err
		}
		if !used {
			free = append(free, c)
		}
	}
	for _, c := range free {
		if (c.kind == addressKind) != (free[0].kind == addressKind) { // they are in order
			break
		}
		if err := d.drop(ctx, c.ID); err != nil {
			return false, err
		}
	}
	return len(free) == 0, nil
}

// used reports whether an instance uses a child. One that no list shows yet, and that r means, ends.
func (d *driver) used(ctx context.Context, r provider.Ref, c child) (used, ended bool, err error) {
	if c.user == "" || c.kind == addressKind {
		return false, false, nil
	}
	i, err := d.at(ctx, c.user)
	switch {
	case gone(err):
		return false, false, nil
	case err != nil:
		return true, false, err
	case d.means(r, i):
		return true, true, d.end(ctx, i)
	}
	return true, false, nil
}

// takeAlong lets an instance that another system made take its disk and its network interfaces along when it goes, and reports whether
// that had to be said. Nobody could tell afterwards whose they were: they carry no Machine's tag.
func (d *driver) takeAlong(ctx context.Context, i instance) (said bool, err error) {
	if i.tag(tagUID) != "" || i.Properties.State != succeeded || i.Properties.Storage == nil || i.Properties.Storage.OS == nil {
		return false, nil
	}
	next := instanceProperties{}
	if boot := i.Properties.Storage.OS; !strings.EqualFold(boot.Delete, remove) && boot.Local == nil {
		next.Storage = &storage{OS: &osDisk{Delete: remove}}
	}
	missing := false
	var cards []cardRef
	for k, c := range i.cards() {
		p := cardReference{Primary: k == 0}
		if c.Properties != nil {
			p = *c.Properties
		}
		missing = missing || !strings.EqualFold(p.Delete, remove)
		p.Delete = remove
		cards = append(cards, cardRef{c.ID, &p})
	}
	if missing {
		next.Network = &network{cards}
	}
	if next.Storage == nil && next.Network == nil {
		return false, nil
	}
	return true, d.do(ctx, ask{method: http.MethodPatch, id: i.ID, body: map[string]any{"properties": next}}, nil)
}
