// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// How instances are now, whether they have power above all, no list of a resource group tells. There is a list of the subscription that
// does, which credentials for one group may not be allowed to read. Then nobody is told the power of the one instance either: what is
// written about a Machine would change with whoever asked. While nobody knows, what is on record of it stays. Of one whose latest change
// failed everybody asks that instance itself, in lists and looks alike: whether it runs, and whether it will, decides about its Machine.

const (
	// deniedFor is how long nobody asks again for what was denied, or did not come.
	deniedFor = 10 * time.Minute
	// doubtFor is how long nobody asks again for what failed, unless Azure says when; and how long nothing is removed because no power of
	// it is told.
	doubtFor = time.Minute
	// viewsFor is how long a list of all that a subscription has is waited for: where it has too much the others must not suffer by it.
	viewsFor = 4 * time.Second
)

// states remembers whether the list may be read. Losing it costs a call.
type states struct {
	mu      sync.Mutex
	may     bool
	until   time.Time        // it may not, or nobody knows
	doubted bool             // nobody knows
	last    map[string]*view // what was told
	at      time.Time        // when
}

// known returns what was found out, and whether anything was.
func (s *states) known() (may, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.may, s.may || time.Now().Before(s.until)
}

// doubt reports whether of an instance whose power is not told now it may be in a while: where the list may be read, or nobody knows that.
func (s *states) doubt() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.doubted || s.may
}

// keep remembers what was told now.
func (s *states) keep(views map[string]*view) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.may, s.doubted, s.last, s.at = true, false, views, time.Now()
}

// withhold remembers for a while that nothing is told.
func (s *states) withhold(d time.Duration, doubted bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.may, s.doubted, s.until = false, doubted, time.Now().Add(d)
}

// kept returns what was told not long ago, or nil.
func (s *states) kept() map[string]*view {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.at) > deniedFor {
		return nil
	}
	return s.last
}

// views returns how instances are now, by id in small letters; none if nobody tells. Whatever becomes of this list costs nobody anything
// else: what was told not long ago holds, else nobody knows for a while.
func (d *driver) views(ctx context.Context) (map[string]*view, error) {
	if may, known := d.states.known(); known && !may {
		return nil, nil
	}
	if err := d.logins.ready(ctx); err != nil { // which takes none of the time that the list has
		return nil, err
	}
	short, cancel := context.WithTimeout(ctx, viewsFor)
	defer cancel()
	found, err := all[instance](short, d.client, ask{method: http.MethodGet, id: d.statesID(), query: map[string]string{"statusOnly": "true"}})
	if err == nil {
		views := make(map[string]*view, len(found))
		for _, i := range found {
			views[strings.ToLower(i.ID)] = i.Properties.View
		}
		d.states.keep(views)
		return views, nil
	}
	if ctx.Err() != nil { // that time was the caller's
		return nil, ctx.Err()
	}
	code, after := meant(err)
	if late := short.Err() != nil; late || code == provider.Denied && refused(err, http.StatusForbidden) {
		d.states.withhold(deniedFor, false)
		return nil, nil
	}
	if last := d.states.kept(); last != nil {
		return last, nil
	}
	d.states.withhold(max(after, doubtFor), true)
	return nil, nil
}

// statesID is the list of all instances that a subscription has.
func (c *client) statesID() string {
	return "/subscriptions/" + c.subscription + "/providers/" + instanceKind
}

// failures looks at each instance of ours whose latest change failed and that views tell nothing of. One that is gone is listed no more.
func (d *driver) failures(ctx context.Context, found []instance) ([]instance, error) {
	const most = 8 // side by side
	absent := make([]bool, len(found))
	g, side := beside.WithContext(ctx)
	g.SetLimit(most)
	for k, i := range found {
		if i.Properties.State != failed || i.Properties.View != nil || !d.ours(i.thing) {
			continue
		}
		g.Go(func() error {
			now, err := d.at(side, i.ID)
			if absent[k] = gone(err); absent[k] {
				return nil
			}
			found[k] = now
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var all []instance
	for k, i := range found {
		if !absent[k] {
			all = append(all, i)
		}
	}
	return d.shown(ctx, all)
}

// shown leaves out of instances what lists do not show either.
func (d *driver) shown(ctx context.Context, all []instance) ([]instance, error) {
	if len(all) == 0 {
		return all, nil
	}
	may, known := d.states.known()
	if !known {
		if _, err := d.views(ctx); err != nil {
			return nil, err
		}
		may, _ = d.states.known()
	}
	if !may {
		for k := range all {
			if all[k].Properties.State != failed {
				all[k].Properties.View = nil
			}
		}
	}
	return all, nil
}
