// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// mostCuts is how many times in a row our own time may be over before an instance was told of by itself, until that is the cloud's fault.
const mostCuts = 3

// askFor is how long one observation asks for instances by themselves, of one account: what a list does not show may be
// many, as all that another system made, and those who wait for an instance, or for its removal, need the rest of the time.
const askFor = 3 * time.Second

// rota remembers who had a turn, and in which order, so that who has waited longest comes first (R-L4). Losing it begins a new round.
type rota[K comparable] struct {
	once[K]
	now time.Time // a clock of turns: each is one nanosecond
}

// knownTurns is of how many turns at least a rota knows whose they were.
const knownTurns = 100_000

func (r *rota[K]) take(k K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(1)
	r.mark(k, r.now, knownTurns)
}

// sortByWait sorts all by who has waited longest; those who never had a turn keep their order.
func sortByWait[E any, K comparable](all []E, r *rota[K], key func(E) K) {
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.SortStableFunc(all, func(a, b E) int { return r.last[key(a)].Compare(r.last[key(b)]) })
}

// anyFirst returns all in their order, from anywhere on: whoever was never in a turn comes first in some process that begins (R-L4).
func anyFirst[E any](all []E, order func(n int) int) []E {
	first := order(max(1, len(all)))
	return slices.Concat(all[first:], all[:first])
}

// turns remembers whose instance was asked for by itself, so that everybody's turn comes, and who was cut off.
type turns struct {
	rota[types.UID]
	cuts map[types.UID]int // how many times in a row
}

// order sorts all by who has waited longest, and forgets of everybody else how often it was cut off.
func (t *turns) order(all []listed) {
	sortByWait(all, &t.rota, func(l listed) types.UID { return l.UID })
	t.mu.Lock()
	defer t.mu.Unlock()
	cuts := map[types.UID]int{}
	for _, l := range all {
		if n := t.cuts[l.UID]; n > 0 {
			cuts[l.UID] = n
		}
	}
	t.cuts = cuts
}

// excused reports whether a question that was cut off by our own time, or not, may wait for a later scan.
func (t *turns) excused(uid types.UID, cut bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !cut {
		delete(t.cuts, uid)
		return false
	}
	t.cuts[uid]++
	return t.cuts[uid] < mostCuts
}

// askInTurn asks for instances that a list does not show, several at a time: a list shows nothing that carries no tag at
// all, as the hosts that an installer gave to its Machines. So it does for those that go on without a list that did not come. Whose
// turn does not come is told so: that proves nothing.
func (i *invocation) askInTurn(ctx context.Context, a account, all []listed, subjects map[types.UID]subject, answer func(*machine.Machine, snapshot.Cloud)) {
	began := time.Now()
	a.turns.order(all)
	var mu sync.Mutex
	g := i.lanes(maxParallel)
	for _, l := range all {
		m, ok := subjects[l.UID].object.(*machine.Machine)
		if !ok {
			continue
		}
		c := cloudOf(l.account)
		tell := func() {
			mu.Lock()
			defer mu.Unlock()
			answer(m, c)
		}
		if time.Since(began) >= askFor || l.Alone && ctx.Err() != nil {
			c.Later = true
			tell()
			continue
		}
		a.turns.take(l.UID)
		g.Go(func() error {
			if l.Alone {
				c = i.askBoth(ctx, subjects[l.UID], l)
				tell()
				return nil
			}
			ctx, done, silent := i.wait(ctx, a, "find "+string(l.UID))
			if silent != nil {
				c.Later = true
				tell()
				return nil //nolint:nilerr // told by Later
			}
			found, err := a.driver.Find(ctx, refOf(m))
			i.Clouds.Metrics.Called("find", err)
			c.Found, c.Err = found, refusal(err)
			ended(ctx, a, m, &c)
			c.Later = a.turns.excused(l.UID, done() && c.Err != nil) && i.unchanged(subjects[l.UID], nil)
			tell()
			return nil
		})
	}
	_ = g.Wait() // no goroutine of it fails: errors are answers
}
