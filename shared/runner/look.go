// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// subject is a Machine, or a MachineSet, whose cloud somebody asked about.
type subject struct {
	object plan.Object
	spec   json.RawMessage
}

// look answers lookups and bulk lists into s. A cloud that does not answer is an answer too: Err, never absence.
func (i *invocation) look(ctx context.Context, s *snapshot.Snapshot, sc snapshot.Scope) {
	subjects := subjectsOf(*s)
	if s.Clouds == nil {
		s.Clouds, s.Accounts = map[types.UID]snapshot.Cloud{}, map[string]snapshot.Account{}
	}
	var mu sync.Mutex
	answer := func(uid types.UID, c snapshot.Cloud) { // also while others are being asked
		mu.Lock()
		defer mu.Unlock()
		s.Clouds[uid] = c
	}
	g := i.lanes()
	bulk := map[string][]listed{}
	for _, l := range sc.Lookups {
		sub, known := subjects[l.UID]
		if !known {
			answer(l.UID, snapshot.Cloud{Err: refusal(provider.Errorf(provider.Unknown, "no object with UID %s", l.UID))})
			continue
		}
		a, err := i.account(ctx, sub.object.GetNamespace(), s.ClusterID(sub.object), sub.spec, s.VirtualIPs()...)
		if err != nil {
			answer(l.UID, snapshot.Cloud{Err: refusal(err)})
			continue
		}
		if l.Bulk {
			bulk[a.Key()] = append(bulk[a.Key()], listed{l, a})
			continue
		}
		g.Go(func() error {
			answer(l.UID, i.ask(ctx, a, sub, l))
			return nil
		})
	}
	_ = g.Wait() // no goroutine of it fails: errors are answers
	for _, key := range slices.Sorted(maps.Keys(bulk)) {
		i.list(ctx, s, bulk[key], subjects)
	}
	for _, q := range sc.Accounts {
		i.inventory(ctx, s, q)
	}
	for _, l := range sc.Lookups {
		err := s.Clouds[l.UID].Err
		i.unfinished = i.unfinished || err != nil && !err.Code.Definite()
	}
}

// listed is a lookup that a bulk list answers, with the account that its spec leads to.
type listed struct {
	snapshot.Lookup
	account
}

// lead is what leads to an account.
type lead struct{ namespace, clusterID, virtualIPs, spec string }

// opening is an account that was opened, or why it was not.
type opening struct {
	account
	err error
}

// account opens the account that a providerSpec names. In one observation this happens once for all that have the same
// spec, as the Machines of a set do.
func (i *invocation) account(ctx context.Context, namespace, clusterID string, spec json.RawMessage, virtualIPs ...string) (account, error) {
	by := lead{namespace, clusterID, strings.Join(virtualIPs, "|"), string(spec)}
	o, ok := i.opened[by]
	if !ok {
		o.account, o.err = i.Clouds.account(ctx, namespace, clusterID, spec, virtualIPs...)
		if o.err == nil {
			o.tags = tagsOf(o.account, spec)
		}
		i.opened[by] = o
	}
	if o.err == nil {
		i.accounts[o.Key()] = o.account
	}
	return o.account, o.err
}

// ask looks up one Machine's instance, and what else was asked about it.
func (i *invocation) ask(ctx context.Context, a account, sub subject, l snapshot.Lookup) snapshot.Cloud {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c := cloudOf(a)
	if m, ok := sub.object.(*machine.Machine); ok && !l.Open {
		found, err := a.driver.Find(ctx, refOf(m))
		i.Clouds.Metrics.Called("find", err)
		c.Found, c.Err = found, refusal(err)
	}
	if l.Resolve && c.Err == nil {
		resolved, err := a.resolve(ctx, string(sub.spec))
		c.Resolved, c.Refused = resolved, refusal(err)
	}
	if l.Type && c.Err == nil {
		t, err := i.Clouds.instanceType(ctx, a, sub.spec)
		if err != nil {
			c.Refused = refusal(err)
		} else {
			c.Type = t
		}
	}
	if l.Stock && c.Err == nil {
		c.Stock, c.Err = i.stock(ctx, a, sub)
	}
	return c
}

// stock asks a cloud what it holds ready, or returns nil where it has no such thing.
func (i *invocation) stock(ctx context.Context, a account, sub subject) (*provider.Stock, *snapshot.Refusal) {
	if _, has := a.driver.Driver.(provider.Stocked); !has {
		return nil, nil
	}
	stock, err := a.driver.Stock(ctx, sub.spec)
	i.Clouds.Metrics.Called("stock", err)
	if err != nil {
		return nil, refusal(err)
	}
	return &stock, nil
}

