// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
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

// led is a lookup with what leads to its account, and to the same account under the cluster's other id, or nothing.
type led struct {
	snapshot.Lookup
	by, other lead
}

// visit is what is asked of one account, and what leads to it.
type visit struct {
	leads   []lead
	lookups []led
	sweeps  []snapshot.AccountQuery
}

func leadOfSweep(q snapshot.AccountQuery) lead { return lead{q.Namespace, q.ClusterID, "", q.Spec} }

// ledBy returns lookups with what leads to their accounts. Those about nobody are answered.
func ledBy(s snapshot.Snapshot, lookups []snapshot.Lookup, subjects map[types.UID]subject, answer func(types.UID, snapshot.Cloud)) []led {
	all := make([]led, 0, len(lookups))
	virtualIPs := strings.Join(s.VirtualIPs(), "|")
	for _, l := range lookups {
		sub, known := subjects[l.UID]
		if !known {
			answer(l.UID, snapshot.Cloud{Err: refusal(provider.Errorf(provider.Unknown, "no object with UID %s", l.UID))})
			continue
		}
		by := led{Lookup: l, by: lead{sub.object.GetNamespace(), s.ClusterID(sub.object), virtualIPs, string(sub.spec)}}
		if m, ok := sub.object.(*machine.Machine); ok {
			if id := s.OtherClusterID(m); id != "" {
				by.other = by.by
				by.other.clusterID = id
			}
		}
		all = append(all, by)
	}
	return all
}

// leadsOf returns what leads to the accounts that are asked about, once each.
func leadsOf(lookups []led, sweeps []snapshot.AccountQuery) (all []lead) {
	known := map[lead]bool{{}: true}
	add := func(by lead) {
		if !known[by] {
			known[by] = true
			all = append(all, by)
		}
	}
	for _, l := range lookups {
		add(l.by)
		add(l.other)
	}
	for _, q := range sweeps {
		add(leadOfSweep(q))
	}
	return all
}

// name finds out which accounts leads name. No cloud is asked.
func (i *invocation) name(ctx context.Context, leads []lead) {
	named := make([]opening, len(leads))
	g, secrets := i.lanes(maxParallel), i.Clouds.secrets.once()
	for n, by := range leads {
		g.Go(func() error {
			o := &named[n]
			o.provider, o.Account, o.version, o.err = i.Clouds.named(ctx, secrets, by.namespace, by.clusterID, json.RawMessage(by.spec))
			if by.virtualIPs != "" {
				o.VirtualIPs = strings.Split(by.virtualIPs, "|")
			}
			o.ClusterUID = i.mark
			return nil
		})
	}
	_ = g.Wait() // no goroutine of it fails: errors are answers
	for n, by := range leads {
		i.opened[by] = &named[n]
	}
}

// visits returns what is asked of each account, by its key; what leads to none is under "".
func (i *invocation) visits(leads []lead, lookups []led, sweeps []snapshot.AccountQuery) map[string]*visit {
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
	for _, by := range leads {
		v := of(by)
		v.leads = append(v.leads, by)
	}
	for _, l := range lookups {
		v := of(l.by)
		v.lookups = append(v.lookups, l)
	}
	for _, q := range sweeps {
		v := of(leadOfSweep(q))
		v.sweeps = append(v.sweeps, q)
	}
	return all
}

// visit asks one account everything, in lanes of its own: one that is silent holds up no other (R-L4). It returns what sweeps saw.
func (i *invocation) visit(ctx context.Context, v *visit, subjects map[types.UID]subject, answer func(types.UID, snapshot.Cloud)) map[string]snapshot.Account {
	i.open(ctx, v.leads)
	g := i.lanes(maxParallel)
	bulk, single := i.sorted(v.lookups, answer)
	for _, id := range slices.Sorted(maps.Keys(bulk)) { // first: most is answered by them
		g.Go(func() error {
			i.list(ctx, bulk[id], subjects, answer)
			return nil
		})
	}
	if len(single) > maxParallel { // some may be waited for in vain each time (R-L4)
		single = anyFirst(single, i.order())
		sortByWait(single, &i.looking, func(l listed) types.UID { return l.UID })
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
				before, listed := i.seen.Accounts[q.Key]
				seen[n].Later = seen[n].Err != nil && listed && before.Err == nil
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
	a, open := i.Clouds.standing(o.Account, o.version)
	if !open { // it is waited for
		ctx, done, err := i.wait(ctx, o.account, "open")
		if err != nil {
			return o.account, err
		}
		defer done()
		if a, err = i.Clouds.opened(ctx, o.provider, o.Account, o.version); err != nil {
			return o.account, err
		}
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
