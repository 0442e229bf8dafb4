// SPDX-License-Identifier: Apache-2.0

// Package aws is the driver for EC2 instances.
package aws

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	// deadline bounds one call of the driver, however many requests it makes (RELIABILITY G6).
	deadline = 10 * time.Second
	// horizon is the deadline of a create, what EC2's reads lag behind its writes, and the clocks' skew (RELIABILITY 2b).
	horizon = 10 * time.Minute
)

// Provider returns the line for EC2 in the table of drivers. Prices says what types cost in a region, in dollars an
// hour; nil knows none.
func Provider(prices Prices) provider.Provider {
	return provider.Provider{
		Name:  "aws",
		Kinds: []string{Kind},
		Account: func(spec json.RawMessage) (region, secret string, err error) {
			s, err := decode(spec)
			if err != nil {
				return "", "", err
			}
			if s.CredentialsSecret != nil {
				secret = s.CredentialsSecret.Name
			}
			return s.Placement.Region, secret, nil
		},
		InstanceType: func(spec json.RawMessage) (provider.InstanceType, error) {
			s, err := decode(spec)
			return provider.InstanceType{Name: s.InstanceType}, err
		},
		Open: func(_ context.Context, a provider.Account) (provider.Driver, error) { return open(a, prices) },
	}
}

// driver is one cluster's view of a region.
type driver struct {
	*clients
	account provider.Account
	prices  Prices
	domains domains
	whose   identity
}

var (
	_ provider.Driver      = (*driver)(nil)
	_ provider.Updater     = (*driver)(nil)
	_ provider.PowerCycler = (*driver)(nil)
	_ provider.Insecure    = (*driver)(nil)
)

func open(a provider.Account, prices Prices) (*driver, error) {
	if a.ClusterID == "" {
		return nil, provider.Errorf(provider.Invalid, "the cluster has no id to tag its instances with")
	}
	if a.Region == "" {
		return nil, provider.Errorf(provider.Invalid, "%s: must name a region", at("placement", "region"))
	}
	c, err := connect(a)
	if err != nil {
		return nil, err
	}
	a.Credentials = nil // which nobody reads again
	return &driver{clients: c, account: a, prices: prices, domains: newDomains()}, nil
}

// call does one bounded step; every error gets a code.
func (d *driver) call(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	err := step(ctx)
	if _, coded := errors.AsType[*provider.Error](err); err == nil || coded {
		return err
	}
	return d.coded(err)
}

// Resolve implements [provider.Driver]. Filters become ids, and the zone is settled: it is part of the token.
func (d *driver) Resolve(ctx context.Context, spec json.RawMessage) (resolved json.RawMessage, err error) {
	s, err := parse(spec)
	if err != nil {
		return nil, err
	}
	err = d.call(ctx, func(ctx context.Context) error {
		req, err := d.resolve(ctx, s)
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
	err = d.call(ctx, func(ctx context.Context) error {
		i, err = d.create(ctx, r, req)
		return err
	})
	if err != nil {
		return provider.Instance{}, err
	}
	return i, nil
}

// Find implements [provider.Driver].
func (d *driver) Find(ctx context.Context, r provider.Ref) (found []provider.Instance, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		all, err := d.named(ctx, r)
		if err == nil {
			found, err = d.instances(ctx, live(all))
		}
		return err
	})
	return found, err
}

// List implements [provider.Driver]. What the installer, or OpenShift, made carries the cluster's tag as well.
func (d *driver) List(ctx context.Context) (all []provider.Instance, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		found, err := d.every(ctx)
		if err == nil {
			all, err = d.instances(ctx, found)
		}
		if err != nil {
			return err
		}
		hosts, err := d.freeHosts(ctx)
		all = append(all, hosts...)
		return err
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Delete implements [provider.Driver].
func (d *driver) Delete(ctx context.Context, r provider.Ref) error {
	return d.call(ctx, func(ctx context.Context) error {
		err := d.remove(ctx, r)
		if refusal(err) == "" {
			return err
		}
		if err = d.coded(err); provider.CodeOf(err) == provider.NotFound { // said of something else: a list tells what there is of r
			err = provider.Errorf(provider.Unknown, "delete %s: %w", r.Name, err)
		}
		return err
	})
}

// Horizon implements [provider.Driver].
func (d *driver) Horizon() time.Duration { return horizon }
