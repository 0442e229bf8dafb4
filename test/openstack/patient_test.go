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
// the ten seconds that a call has: what only reads is asked again, as functions do with their next scan.
func patientProvider() provider.Provider {
	p := driver.Provider()
	open := p.Open
	p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		d, err := open(ctx, a)
		if err != nil {
			return nil, err
		}
		return struct {
			patient
			provider.PowerCycler
			provider.Updater
		}{patient{d}, d.(provider.PowerCycler), d.(provider.Updater)}, nil
	}
	return p
}

type patient struct{ provider.Driver }

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