// list answers many lookups of one account with one bulk list.
func (i *invocation) list(ctx context.Context, s *snapshot.Snapshot, lookups []listed, subjects map[types.UID]subject) {
	a := lookups[0].account
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all, err := a.driver.List(ctx)
	i.Clouds.Metrics.Called("list", err)
	byUID, byID := map[types.UID][]provider.Instance{}, map[string]provider.Instance{}
	for _, in := range all {
		if !in.Child {
			byUID[in.UID] = append(byUID[in.UID], in)
			byID[in.ProviderID] = in
		}
	}
	for _, l := range lookups {
		c := cloudOf(l.account)
		c.Found, c.Err = byUID[l.UID], refusal(err)
		if m, ok := subjects[l.UID].object.(*machine.Machine); ok && len(c.Found) == 0 && m.Spec.ProviderID != nil {
			if in, ok := byID[*m.Spec.ProviderID]; ok && in.UID == "" { // made by another system, which knows no such tag
				c.Found = []provider.Instance{in}
			} else if !ok && err == nil && m.DeletionTimestamp == nil {
				i.askAgain(ctx, a, m, &c)
			}
		}
		s.Clouds[l.UID] = c
	}
}

// askAgain asks for one instance that a list does not show: a list shows nothing that carries no tag at all, as the hosts
// that an installer gave to its Machines.
func (i *invocation) askAgain(ctx context.Context, a account, m *machine.Machine, c *snapshot.Cloud) {
	found, err := a.driver.Find(ctx, refOf(m))
	i.Clouds.Metrics.Called("find", err)
	c.Found, c.Err = found, refusal(err)
}

// inventory answers one account query.
func (i *invocation) inventory(ctx context.Context, s *snapshot.Snapshot, q snapshot.AccountQuery) {
	a, ok := i.accounts[q.Key]
	if !ok {
		var err error
		if a, err = i.account(ctx, q.Namespace, q.ClusterID, json.RawMessage(q.Spec)); err != nil {
			s.Accounts[q.Key] = snapshot.Account{Err: refusal(err)}
			return
		}
	}
	if a.Key() != q.Key { // the spec leads elsewhere by now: that tells nothing about this account
		s.Accounts[q.Key] = snapshot.Account{Err: refusal(provider.Errorf(provider.Invalid, "its spec leads to account %s", a.Key()))}
		return
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	all, err := a.driver.List(ctx)
	i.Clouds.Metrics.Called("list", err)
	s.Accounts[q.Key] = snapshot.Account{Horizon: a.driver.Horizon(), Instances: all, Err: refusal(err)}
}

// withDriver calls f with the driver of an account that this round's observation opened.
func (i *invocation) withDriver(key string, f func(*patient) (provider.Instance, error)) (provider.Instance, error) {
	a, ok := i.accounts[key]
	if !ok {
		return provider.Instance{}, provider.Errorf(provider.Unknown, "account %q was not observed", key)
	}
	return f(a.driver)
}

func cloudOf(a account) snapshot.Cloud {
	_, untokened := a.driver.Driver.(provider.Untokened)
	_, cycles := a.driver.Driver.(provider.PowerCycler)
	return snapshot.Cloud{Account: a.Key(), Source: a.source, Horizon: a.driver.Horizon(), Tokens: !untokened, Cycles: cycles, Tags: a.tags}
}

// tagsOf returns the tags that spec wants, of an account whose driver can change them. What is wrong with the spec is told
// where it is resolved.
func tagsOf(a account, spec json.RawMessage) map[string]string {
	updater, can := a.driver.Driver.(provider.Updater)
	if !can {
		return nil
	}
	tags, err := updater.Tags(spec)
	if err != nil {
		return nil
	}
	return tags
}

func refusal(err error) *snapshot.Refusal {
	if err == nil {
		return nil
	}
	r := &snapshot.Refusal{Code: provider.CodeOf(err), Message: err.Error()}
	if e, ok := errors.AsType[*provider.Error](err); ok {
		r.RetryAfter = e.RetryAfter
	}
	return r
}

func subjectsOf(s snapshot.Snapshot) map[types.UID]subject {
	subjects, known := map[types.UID]subject{}, specs{}
	for _, m := range s.Machines {
		subjects[m.UID] = subject{object: m, spec: known.filled(s, m)}
	}
	for _, set := range s.MachineSets {
		subjects[set.UID] = subject{object: set, spec: known.filled(s, set)}
	}
	return subjects
}

// refOf names the instance of m by everything that was recorded. An intent that cannot be read records nothing: the
// UID tag finds the instance.
func refOf(m *machine.Machine) provider.Ref {
	r := provider.Ref{UID: m.UID, Name: m.Name}
	if m.Spec.ProviderID != nil {
		r.ProviderID = *m.Spec.ProviderID
	}
	if intent, err := machine.ParseIntent(m); err == nil && intent != nil {
		r.ID, r.Token, r.Progress = intent.Instance, intent.Token, intent.Progress
	}
	return r
}
