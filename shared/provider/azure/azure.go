// SPDX-License-Identifier: Apache-2.0

// Package azure is the driver for instances of Azure's, with their network interfaces, public addresses and disks.
package azure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	// deadline bounds one call of the driver, however many requests it makes (RELIABILITY G6).
	deadline = 10 * time.Second
	// horizon is how long a create whose answer was lost may still surface: the 24 s of its invocation, some minutes for which a
	// request may lie at Azure's before its resource is there, and what lists lag behind (RELIABILITY 2b).
	horizon = 10 * time.Minute
)

// Provider returns the line for Azure in the table of drivers.
func Provider() provider.Provider {
	return provider.Provider{
		Name:  "azure",
		Kinds: []string{Kind},
		Account: func(spec json.RawMessage) (region, secret string, err error) {
			s, err := decode(spec)
			return regionOf(s), s.CredentialsSecret.Name, err
		},
		InstanceType: func(spec json.RawMessage) (provider.InstanceType, error) {
			s, err := decode(spec)
			return provider.InstanceType{Name: s.VMSize}, err
		},
		AnyCase: true,
		Open:    func(_ context.Context, a provider.Account) (provider.Driver, error) { return open(a) },
	}
}

// driver is one cluster's view of a resource group, in one location.
type driver struct {
	*client
	account provider.Account
	states  states
	disks   atomic.Bool // may be read
	ended   endings
	pause   time.Duration // before a second look at what takes a while
}

var (
	_ provider.Driver      = (*driver)(nil)
	_ provider.Updater     = (*driver)(nil)
	_ provider.PowerCycler = (*driver)(nil)
	_ provider.Identified  = (*driver)(nil)
)

func open(a provider.Account) (*driver, error) {
	if a.ClusterID == "" {
		return nil, provider.Errorf(provider.Invalid, "the cluster has no id to tag its instances with")
	}
	if !names.MatchString(a.ClusterID) {
		return nil, provider.Errorf(provider.Invalid, "the cluster's id %q cannot be part of a tag's name", a.ClusterID)
	}
	c, err := connect(a)
	if err != nil {
		return nil, err
	}
	a.Credentials = nil // which nobody reads again
	return &driver{client: c, account: a, pause: lookAgain}, nil
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

// Resolve implements [provider.Driver]. Names become ids, and what is missing is told before anything is made.
func (d *driver) Resolve(ctx context.Context, spec json.RawMessage) (resolved json.RawMessage, err error) {
	s, err := parse(spec, d.account.Namespace)
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

// Create implements [provider.Driver]. It makes one change at most.
func (d *driver) Create(ctx context.Context, r provider.Ref, resolved json.RawMessage) (i provider.Instance, err error) {
	var req request
	if err := json.Unmarshal(resolved, &req); err != nil {
		return i, provider.Errorf(provider.Invalid, "frozen request: %w", err)
	}
	err = d.call(ctx, func(ctx context.Context) error {
		i, err = d.create(ctx, r, req)
		return err
	})
	return i, err
}

// Find implements [provider.Driver].
func (d *driver) Find(ctx context.Context, r provider.Ref) (found []provider.Instance, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		all, err := d.named(ctx, r)
		if err == nil {
			all, err = d.shown(ctx, all)
		}
		if err == nil {
			found, err = d.instances(ctx, all)
		}
		return err
	})
	if err != nil {
		return nil, absent(fmt.Sprintf("find %s", r.Name), err)
	}
	return found, nil
}

// List implements [provider.Driver]. What the installer, or OpenShift, made carries the cluster's tag as well.
func (d *driver) List(ctx context.Context) (all []provider.Instance, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		all, err = d.every(ctx)
		return err
	})
	if err != nil {
		return nil, absent("list instances", err)
	}
	return all, nil
}

// Delete implements [provider.Driver]. It makes one kind of change at most.
func (d *driver) Delete(ctx context.Context, r provider.Ref) error {
	none := false
	err := d.call(ctx, func(ctx context.Context) (err error) {
		none, err = d.remove(ctx, r)
		return err
	})
	if err == nil && none {
		return provider.Errorf(provider.NotFound, "delete %s: no instance is there", r.Name)
	}
	return absent(fmt.Sprintf("delete %s", r.Name), err)
}

// absent takes from an error that something else was not found, such as the resource group, what it says about instances: nothing.
func absent(doing string, err error) error {
	if e, ok := errors.AsType[*provider.Error](err); ok && e.Code == provider.NotFound {
		return provider.ErrorAfter(provider.Unknown, e.RetryAfter, "%s: %w", doing, err)
	}
	return err
}

// Horizon implements [provider.Driver].
func (d *driver) Horizon() time.Duration { return horizon }

// Identity implements [provider.Identified]: the subscription and, after a colon, where in it instances are. The Secret says both.
func (d *driver) Identity(ctx context.Context) (string, error) {
	return d.subscription + ":" + d.location + "/" + d.group, provider.Coded(ctx.Err())
}
