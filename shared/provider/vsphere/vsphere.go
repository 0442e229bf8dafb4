// SPDX-License-Identifier: Apache-2.0

// Package vsphere is the driver for clones of a template in a vCenter.
package vsphere

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/vmware/govmomi/vim25"

	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	// deadline bounds one call of the driver, however many requests it makes (RELIABILITY G6).
	deadline = 10 * time.Second
	// horizon covers the longest that a vCenter keeps an accepted clone before its instance shows (RELIABILITY 2b).
	horizon = 15 * time.Minute
)

// Provider returns the line for vCenters in the table of drivers. Addresses come from the pools of the API server; nil
// serves no pools.
func Provider(addresses *Addresses) provider.Provider {
	return provider.Provider{
		Name:  "vsphere",
		Kinds: []string{Kind},
		Account: func(spec json.RawMessage) (server, secret string, err error) {
			s, err := decode(spec)
			return s.Workspace.Server, s.CredentialsSecret.Name, err
		},
		InstanceType: instanceType,
		Open: func(ctx context.Context, a provider.Account) (provider.Driver, error) {
			return open(ctx, a, addresses)
		},
	}
}

// driver is one cluster's view of a vCenter.
type driver struct {
	account   provider.Account
	session   *session
	addresses *Addresses
	cluster   tagOfCluster
}

var (
	_ provider.Driver = (*driver)(nil)
	_ provider.Closer = (*driver)(nil)
)

func open(_ context.Context, a provider.Account, addresses *Addresses) (provider.Driver, error) {
	if a.ClusterID == "" {
		return nil, provider.Errorf(provider.Invalid, "the cluster has no id to mark its instances with")
	}
	s, err := newSession(a)
	if err != nil {
		return nil, err
	}
	return &driver{account: s.account, session: s, addresses: addresses}, nil
}

// call does one bounded step; every error gets a code.
func (d *driver) call(ctx context.Context, step func(context.Context, *vim25.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	defer d.session.stay.Enter(ctx)()
	c, err := d.session.connect(ctx)
	if err == nil {
		err = step(ctx, c)
	}
	if _, coded := errors.AsType[*provider.Error](err); err == nil || coded {
		return err
	}
	return d.session.coded(err)
}

// Resolve implements [provider.Driver]. Names become the vCenter's own references.
func (d *driver) Resolve(ctx context.Context, spec json.RawMessage) (resolved json.RawMessage, err error) {
	s, err := parse(spec)
	if err != nil {
		return nil, err
	}
	err = d.call(ctx, func(ctx context.Context, c *vim25.Client) error {
		req, err := d.resolve(ctx, c, s)
		if err == nil {
			resolved, err = json.Marshal(req)
		}
		return err
	})
	return resolved, err
}

// Create implements [provider.Driver].
func (d *driver) Create(ctx context.Context, r provider.Ref, resolved json.RawMessage) (i provider.Instance, err error) {
	var req request
	if err := json.Unmarshal(resolved, &req); err != nil {
		return i, provider.Errorf(provider.Invalid, "frozen request: %w", err)
	}
	err = d.call(ctx, func(ctx context.Context, c *vim25.Client) error {
		i, err = d.create(ctx, c, r, req)
		return err
	})
	return i, err
}

// Find implements [provider.Driver].
func (d *driver) Find(ctx context.Context, r provider.Ref) (found []provider.Instance, err error) {
	err = d.call(ctx, func(ctx context.Context, c *vim25.Client) error {
		all, err := d.named(ctx, c, r)
		for _, m := range all {
			found = append(found, d.instance(m))
		}
		return err
	})
	return found, err
}

// List implements [provider.Driver].
func (d *driver) List(ctx context.Context) (all []provider.Instance, err error) {
	err = d.call(ctx, func(ctx context.Context, c *vim25.Client) error {
		clones, err := d.marked(ctx, c)
		if err != nil {
			return err
		}
		for _, m := range clones {
			all = append(all, d.instance(m))
		}
		left, err := d.addresses.leftovers(ctx, d.account, all)
		all = append(all, left...)
		return err
	})
	return all, err
}

// Delete implements [provider.Driver].
func (d *driver) Delete(ctx context.Context, r provider.Ref) error {
	return d.call(ctx, func(ctx context.Context, c *vim25.Client) error { return d.remove(ctx, c, r) })
}

// InstanceTypes implements [provider.Driver]: a spec that gives no size has that of its template.
func (d *driver) InstanceTypes(ctx context.Context) (all []provider.InstanceType, err error) {
	err = d.call(ctx, func(ctx context.Context, c *vim25.Client) error {
		all, err = templates(ctx, c)
		return err
	})
	return all, err
}

// Horizon implements [provider.Driver].
func (d *driver) Horizon() time.Duration { return horizon }

// Close implements [provider.Closer]: it logs out, and who calls later logs out again.
func (d *driver) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	if err := d.session.stay.Close(ctx); err != nil {
		return d.session.coded(err)
	}
	return nil
}
