// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// lead is what leads to an account.
type lead struct{ namespace, clusterID, virtualIPs, spec string }

// opening is the account that a lead names, and how opening it went.
type opening struct {
	account
	provider provider.Provider
	version  string // of its credentials
	err      error
}

// visit is what is asked of one account, and what leads to it.
type visit struct {
	leads   []lead
	lookups []snapshot.Lookup
	sweeps  []snapshot.AccountQuery
}

// leadOf returns what leads to the account of a subject, for one of the cluster's ids.
func leadOf(s snapshot.Snapshot, sub subject, clusterID string) lead {
	return lead{sub.object.GetNamespace(), clusterID, strings.Join(s.VirtualIPs(), "|"), string(sub.spec)}
}

func leadOfSweep(q snapshot.AccountQuery) lead { return lead{q.Namespace, q.ClusterID, "", q.Spec} }

// leadsOf returns what leads to the accounts that are asked about, once each.
func leadsOf(s snapshot.Snapshot, sc snapshot.Scope, subjects map[types.UID]subject) (all []lead) {
	known := map[lead]bool{}
	add := func(by lead) {
		if !known[by] {
			known[by] = true
			all = append(all, by)
		}
	}
	for _, l := range sc.Lookups {
		sub, ok := subjects[l.UID]
		if !ok {
			continue
		}
		add(leadOf(s, sub, s.ClusterID(sub.object)))
		if id := otherClusterID(s, sub); id != "" {
			add(leadOf(s, sub, id))
		}
	}
	for _, q := range sc.Accounts {
		add(leadOfSweep(q))
	}
	return all
}

// name finds out which accounts leads name. No cloud is asked.
func (i *invocation) name(ctx context.Context, leads []lead) {
	named := make([]opening, len(leads))
	g := i.lanes(maxParallel)
	for n, by := range leads {
		g.Go(func() error {
			o := &named[n]
			o.provider, o.Account, o.version, o.err = i.Clouds.named(ctx, by.namespace, by.clusterID, json.RawMessage(by.spec))
			if by.virtualIPs != "" {
				o.VirtualIPs = strings.Split(by.virtualIPs, "|")
			}
			return nil
		})
	}
	_ = g.Wait() // no goroutine of it fails: errors are answers
	for n, by := range leads {
		i.opened[by] = &named[n]
	}
}

// visits returns what is asked of each account, by its key; what leads to none is under "". Lookups about nobody are answered.
func (i *invocation) visits(s snapshot.Snapshot, sc snapshot.Scope, subjects map[types.UID]subject, answer func(types.UID, snapshot.Cloud)) map[string]*visit {
	all := map[string]*visit{}
	of := func(by lead) *visit {
		key := ""
		if o := i.opened[by]; o.err == nil {
			key = o.Key()
		}
		if all[key] == nil {
			all[key] = &visit{}
		}
		return all[key]
	}
	for _, by := range leadsOf(s, sc, subjects) {
		v := of(by)
		v.leads = append(v.leads, by)
	}
	for _, l := range sc.Lookups {
		sub, known := subjects[l.UID]
		if !known {
			answer(l.UID, snapshot.Cloud{Err: refusal(provider.Errorf(provider.Unknown, "no object with UID %s", l.UID))})
			continue
		}
		v := of(leadOf(s, sub, s.ClusterID(sub.object)))
		v.lookups = append(v.lookups, l)
	}
	for _, q := range sc.Accounts {
		v := of(leadOfSweep(q))
		v.sweeps = append(v.sweeps, q)
	}
	return all
}

// visit asks one account everything, in lanes of its own: one that is silent holds up no other (R-L4). It returns what sweeps saw.
func (i *invocation) visit(ctx context.Context, s snapshot.Snapshot, v *visit, subjects map[types.UID]subject, answer func(types.UID, snapshot.Cloud)) map[string]snapshot.Account {
	i.open(ctx, v.leads)
	g := i.lanes(maxParallel)
	bulk, single := i.sorted(s, v.lookups, subjects, answer)
	for _, id := range slices.Sorted(maps.Keys(bulk)) { // first: most is answered by them
		g.Go(func() error {
			i.list(ctx, bulk[id], subjects, answer)
			return nil
		})
	}
	if len(single) > maxParallel { // some may be waited for in vain each time (R-L4)
		first := i.order()(len(single))
		single = append(single[first:], single[:first]...)
	}
	for _, l := range single {
		g.Go(func() error {
			answer(l.UID, i.askBoth(ctx, subjects[l.UID], l))
			return nil
		})
	}
	seen := make([]snapshot.Account, len(v.sweeps))
	for n, q := range v.sweeps {
		a, refused := i.swept(q)
		seen[n].Err = refused
		if refused == nil {
			g.Go(func() error {
				seen[n] = i.inventory(ctx, a)
				return nil
			})
		}
	}
	_ = g.Wait() // no goroutine of it fails: errors are answers
	swept := map[string]snapshot.Account{}
	for n, q := range v.sweeps {
		swept[q.Key] = seen[n]
	}
	return swept
}

// open opens what leads name.
func (i *invocation) open(ctx context.Context, leads []lead) {
	g := i.lanes(maxParallel)
	for _, by := range leads {
		o := i.opened[by]
		if o.err != nil {
			continue
		}
		g.Go(func() error {
			o.account, o.err = i.openOne(ctx, o, json.RawMessage(by.spec))
			return nil
		})
	}
	_ = g.Wait() // no goroutine of it fails: errors are answers
}

func (i *invocation) openOne(ctx context.Context, o *opening, spec json.RawMessage) (account, error) {
	ctx, done, err := i.wait(ctx, "open "+o.id())
	if err != nil {
		return o.account, err
	}
	defer done()
	a, err := i.Clouds.opened(ctx, o.provider, o.Account, o.version)
	if err != nil {
		return o.account, err
	}
	a.tags = tagsOf(a, spec)
	i.opening.Lock()
	defer i.opening.Unlock()
	i.accounts[a.id()] = a
	return a, nil
}

// account returns the account that a lead leads to.
func (i *invocation) account(by lead) (account, error) {
	o := i.opened[by]
	return o.account, o.err
}
