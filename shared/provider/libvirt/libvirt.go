// SPDX-License-Identifier: Apache-2.0

// Package libvirt is the driver for domains of a libvirt daemon.
package libvirt

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
	// horizon is the 24 s of an invocation, and how long a daemon may carry out what it was asked by somebody who has left: a call
	// waits up to 30 s for another's job on the same domain, and a start for qemu as long again. Reads of what the
	// driver makes do not lag.
	horizon = 2 * time.Minute
)

// Provider returns the line for libvirt daemons in the table of drivers.
func Provider() provider.Provider {
	return provider.Provider{
		Name:  "libvirt",
		Kinds: []string{Kind},
		Account: func(spec json.RawMessage) (uri, secret string, err error) {
			s, err := decode(spec)
			return s.URI, Secret, err
		},
		InstanceType: instanceType,
		Open:         open,
	}
}

// driver is one cluster's view of a daemon.
type driver struct {
	account provider.Account
	session *session
}

var (
	_ provider.Driver      = (*driver)(nil)
	_ provider.Closer      = (*driver)(nil)
	_ provider.Insecure    = (*driver)(nil)
	_ provider.Identified  = (*driver)(nil)
	_ provider.PowerCycler = (*driver)(nil)
	_ provider.PowerSwitch = (*driver)(nil)
)

func open(_ context.Context, a provider.Account) (provider.Driver, error) {
	if a.ClusterID == "" {
		return nil, provider.Errorf(provider.Invalid, "the cluster has no id to mark its domains with")
	}
	s, err := newSession(a)
	if err != nil {
		return nil, err
	}
	return &driver{account: s.account, session: s}, nil
}

// call does one bounded step on a connection that nobody else uses meanwhile; every error gets a code.
func (d *driver) call(ctx context.Context, step func(context.Context, *daemon) error) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	err := d.session.with(ctx, step)
	if _, coded := errors.AsType[*provider.Error](err); err == nil || coded {
		return err
	}
	return d.session.coded(err)
}

// Resolve implements [provider.Driver]. Names become what the daemon calls them, and what is frozen says all that a domain is made of.
func (d *driver) Resolve(ctx context.Context, spec json.RawMessage) (resolved json.RawMessage, err error) {
	s, err := parse(spec)
	if err != nil {
		return nil, err
	}
	err = d.call(ctx, func(_ context.Context, l *daemon) error {
		req, err := d.resolve(l, s)
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
	err = d.call(ctx, func(ctx context.Context, l *daemon) error {
		i, err = d.create(ctx, l, r, req)
		return err
	})
	return i, err
}

// Find implements [provider.Driver].
func (d *driver) Find(ctx context.Context, r provider.Ref) (found []provider.Instance, err error) {
	err = d.call(ctx, func(_ context.Context, l *daemon) error {
		all, err := d.named(l, r)
		if err != nil {
			return err
		}
		found, err = d.instances(l, all)
		return err
	})
	return found, err
}

// List implements [provider.Driver].
func (d *driver) List(ctx context.Context) (all []provider.Instance, err error) {
	err = d.call(ctx, func(_ context.Context, l *daemon) error {
		all, err = d.list(l)
		return err
	})
	return all, err
}

// Delete implements [provider.Driver]. That nothing is there is what it saw itself: of what goes beside it, such as a pool, the daemon says
// the same.
func (d *driver) Delete(ctx context.Context, r provider.Ref) error {
	gone := false
	err := d.call(ctx, func(_ context.Context, l *daemon) (err error) {
		gone, err = d.remove(l, r)
		return err
	})
	switch {
	case err == nil && gone:
		return provider.Errorf(provider.NotFound, "delete %s: nothing of it is there", r.Name)
	case err != nil && provider.CodeOf(err) == provider.NotFound:
		return provider.Errorf(provider.Unknown, "delete %s: %w", r.Name, err)
	}
	return err
}

// InstanceTypes implements [provider.Driver]: a spec states its own size.
func (d *driver) InstanceTypes(context.Context) ([]provider.InstanceType, error) { return nil, nil }

// Horizon implements [provider.Driver].
func (d *driver) Horizon() time.Duration { return horizon }

// Insecure implements [provider.Insecure].
func (d *driver) Insecure() string { return d.session.at.insecure }

// Close implements [provider.Closer]: it closes the connections that nobody uses now, and the others when they are free.
func (d *driver) Close(context.Context) error {
	d.session.close()
	return nil
}
