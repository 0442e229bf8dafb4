// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/snapshot"
)

// lead is what leads to an account.
type lead struct{ namespace, clusterID, virtualIPs, spec string }

// opening is an account that was opened, or why it was not.
type opening struct {
	account
	err error
}

// leadsOf returns what leads to the accounts that are asked about, once each.
func leadsOf(s snapshot.Snapshot, sc snapshot.Scope, subjects map[types.UID]subject) (all []lead) {
	known := map[lead]bool{}
	add := func(by lead) {
		if !known[by] {
			known[by] = true
			all = append(all, by)
		}
	}
	virtualIPs := strings.Join(s.VirtualIPs(), "|")
	for _, l := range sc.Lookups {
		sub, ok := subjects[l.UID]
		if !ok {
			continue
		}
		by := lead{sub.object.GetNamespace(), s.ClusterID(sub.object), virtualIPs, string(sub.spec)}
		add(by)
		if by.clusterID = otherClusterID(s, sub); by.clusterID != "" {
			add(by)
		}
	}
	for _, q := range sc.Accounts {
		add(lead{q.Namespace, q.ClusterID, "", q.Spec})
	}
	return all
}

// open opens accounts beside one another: one whose cloud is silent holds up no other (R-L4).
func (i *invocation) open(ctx context.Context, leads []lead) {
	opened := make([]opening, len(leads))
	g := i.lanes()
	for n, by := range leads {
		g.Go(func() error {
			opened[n].account, opened[n].err = i.openOne(ctx, by)
			return nil
		})
	}
	_ = g.Wait() // no goroutine of it fails: errors are answers
	for n, by := range leads {
		i.opened[by] = opened[n]
	}
}

func (i *invocation) openOne(ctx context.Context, by lead) (account, error) {
	spec := json.RawMessage(by.spec)
	p, named, version, err := i.Clouds.named(ctx, by.namespace, by.clusterID, spec)
	if err != nil {
		return account{}, err
	}
	if by.virtualIPs != "" {
		named.VirtualIPs = strings.Split(by.virtualIPs, "|")
	}
	ctx, done, err := i.wait(ctx, account{Account: named}, opens)
	if err != nil {
		return account{}, err
	}
	a, err := i.Clouds.opened(ctx, p, named, version)
	done(err)
	if err == nil {
		a.tags = tagsOf(a, spec)
	}
	return a, err
}

// account opens the account that a providerSpec names. In one observation this happens once for all that have the same
// spec, as the Machines of a set do.
func (i *invocation) account(ctx context.Context, namespace, clusterID string, spec json.RawMessage, virtualIPs ...string) (account, error) {
	by := lead{namespace, clusterID, strings.Join(virtualIPs, "|"), string(spec)}
	if _, tried := i.opened[by]; !tried {
		i.open(ctx, []lead{by})
	}
	o := i.opened[by]
	if o.err == nil {
		i.accounts[o.id()] = o.account
	}
	return o.account, o.err
}
