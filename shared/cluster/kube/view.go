// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

const (
	// keptPage is how many objects one request returns of a list that may be kept: with fewer, 150,000 Pods take too many.
	// What one request returns is not kept.
	keptPage = 2000
	// deniedFor is how long a list is read anew each time after the server denied a watch, or did not answer one in time.
	deniedFor = time.Minute
	// keptFor is how long a list is kept of which the server says nothing: six scans, and hardly longer than it takes to stop all
	// API servers, restore the storage, and start them. Of a revision that has come again by then nothing else tells.
	keptFor = time.Minute
)

// view is a list that is kept, so that the next one costs what has changed since. What it answers is no less fresh than a
// list: the server says first at which revision it is, then everything that happened until then is read from a watch.
// Losing it costs the requests of a list. One invocation at a time asks it: [Cluster.lists] sees to that.
//
//	nothing ── list, page by page ─▶ loading ── last page ─▶ kept ── watch until the server's revision ─▶ kept
//	   ▲                                └── out of time: the next invocation goes on ──┘
//	   └── whatever goes wrong, expired revisions first ──┘
type view struct {
	namespace string
	page      int // objects of one request
	fewest    int // a shorter list is not kept

	all     []plan.Object // sorted by namespace and name, never changed: the next revision has a list of its own
	version uint64        // the revision of all; zero: nothing is kept
	next    string        // where the next page begins; empty: all pages are here
	common  snapshot.Commons
	heard   time.Time // when the server last answered
	denied  time.Time // when the server last said that this account may not watch, or said nothing to a watch
}

// list returns the list as it is now, and the server's clock.
func (v *view) list(ctx context.Context, c *Cluster, r plan.Resource) ([]plan.Object, time.Time, error) {
	if time.Since(v.heard) >= keptFor {
		v.forget()
	}
	if v.version != 0 {
		date, err := v.follow(ctx, c, r)
		if err == nil || v.outOfTime(err) {
			return v.all, date, err
		}
		v.forget() // a watch proves nothing by failing: the list says what is true
	}
	var date time.Time
	var err error
	for range maxListings {
		if date, err = v.load(ctx, c, r); err == nil {
			break
		}
		if v.outOfTime(err) {
			return nil, date, err
		}
		v.forget()
		if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
			return nil, date, err
		}
	}
	all := v.all
	if len(all) < v.fewest || v.version == 0 || time.Since(v.denied) < deniedFor {
		v.forget()
	}
	return all, date, err
}

// follow brings the list up to date: it finishes loading, and reads what has changed.
func (v *view) follow(ctx context.Context, c *Cluster, r plan.Resource) (time.Time, error) {
	if v.next != "" {
		if date, err := v.load(ctx, c, r); err != nil {
			return date, err
		}
	}
	a, err := c.read(ctx, v.address(r), url.Values{"limit": {"1"}})
	if err != nil {
		return a.date, err
	}
	_, meta, err := a.page(r)
	if err != nil {
		return a.date, err
	}
	if a.date.IsZero() {
		return a.date, errDateless
	}
	now := version(meta.ResourceVersion)
	if v.heard = time.Now(); now < v.version { // or it says none
		return a.date, fmt.Errorf("the storage went back from revision %d to %d", v.version, now)
	}
	if now == v.version {
		return a.date, nil
	}
	changed, reached, err := c.changes(ctx, r, v.address(r), v.version, now)
	if apierrors.IsForbidden(err) || errors.Is(err, context.DeadlineExceeded) {
		v.denied = time.Now()
	}
	if err != nil {
		return a.date, err
	}
	for _, o := range changed {
		if o.now != nil {
			v.trim(o.now)
		}
	}
	v.all, v.version = merged(v.all, changed), reached
	return a.date, nil
}

// load reads the pages that are missing, all at the revision of the first. While it reads one, the server makes the next.
func (v *view) load(ctx context.Context, c *Cluster, r plan.Resource) (time.Time, error) {
	ctx, leave := context.WithCancel(ctx)
	defer leave() // a page that nobody waits for any more
	coming := v.begin(ctx, c, r, v.next)
	for {
		p := <-coming
		if p.err != nil {
			return p.date, p.err
		}
		early := p.next()
		if early != "" {
			coming = v.begin(ctx, c, r, early)
		}
		page, meta, err := p.page(r)
		if err == nil && p.date.IsZero() {
			err = errDateless
		}
		if err != nil {
			return p.date, err
		}
		for _, o := range page {
			v.trim(o)
		}
		v.all = append(v.all, page...)
		v.next, v.heard = meta.Continue, time.Now()
		if v.version == 0 {
			v.version = version(meta.ResourceVersion)
		}
		switch v.next {
		case "":
			slices.SortFunc(v.all, byName) // as it is already, but for names where one begins with another
			return p.date, nil
		case early:
		default: // it was not told before the page was read
			coming = v.begin(ctx, c, r, v.next)
		}
	}
}

// arrival is what became of a request for a page.
type arrival struct {
	answer
	err error
}

// begin asks for the page where next begins, and does not wait for it.
func (v *view) begin(ctx context.Context, c *Cluster, r plan.Resource, next string) <-chan arrival {
	query := url.Values{"limit": {strconv.Itoa(v.page)}}
	if next != "" {
		query.Set("continue", next)
	}
	coming := make(chan arrival, 1)
	go func() {
		a, err := c.read(ctx, v.address(r), query)
		coming <- arrival{a, err}
	}()
	return coming
}

// outOfTime reports whether err says that a page did not come in time, after others did of a revision from which the list can be followed.
func (v *view) outOfTime(err error) bool {
	return v.version != 0 && v.next != "" && errors.Is(err, context.DeadlineExceeded)
}

func (v *view) forget() {
	v.all, v.version, v.next, v.common = nil, 0, "", snapshot.Commons{}
}

func (v *view) trim(o plan.Object) {
	clean(o)
	v.common.Trim(o)
}

func (v *view) address(r plan.Resource) address {
	return address{group: r.Group, plural: r.Plural, namespace: v.namespace}
}

// version reads a resourceVersion as the number that it is (KEP-5504); zero if it is none.
func version(text string) uint64 {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// change is what became of one object; now is nil if it is gone.
type change struct{ was, now plan.Object }

func (x change) last() plan.Object {
	if x.now != nil {
		return x.now
	}
	return x.was
}

func byName(a, b plan.Object) int {
	return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
}

// merged returns a sorted list with the changes in it. Objects that did not change are not looked at, but for some.
func merged(all []plan.Object, changed map[name]change) []plan.Object {
	if len(changed) == 0 {
		return all
	}
	order := make([]change, 0, len(changed))
	for _, x := range changed {
		order = append(order, x)
	}
	slices.SortFunc(order, func(a, b change) int { return byName(a.last(), b.last()) })
	next := make([]plan.Object, 0, len(all)+len(order))
	for _, x := range order {
		at, found := slices.BinarySearchFunc(all, x.last(), byName)
		next = append(next, all[:at]...)
		if found {
			at++
		}
		if x.now != nil {
			next = append(next, x.now)
		}
		all = all[at:]
	}
	return append(next, all...)
}
