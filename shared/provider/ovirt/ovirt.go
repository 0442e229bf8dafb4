// SPDX-License-Identifier: Apache-2.0

// Package ovirt is the driver for instances of an oVirt engine, or of Red Hat Virtualization's.
package ovirt

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	// deadline bounds one call of the driver, however many requests it makes (RELIABILITY G6).
	deadline = 10 * time.Second
	// horizon covers how long an engine may go on with a creation whose answer was lost before its instance shows: a request waits
	// five minutes at most, and its transaction ends after five more (docs/ovirt-semantics.md).
	horizon = 15 * time.Minute
)

// Provider returns the line for oVirt in the table of drivers.
func Provider() provider.Provider { return served(network) }

func served(dial dialer) provider.Provider {
	return provider.Provider{
		Name:  "ovirt",
		Kinds: []string{Kind},
		// Where the engine is says the Secret alone.
		Account: func(spec json.RawMessage) (region, secret string, err error) {
			s, err := decode(spec)
			return "", s.CredentialsSecret.Name, err
		},
		InstanceType: instanceType,
		Open: func(_ context.Context, a provider.Account) (provider.Driver, error) {
			return open(a, dial)
		},
	}
}

// driver is one cluster's view of an engine.
type driver struct {
	account provider.Account
	session *session
}

var (
	_ provider.Driver   = (*driver)(nil)
	_ provider.Closer   = (*driver)(nil)
	_ provider.Insecure = (*driver)(nil)
)

func open(a provider.Account, dial dialer) (*driver, error) {
	if a.ClusterID == "" {
		return nil, provider.Errorf(provider.Invalid, "the cluster has no id to mark its instances with")
	}
	s, err := newSession(a, dial)
	if err != nil {
		return nil, err
	}
	a.Credentials = nil // which nobody reads again
	return &driver{account: a, session: s}, nil
}

// call does one bounded step; every error gets a code.
func (d *driver) call(ctx context.Context, step func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, deadline-farewell)
	defer cancel()
	defer d.session.stay.Enter(ctx)()
	if err := ctx.Err(); err != nil {
		return provider.Errorf(provider.Unknown, "%w", err)
	}
	return provider.Coded(step(ctx))
}

// Resolve implements [provider.Driver]. What the spec names is looked up, and becomes ids of the engine.
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
	return i, err
}

// Find implements [provider.Driver].
func (d *driver) Find(ctx context.Context, r provider.Ref) (found []provider.Instance, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		all, err := d.named(ctx, r, details)
		for _, i := range all {
			found = append(found, d.told(i))
		}
		return err
	})
	return found, err
}

// List implements [provider.Driver]. Disks come first: whose instance is made meanwhile is no leftover. What an attempt before the instance's
// left is one.
func (d *driver) List(ctx context.Context) (all []provider.Instance, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		disks, err := d.loose(ctx, "")
		if err != nil {
			return err
		}
		found, err := d.everyone(ctx)
		if err != nil {
			return err
		}
		for _, i := range found {
			all = append(all, d.told(i))
		}
		for _, k := range disks {
			if !slices.ContainsFunc(found, k.belongs) {
				all = append(all, d.leftover(k))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Delete implements [provider.Driver].
func (d *driver) Delete(ctx context.Context, r provider.Ref) error {
	return d.call(ctx, func(ctx context.Context) error { return d.remove(ctx, r) })
}

// InstanceTypes implements [provider.Driver]. They are called by their ids, as a spec does.
func (d *driver) InstanceTypes(ctx context.Context) (all []provider.InstanceType, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		all, err = d.types(ctx)
		return err
	})
	return all, err
}

// Horizon implements [provider.Driver].
func (d *driver) Horizon() time.Duration { return horizon }

// Close implements [provider.Closer]: the engine forgets the token. Who calls later gets another.
func (d *driver) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	return provider.Coded(d.session.stay.Close(ctx))
}

// Insecure implements [provider.Insecure].
func (d *driver) Insecure() string { return d.session.insecure }

// Identity implements [provider.Identified]: the engine's own id, which it keeps when its name or address changes. Older engines have
// none.
func (d *driver) Identity(ctx context.Context) (id string, err error) {
	err = d.call(ctx, func(ctx context.Context) error {
		id, err = d.session.identity(ctx)
		return err
	})
	return id, err
}

var _ provider.Identified = (*driver)(nil)

// identity asks the engine which it is, once.
func (s *session) identity(ctx context.Context) (string, error) {
	s.mu.Lock()
	asked, id := s.known, s.engine
	s.mu.Unlock()
	if asked {
		return id, nil
	}
	var of struct {
		Product *struct {
			ID string `json:"instance_id"`
		} `json:"product_info"`
	}
	if err := s.ask(ctx, "which engine this is", http.MethodGet, "", nil, nil, &of); err != nil {
		return "", err
	}
	if of.Product == nil {
		return "", provider.Errorf(provider.Unknown, "which engine this is: the answer has no product_info: see what answers in its place, such as a proxy")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known, s.engine = true, of.Product.ID
	return s.engine, nil
}
