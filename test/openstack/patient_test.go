// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"context"
	"encoding/json"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	driver "github.com/machine-functions/machine-functions/shared/provider/openstack"
)

// patience is how long a test waits for what a cloud takes time for.
const patience = 3 * time.Minute

// patientProvider is the driver for a machine that is busy with something else, where this OpenStack may need more than
// the ten seconds that a call has: what came to no clear answer is asked again, as functions do with their next scan. What
// changes something is repeated under its token, so every such answer tries that nothing is made twice.
func patientProvider() provider.Provider {
	p := driver.Provider()
	open := p.Open
	p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		d, err := open(ctx, a)
		if err != nil {
			return nil, err
		}
		return patient{d, d.(provider.PowerCycler), d.(provider.Updater)}, nil
	}
	return p
}

type patient struct {
	provider.Driver
	provider.PowerCycler // never twice
	updater              provider.Updater
}

var (
	_ provider.PowerCycler = patient{}
	_ provider.Updater     = patient{}
)

func (p patient) Create(ctx context.Context, r provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	return again(ctx, func() (provider.Instance, error) { return p.Driver.Create(ctx, r, resolved) })
}

func (p patient) Delete(ctx context.Context, r provider.Ref) error {
	return repeat(ctx, func() error { return p.Driver.Delete(ctx, r) })
}

func (p patient) Tags(spec json.RawMessage) (map[string]string, error) { return p.updater.Tags(spec) }

func (p patient) Update(ctx context.Context, r provider.Ref, tags map[string]string) error {
	return repeat(ctx, func() error { return p.updater.Update(ctx, r, tags) })
}

func repeat(ctx context.Context, do func() error) error {
	_, err := again(ctx, func() (struct{}, error) { return struct{}{}, do() })
	return err
}

func (p patient) Resolve(ctx context.Context, spec json.RawMessage) (json.RawMessage, error) {
	return again(ctx, func() (json.RawMessage, error) { return p.Driver.Resolve(ctx, spec) })
}

func (p patient) Find(ctx context.Context, r provider.Ref) ([]provider.Instance, error) {
	return again(ctx, func() ([]provider.Instance, error) { return p.Driver.Find(ctx, r) })
}

func (p patient) List(ctx context.Context) ([]provider.Instance, error) {
	return again(ctx, func() ([]provider.Instance, error) { return p.Driver.List(ctx) })
}

func (p patient) InstanceTypes(ctx context.Context) ([]provider.InstanceType, error) {
	return again(ctx, func() ([]provider.InstanceType, error) { return p.Driver.InstanceTypes(ctx) })
}

func again[A any](ctx context.Context, ask func() (A, error)) (A, error) {
	for begin := time.Now(); ; time.Sleep(time.Second) {
		answer, err := ask()
		if err == nil || provider.CodeOf(err) != provider.Unknown || ctx.Err() != nil || time.Since(begin) > patience {
			return answer, err
		}
	}
}
