// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/machine-functions/machine-functions/shared/metrics"
	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	// callTimeout bounds one call to a cloud (RELIABILITY G6).
	callTimeout = 10 * time.Second
	// typesFor is how long a cloud's list of instance types is believed.
	typesFor = 10 * time.Minute
)

// Secrets reads one Secret with its resourceVersion.
type Secrets func(ctx context.Context, namespace, name string) (map[string][]byte, string, error)

// Clouds opens drivers and keeps them while their credentials stand. It is safe for concurrent use; what it keeps
// only saves calls.
type Clouds struct {
	Metrics *metrics.Metrics // of the calls; nil: they are not counted

	providers []provider.Provider
	secrets   Secrets

	mu   sync.Mutex
	open map[string]account
}

// account is an opened driver.
type account struct {
	provider.Account
	driver  provider.Driver
	source  string // of Events
	version string // of the credentials Secret
	types   func(context.Context) ([]provider.InstanceType, error)
}

// NewClouds returns the clouds that a table of drivers serves.
func NewClouds(table []provider.Provider, secrets Secrets) *Clouds {
	return &Clouds{providers: table, secrets: secrets, open: map[string]account{}}
}

// lookup returns the provider that serves a providerSpec. Its error is Invalid and names the field and the value.
func (c *Clouds) lookup(spec json.RawMessage) (provider.Provider, string, error) {
	var head struct {
		Kind string `json:"kind"`
	}
	if len(spec) == 0 {
		return provider.Provider{}, "", provider.Errorf(provider.Invalid, "providerSpec.value: missing")
	}
	if err := json.Unmarshal(spec, &head); err != nil {
		return provider.Provider{}, "", provider.Errorf(provider.Invalid, "providerSpec.value: %w", err)
	}
	i := slices.IndexFunc(c.providers, func(p provider.Provider) bool { return slices.Contains(p.Kinds, head.Kind) })
	if i < 0 {
		return provider.Provider{}, "", provider.Errorf(provider.Invalid, "providerSpec.value.kind: %q is served by no provider here", head.Kind)
	}
	return c.providers[i], head.Kind, nil
}

// account opens the account that a providerSpec names, in the namespace of its Machine.
func (c *Clouds) account(ctx context.Context, namespace, clusterID string, spec json.RawMessage) (account, error) {
	p, kind, err := c.lookup(spec)
	if err != nil {
		return account{}, err
	}
	region, secret, err := p.Account(spec)
	if err != nil {
		return account{}, err
	}
	a := provider.Account{Kind: kind, ClusterID: clusterID, Region: region, Namespace: namespace, Secret: secret}
	version := ""
	if secret != "" {
		if a.Credentials, version, err = c.secrets(ctx, namespace, secret); err != nil {
			return account{}, provider.Errorf(provider.Denied, "credentials secret %s/%s: %w", namespace, secret, err)
		}
	}
	return c.opened(ctx, p, a, version)
}

func (c *Clouds) opened(ctx context.Context, p provider.Provider, a provider.Account, version string) (account, error) {
	key := a.Key() + "|" + a.ClusterID
	c.mu.Lock()
	defer c.mu.Unlock()
	if have, ok := c.open[key]; ok && have.version == version {
		return have, nil
	}
	a.UserData = func(ctx context.Context, name string) (map[string][]byte, string, error) {
		return c.secrets(ctx, a.Namespace, name)
	}
	d, err := p.Open(ctx, a)
	if err != nil {
		return account{}, fmt.Errorf("open %s: %w", a.Key(), err)
	}
	have := account{Account: a, driver: d, source: p.Name + "_controller", version: version, types: remember(c.instanceTypes(d))}
	c.open[key] = have
	return have, nil
}

func (c *Clouds) instanceTypes(d provider.Driver) func(context.Context) ([]provider.InstanceType, error) {
	return func(ctx context.Context) ([]provider.InstanceType, error) {
		all, err := d.InstanceTypes(ctx)
		c.Metrics.Called("instance_types", err)
		return all, err
	}
}

// instanceType returns what the cloud says about the type that a spec asks for, or what the spec itself states.
func (c *Clouds) instanceType(ctx context.Context, a account, spec json.RawMessage) (*provider.InstanceType, error) {
	p, _, err := c.lookup(spec)
	if err != nil {
		return nil, err
	}
	want, err := p.InstanceType(spec)
	if err != nil || want.MilliCPU > 0 {
		return &want, err
	}
	all, err := a.types(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t provider.InstanceType) bool { return t.Name == want.Name })
	if i < 0 {
		return nil, provider.Errorf(provider.NotFound, "instance type %q is unknown to the cloud", want.Name)
	}
	return &all[i], nil
}

// remember keeps the last good answer of f for a while.
func remember(f func(context.Context) ([]provider.InstanceType, error)) func(context.Context) ([]provider.InstanceType, error) {
	var (
		mu   sync.Mutex
		at   time.Time
		last []provider.InstanceType
	)
	return func(ctx context.Context) ([]provider.InstanceType, error) {
		mu.Lock()
		defer mu.Unlock()
		if !at.IsZero() && time.Since(at) < typesFor {
			return last, nil
		}
		all, err := f(ctx)
		if err == nil {
			at, last = time.Now(), all
		}
		return all, err
	}
}
