// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

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

// look answers lookups and bulk lists into s, when it is its turn. A cloud that does not answer is an answer too: Err, never
// absence.
func (i *invocation) look(ctx context.Context, s *snapshot.Snapshot, sc snapshot.Scope) error {
	done, err := i.begin(ctx)
	if err != nil {
		return err
	}
	defer done()
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
	lookups := ledBy(*s, sc.Lookups, subjects, answer)
	i.asked = append(i.asked, lookups...)
	leads := leadsOf(lookups, sc.Accounts)
	i.name(ctx, leads)
	reading := time.Duration(0)
	if len(sc.Accounts) > 0 { // a sweep reads once more what it would remove
		reading = i.reading
	}
	room := i.room(ctx, reading)
	ctx, cancel := context.WithTimeout(ctx, room)
	defer cancel()
	i.looked = time.Now()
	visits := i.visits(leads, lookups, sc.Accounts)
	for key, v := range visits {
		if i.waits.took[key] > room {
			i.known(s, v, subjects)
		}
	}
	all := i.lanes(len(visits))
	for _, key := range slices.Sorted(maps.Keys(visits)) {
		all.Go(func() error {
			for key, seen := range i.visit(ctx, visits[key], subjects, answer) {
				mu.Lock()
				s.Accounts[key] = seen
				mu.Unlock()
			}
			return nil
		})
	}
	_ = all.Wait() // no goroutine of it fails: errors are answers
	for _, l := range sc.Lookups {
		err := s.Clouds[l.UID].Err
		i.unfinished = i.unfinished || err != nil && !err.Code.Definite()
	}
	return nil
}

// sorted returns those whose account's list answers them, by account, and the others. Where there is no account that is the answer.
func (i *invocation) sorted(all []led, answer func(types.UID, snapshot.Cloud)) (bulk map[string][]listed, single []listed) {
	bulk = map[string][]listed{}
	for _, l := range all {
		a, err := i.account(l.by)
		if err != nil {
			answer(l.UID, snapshot.Cloud{Err: refusal(err)})
			continue
		}
		found := listed{Lookup: l.Lookup, account: a}
		if l.other != (lead{}) {
			other, err := i.account(l.other)
			if found.hidden = err; err == nil {
				found.other = &other
			}
		}
		if l.Bulk {
			bulk[a.id()] = append(bulk[a.id()], found)
			continue
		}
		single = append(single, found)
	}
	return bulk, single
}

// listed is a lookup that a bulk list answers, with the account that its spec leads to.
type listed struct {
	snapshot.Lookup
	account
	other  *account // where it is looked for if it is not there, or nil
	hidden error    // why nobody can look there
}

// askBoth asks about one object, under the cluster's other id where there is nothing under the first.
func (i *invocation) askBoth(ctx context.Context, sub subject, l listed) snapshot.Cloud {
	c := i.ask(ctx, l.account, sub, l.Lookup)
	if l.other != nil && c.Err == nil && len(c.Found) == 0 {
		c = i.ask(ctx, *l.other, sub, l.Lookup)
	}
	if c.Err == nil && len(c.Found) == 0 {
		c.Err = refusal(l.hidden)
	}
	return c
}

// ask looks up one object, as long as it is waited for.
func (i *invocation) ask(ctx context.Context, a account, sub subject, l snapshot.Lookup) snapshot.Cloud {
	ctx, done, err := i.wait(ctx, a, "find "+string(l.UID))
	if err != nil {
		c := cloudOf(a)
		c.Err, c.Later = refusal(err), errors.Is(err, errCut) && i.unchanged(sub, nil)
		return c
	}
	if ctx.Err() == nil {
		i.looking.take(l.UID)
	}
	c := i.answered(ctx, a, sub, l)
	c.Later = done() && (c.Err != nil || c.Refused != nil) && i.unchanged(sub, nil)
	return c
}

// answered returns what the cloud says about one Machine's instance, and what else was asked about it.
func (i *invocation) answered(ctx context.Context, a account, sub subject, l snapshot.Lookup) snapshot.Cloud {
	c := cloudOf(a)
	m, isMachine := sub.object.(*machine.Machine)
	l.Open = l.Open || l.New && c.Tokens
	if isMachine && !l.Open {
		found, err := a.driver.Find(ctx, refOf(m))
		i.Clouds.Metrics.Called("find", err)
		if err == nil && len(found) == 0 && foreign(m) {
			r := refOf(m)
			r.UID = "" // whosever tag it carries
			found, err = a.driver.Find(ctx, r)
			i.Clouds.Metrics.Called("find", err)
		}
		c.Found, c.Err = found, refusal(err)
	}
	if isMachine && !l.Open && m.DeletionTimestamp == nil {
		ended(ctx, a, m, &c)
	}
	if isMachine && c.Err == nil {
		owner, err := a.driver.Identity(ctx)
		owned(&c, m, owner, err)
	}
	if c.Err == nil {
		i.askOfSpec(ctx, a, sub, l, &c)
	}
	return c
}

