// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

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
		d.ended.note(i.Properties.VMID)
		return nil
	}
	if waits, err := d.takeAlong(ctx, i); waits || err != nil {
		return err
	}
	if err := d.drop(ctx, i.ID); err != nil {
		return err
	}
	d.ended.note(i.Properties.VMID)
	return nil
}

// endings are instances whose removal this process began, or saw: of them an answer that they are not there is believed at once. Losing it
// costs time.
type endings struct {
	mu  sync.Mutex
	ids map[string]time.Time
}

func (e *endings) note(id string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	maps.DeleteFunc(e.ids, func(_ string, at time.Time) bool { return time.Since(at) > horizon })
	if e.ids == nil {
		e.ids = map[string]time.Time{}
	}
	e.ids[strings.ToLower(id)] = time.Now()
}

// unseen reports whether the instance that r records may be so new that a read by its id does not lead to it: Azure looks for it in a copy
// of its own first, which lags. That of an attempt, or of one that is not over, is in its Progress.
func (d *driver) unseen(r provider.Ref) bool {
	id, recorded := r.ID, r.ProviderID != "" && !r.Attempt
	if p, err := provider.ProgressOf[progress](r); !recorded && err == nil {
		id, recorded = p.Instance, p.Instance != ""
	}
	d.ended.mu.Lock()
	defer d.ended.mu.Unlock()
	_, ended := d.ended.ids[strings.ToLower(id)]
	return r.UID != "" && recorded && !ended && r.Fresh(time.Now(), horizon)
}

// clear begins the removal of what is left, and reports whether there is nothing of it. An address that a network interface holds goes
// after that, and nothing while an instance may be getting it that no read shows yet.
func (d *driver) clear(ctx context.Context, r provider.Ref, left []child) (none bool, err error) {
	var free []child
	for _, c := range left {
		used, ended, err := d.used(ctx, r, c, free)
		if ended || err != nil {
			return false, err
		}
		if !used {
			free = append(free, c)
		}
	}
	if d.unseen(r) {
		return false, nil
	}
	held := slices.ContainsFunc(free, func(c child) bool { return c.kind == cardKind })
	var refusals []error
	for _, c := range free {
		if c.kind != addressKind || !held {
			refusals = append(refusals, d.drop(ctx, c.ID)) // which costs none of the others anything
		}
	}
	return len(free) == 0, errors.Join(refusals...)
}

// used reports whether an instance uses a child. One that no list shows yet, and that r means, ends. An address is used by what it hangs
// on, unless that is a network interface that goes too, or went.
func (d *driver) used(ctx context.Context, r provider.Ref, c child, free []child) (used, ended bool, err error) {
	if c.user == "" {
		return false, false, nil
	}
	if c.kind == addressKind {
		on, _, _ := strings.Cut(c.user, "/ipConfigurations/")
		if slices.ContainsFunc(free, func(f child) bool { return strings.EqualFold(f.ID, on) }) {
			return false, false, nil
		}
		if !strings.Contains(strings.ToLower(on), strings.ToLower("/"+cardKind+"/")) {
			return true, false, nil
		}
		of, err := get[card](ctx, d.client, on, nil)
		return !gone(err) && of.Properties.State != deleting, false, unlessGone(err)
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
// that is not so yet. Nobody could tell afterwards whose they were: they carry no Machine's tag. It goes once a read shows that it does,
// and not while it is changed, which a removal would cut short.
func (d *driver) takeAlong(ctx context.Context, i instance) (waits bool, err error) {
	if i.tag(tagUID) != "" || i.Properties.Storage == nil || i.Properties.Storage.OS == nil {
		return false, nil
	}
	if i.Properties.State == creating || i.Properties.State == updating {
		return true, nil
	}
	next := instanceProperties{}
	if boot := i.Properties.Storage.OS; !strings.EqualFold(boot.Delete, remove) && boot.Local == nil {
		disk := &osDisk{Name: boot.Name, Create: boot.Create, Delete: remove}
		if boot.Stored != nil {
			disk.Stored = &managedDisk{ID: boot.Stored.ID}
		}
		next.Storage = &storage{OS: disk}
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