// askOfSpec adds to c what a lookup asks about the spec.
func (i *invocation) askOfSpec(ctx context.Context, a account, sub subject, l snapshot.Lookup, c *snapshot.Cloud) {
	if l.Resolve {
		resolved, err := a.resolve(ctx, string(sub.spec), time.Time{})
		c.Resolved, c.Refused = resolved, refusal(err)
	}
	if l.Type {
		c.Fresh = l.Fresh
		var since time.Time
		if l.Fresh {
			since = i.looked
		}
		t, err := i.Clouds.instanceType(ctx, a, sub.spec, since)
		if err != nil {
			c.Refused = refusal(err)
		} else {
			c.Type = t
		}
	}
	if l.Stock {
		c.Stock, c.Err = i.stock(ctx, a, sub)
	}
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

// owned tells in c which of the cloud's accounts was asked. Where m records one, and nobody can tell now whether it is this,
// what the cloud does not show proves nothing.
func owned(c *snapshot.Cloud, m *machine.Machine, owner string, err error) {
	c.Owner = owner
	if was := m.Annotations[machine.AnnotationCloudAccount]; err != nil && was != "" {
		c.Err = refusal(fmt.Errorf("whether the credentials still lead to account %s: %w", was, err))
	}
}

// foreign reports whether m records an instance that nothing says was made for it: it may carry another Machine's tag.
func foreign(m *machine.Machine) bool {
	intent, err := machine.ParseIntent(m)
	return machine.ProviderID(m) != "" && err == nil && !intent.Made(m)
}

// ended asks why a recorded instance that the cloud does not show is gone. That nobody says so is no obstacle.
func ended(ctx context.Context, a account, m *machine.Machine, c *snapshot.Cloud) {
	if c.Err != nil || len(c.Found) > 0 || machine.ProviderID(m) == "" {
		return
	}
	if why, err := a.driver.Ended(ctx, refOf(m)); err == nil {
		c.Ended = why
	}
}

// swept returns the account that an account query means.
func (i *invocation) swept(q snapshot.AccountQuery) (account, *snapshot.Refusal) {
	i.opening.Lock()
	defer i.opening.Unlock()
	a, ok := i.accounts[q.Key]
	if !ok {
		var err error
		if a, err = i.account(leadOfSweep(q)); err != nil {
			return account{}, refusal(err)
		}
	}
	if a.Key() != machine.SweptOf(q.Key, q.ClusterID) { // the spec leads elsewhere by now: that tells nothing about this account
		return account{}, refusal(provider.Errorf(provider.Invalid, "its spec leads to account %s", a.Key()))
	}
	i.accounts[q.Key] = a
	return a, nil
}

// inventory answers one account query.
func (i *invocation) inventory(ctx context.Context, a account) snapshot.Account {
	seen := i.listed(ctx, a)
	if seen.untold != nil {
		seen.owner = ""
	}
	return snapshot.Account{Owner: seen.owner, Insecure: a.insecure, Horizon: a.driver.Horizon(), Instances: seen.all, Err: refusal(seen.err)}
}

// withDriver calls f with the driver of an account that this round's observation opened.
func (i *invocation) withDriver(key, cluster string, f func(*patient) (provider.Instance, error)) (provider.Instance, error) {
	a, ok := i.accounts[key]
	if cluster != "" {
		a, ok = i.accounts[accountID(key, cluster)]
	}
	if !ok {
		return provider.Instance{}, provider.Errorf(provider.Unknown, "account %q was not observed", key)
	}
	return f(a.driver)
}

func cloudOf(a account) snapshot.Cloud {
	_, untokened := a.driver.Driver.(provider.Untokened)
	_, cycles := a.driver.Driver.(provider.PowerCycler)
	return snapshot.Cloud{Account: a.Key(), Cluster: a.ClusterID, Source: a.source, Horizon: a.driver.Horizon(), Tokens: !untokened, Cycles: cycles, Tags: a.tags}
}

// tagsOf returns the tags that spec wants, of an account whose driver can change them. What is wrong with the spec is told
// where it is resolved.
func tagsOf(a account, spec json.RawMessage) map[string]string {
	tags, err := a.driver.Tags(spec)
	if err != nil {
		return nil
	}
	return tags
}

func refusal(err error) *snapshot.Refusal {
	if err == nil {
		return nil
	}
	r := &snapshot.Refusal{Code: provider.CodeOf(err), Message: said(err)}
	if e, ok := errors.AsType[*provider.Error](err); ok {
		r.RetryAfter = e.RetryAfter
	}
	return r
}

func subjectsOf(s snapshot.Snapshot) map[types.UID]subject {
	subjects := make(map[types.UID]subject, len(s.Machines)+len(s.MachineSets))
	for _, m := range s.Machines {
		spec, _ := s.FilledSpec(m)
		subjects[m.UID] = subject{object: m, spec: spec}
	}
	for _, set := range s.MachineSets {
		spec, _ := s.FilledSpec(set)
		subjects[set.UID] = subject{object: set, spec: spec}
	}
	return subjects
}

// refOf names the instance of m by everything that was recorded. An intent that cannot be read records nothing: the
// UID tag finds the instance.
func refOf(m *machine.Machine) provider.Ref {
	r := provider.Ref{UID: machine.InstanceUID(m), Name: m.Name, ProviderID: machine.ProviderID(m)}
	if intent, err := machine.ParseIntent(m); err == nil && intent != nil {
		r.ID, r.Token, r.Progress = intent.Instance, intent.Token, intent.Progress
	}
	return r
}
