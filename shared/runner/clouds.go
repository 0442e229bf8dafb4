// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/machine-functions/machine-functions/shared/beside"
	"github.com/machine-functions/machine-functions/shared/cluster"
	"github.com/machine-functions/machine-functions/shared/metrics"
	"github.com/machine-functions/machine-functions/shared/provider"
)

const (
	// callTimeout bounds one call to a cloud (RELIABILITY G6).
	callTimeout = 10 * time.Second
	// typesFor is how long a cloud's list of instance types is believed.
	typesFor = 10 * time.Minute
	// noTypesFor is how long it is believed that a cloud does not tell them: every scan would wait for it (R-L4).
	noTypesFor = time.Minute
	// resolvedFor is how long what a providerSpec resolves to is believed: the Machines of a set come together and have
	// the same.
	resolvedFor = 10 * time.Second
	// mostOpen bounds how many accounts are kept open.
	mostOpen = 1000
	// mostAnswers bounds what is remembered of one account.
	mostAnswers = 1000
	// maxName bounds what a spec calls a region, a server or a cloud, and a cloud an account: all share one record.
	maxName = 253
)

// Secrets reads one Secret with its resourceVersion.
type Secrets func(ctx context.Context, namespace, name string) (map[string][]byte, string, error)

// once returns what reads each Secret once: many specs name the same.
func (s Secrets) once() Secrets {
	type read struct {
		sync.Once
		values  map[string][]byte
		version string
		err     error
	}
	var mu sync.Mutex
	known := map[[2]string]*read{}
	of := func(namespace, name string) *read {
		mu.Lock()
		defer mu.Unlock()
		key := [2]string{namespace, name}
		if known[key] == nil {
			known[key] = &read{}
		}
		return known[key]
	}
	return func(ctx context.Context, namespace, name string) (map[string][]byte, string, error) {
		r := of(namespace, name)
		r.Do(func() { r.values, r.version, r.err = s(ctx, namespace, name) })
		return r.values, r.version, r.err
	}
}

// Clouds opens drivers and keeps them while their credentials stand. It is safe for concurrent use; what it keeps
// only saves calls.
type Clouds struct {
	Metrics   *metrics.Metrics // of the calls; nil: they are not counted
	Log       *slog.Logger     // of panics of drivers; nil: they are not logged
	StrictTLS bool             // credentials that let a cloud not prove who it is are Denied
	// Fatal, if it is set, says which panics in drivers are the end of the process, as in a simulation. nil: none.
	Fatal func(v any) bool

	providers []provider.Provider
	secrets   Secrets

	mu   sync.Mutex
	open map[string]*slot
	told once[string] // panics of drivers
}

// account is an opened driver.
type account struct {
	provider.Account
	driver   *patient
	turns    *turns            // of those who are asked for by themselves
	source   string            // of Events
	insecure string            // which key of which Secret lets the cloud not prove who it is, and how; or empty
	tags     map[string]string // that the spec wants which it was opened for
	types    func(_ context.Context, _ struct{}, since time.Time) ([]provider.InstanceType, error)
	resolve  func(ctx context.Context, spec string, since time.Time) (json.RawMessage, error)
}

// id tells an opened account from the same one that was opened for another cluster's id.
func (a account) id() string { return accountID(a.Key(), a.ClusterID) }

func accountID(key, cluster string) string { return key + "|" + cluster }

// NewClouds returns the clouds that a table of drivers serves.
func NewClouds(table []provider.Provider, secrets Secrets) *Clouds {
	return &Clouds{providers: table, secrets: secrets, open: map[string]*slot{}}
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

// named returns the account that a providerSpec names, in the namespace of its Machine, with its provider and the version of its
// credentials, as secrets reads them.
func (c *Clouds) named(ctx context.Context, secrets Secrets, namespace, clusterID string, spec json.RawMessage) (p provider.Provider, a provider.Account, version string, err error) {
	p, kind, err := c.lookup(spec)
	if err != nil {
		return p, a, "", err
	}
	region, secret, err := c.accountOf(p, spec)
	if err != nil {
		return p, a, "", err
	}
	if len(region) > maxName {
		return p, a, "", provider.Errorf(provider.Invalid, "providerSpec.value: %.20q… and more names no region, server or cloud: it has %d characters, of which there may be %d", region, len(region), maxName)
	}
	a = provider.Account{Kind: kind, ClusterID: clusterID, Region: region, Namespace: namespace, Secret: secret}
	if secret != "" {
		if a.Credentials, version, err = secrets(ctx, namespace, secret); errors.Is(err, cluster.ErrGone) {
			c.forget(ctx, a.Key())
		}
		if err != nil {
			return p, a, "", provider.Errorf(unread(err), "credentials secret %s/%s: %w", namespace, secret, err)
		}
	}
	return p, a, version, nil
}

// unread returns what it means for a cloud that its credentials could not be read: somebody has to give them, or the right to read them. Of
// anything else the API server is the cause, and nobody knows whether they are there.
func unread(err error) provider.Code {
	if errors.Is(err, cluster.ErrGone) || apierrors.IsForbidden(err) {
		return provider.Denied
	}
	return provider.Unknown
}

// slotOf tells the accounts that are kept open apart.
func slotOf(a provider.Account) string {
	return strings.Join(append([]string{a.Key(), a.ClusterID, string(a.ClusterUID)}, a.VirtualIPs...), "|")
}

// standing returns the account if it is open with this version of its credentials, and nobody is about to change that.
func (c *Clouds) standing(a provider.Account, version string) (account, bool) {
	c.mu.Lock()
	o := c.find(slotOf(a))
	c.mu.Unlock()
	if o == nil {
		return account{}, false
	}
	return o.peek(version)
}

// find returns the slot of an account that somebody asks for, or nil if there is none yet. The caller has the lock.
func (c *Clouds) find(key string) *slot {
	o := c.open[key]
	if o != nil {
		o.used = time.Now()
	}
	return o
}

// opened returns the account that was opened with this version of its credentials, or opens it.
func (c *Clouds) opened(ctx context.Context, p provider.Provider, a provider.Account, version string) (account, error) {
	key := slotOf(a)
	c.mu.Lock()
	o, idle := c.find(key), (*slot)(nil)
	if o == nil {
		idle = c.leave()
		o = &slot{turn: make(chan struct{}, 1), used: time.Now()}
		c.open[key] = o
	}
	c.mu.Unlock()
	if idle != nil {
		_ = idle.close(ctx) // nobody depends on it
	}
	got, err := o.get(ctx, version, func() (account, error) { return c.bind(ctx, p, a) })
	if err == nil && !c.hold(ctx, key, o) {
		return c.opened(ctx, p, a, version) // which is open already
	}
	return got, err
}

// hold keeps what was opened although it was forgotten meanwhile, as who forgot it may not have waited for that: what nobody keeps nobody
// closes. Where another has its place it is closed at once, and hold says so.
func (c *Clouds) hold(ctx context.Context, key string, o *slot) (kept bool) {
	c.mu.Lock()
	there := cmp.Or(c.open[key], o)
	c.open[key] = there
	c.mu.Unlock()
	if there != o {
		_ = o.close(ctx) // nobody depends on it
	}
	return there == o
}

// leave forgets the account that nobody has asked for the longest, if there are too many: whoever writes a providerSpec names them.
// The caller has the lock.
func (c *Clouds) leave() *slot {
	if len(c.open) < mostOpen {
		return nil
	}
	oldest := slices.MinFunc(slices.Collect(maps.Keys(c.open)), func(a, b string) int { return c.open[a].used.Compare(c.open[b].used) })
	idle := c.open[oldest]
	delete(c.open, oldest)
	return idle
}

// forget closes the accounts of this key, whose credentials people have taken away: nobody keeps these, nor what they opened at a cloud.
func (c *Clouds) forget(ctx context.Context, key string) {
	var gone []*slot
	c.mu.Lock()
	for _, at := range slices.Sorted(maps.Keys(c.open)) {
		if strings.HasPrefix(at, key+"|") {
			gone = append(gone, c.open[at])
			delete(c.open, at)
		}
	}
	c.mu.Unlock()
	for _, o := range gone {
		_ = o.close(ctx) // nobody depends on it
	}
}

// Close closes every driver that is open, side by side: one that is silent holds up no other.
func (c *Clouds) Close(ctx context.Context) error {
	c.mu.Lock()
	open := slices.Collect(maps.Values(c.open))
	c.mu.Unlock()
	g := beside.New(len(open))
	for _, o := range open {
		g.Go(func() error { return o.close(ctx) })
	}
	return g.Wait()
}

// bind opens a driver.
func (c *Clouds) bind(ctx context.Context, p provider.Provider, a provider.Account) (account, error) {
	secrets := newUnspoken(a.Credentials)
	a.UserData = func(ctx context.Context, name string) (map[string][]byte, string, error) {
		values, version, err := c.secrets(ctx, a.Namespace, name)
		if err == nil {
			secrets.userData(name, version, values)
		}
		if errors.Is(err, cluster.ErrGone) { // any other error says nothing of the Secret
			err = provider.Refused(provider.Exhausted, err)
		}
		return values, version, provider.Coded(err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	driver, err := survived(c, a.Key(), "open", secrets, func() (provider.Driver, error) { return p.Open(ctx, a) })
	if err != nil {
		return account{}, fmt.Errorf("open %s: %w", a.Key(), discreet(err, secrets))
	}
	insecure := insecureBy(driver, a)
	if c.StrictTLS && insecure != "" {
		return account{}, provider.Errorf(provider.Denied, "%s; STRICT_TLS refuses a cloud that need not prove who it is", insecure)
	}
	d := &patient{Driver: driver, clouds: c, account: a.Key(), secrets: secrets}
	return account{
		Account: a, driver: d, turns: &turns{}, source: p.Name + "_controller", insecure: insecure,
		types: remember(typesFor, noTypesFor, func(ctx context.Context, _ struct{}) ([]provider.InstanceType, error) {
			all, err := d.InstanceTypes(ctx)
			c.Metrics.Called("instance_types", err)
			return all, err
		}),
		resolve: remember(resolvedFor, 0, func(ctx context.Context, spec string) (json.RawMessage, error) {
			resolved, err := d.Resolve(ctx, json.RawMessage(spec))
			c.Metrics.Called("resolve", err)
			return resolved, err
		}),
	}, nil
}

// insecureBy returns which key of which Secret lets the cloud of a driver not prove who it is, and how, or nothing.
func insecureBy(d provider.Driver, a provider.Account) string {
	i, may := d.(provider.Insecure)
	if !may || i.Insecure() == "" {
		return ""
	}
	return fmt.Sprintf("credentials secret %s/%s: %s", a.Namespace, a.Secret, i.Insecure())
}

// instanceType returns what the spec itself states, and for what it leaves out what the cloud says about the type that it asks
// for, asked at since or later; nil if instances are of no type.
func (c *Clouds) instanceType(ctx context.Context, a account, spec json.RawMessage, since time.Time) (*provider.InstanceType, error) {
	p, _, err := c.lookup(spec)
	if err != nil {
		return nil, err
	}
	want, err := survived(c, p.Name, "read the spec", nil, func() (provider.InstanceType, error) { return p.InstanceType(spec) })
	if err != nil || want.MilliCPU > 0 && want.Memory > 0 {
		return &want, err
	}
	if want.Name == "" {
		return nil, nil
	}
	all, err := a.types(ctx, struct{}{}, since)
	if provider.CodeOf(err) == provider.NotFound { // there is no list: that says nothing about the type
		return nil, provider.Errorf(provider.Unknown, "list of instance types: %w", err)
	}
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t provider.InstanceType) bool {
		return t.Name == want.Name || p.AnyCase && strings.EqualFold(t.Name, want.Name)
	})
	if i < 0 {
		return nil, provider.Errorf(provider.NotFound, "instance type %q is unknown to the cloud", want.Name)
	}
	it := all[i]
	it.MilliCPU, it.Memory, it.Disk = cmp.Or(want.MilliCPU, it.MilliCPU), cmp.Or(want.Memory, it.Memory), cmp.Or(want.Disk, it.Disk)
	if it.MilliCPU == 0 || it.Memory == 0 {
		return nil, provider.Errorf(provider.NotFound, "instance type %q: %s", it.Name, it.Problem)
	}
	return &it, nil
}

// remember returns f, keeping its last good answer to each question for a while, and a failure for as long as failed, unless it is
// that whoever asked had no more time. Who asks the same meanwhile waits for that one answer, as long as ctx lasts, unless a good one
// was asked for before since.
func remember[Q comparable, A any](d, failed time.Duration, f func(context.Context, Q) (A, error)) func(_ context.Context, _ Q, since time.Time) (A, error) {
	type answer struct {
		turn     chan struct{} // holds one while somebody asks
		at       time.Time     // when it was asked for
		last     A
		failedAt time.Time
		err      error // of failedAt
	}
	var mu sync.Mutex
	answers := map[Q]*answer{}
	of := func(q Q) *answer {
		mu.Lock()
		defer mu.Unlock()
		if answers[q] == nil {
			if len(answers) >= mostAnswers {
				clear(answers)
			}
			answers[q] = &answer{turn: make(chan struct{}, 1)}
		}
		return answers[q]
	}
	return func(ctx context.Context, q Q, since time.Time) (A, error) {
		a := of(q)
		select {
		case a.turn <- struct{}{}:
			defer func() { <-a.turn }()
		case <-ctx.Done():
			var none A
			return none, ctx.Err()
		}
		now := time.Now()
		if !a.at.IsZero() && now.Sub(a.at) < d && !a.at.Before(since) {
			return a.last, nil
		}
		if a.err != nil && now.Sub(a.failedAt) < failed {
			var none A
			return none, a.err
		}
		got, err := f(ctx, q)
		switch {
		case err == nil:
			a.at, a.last, a.err = now, got, nil
		case ctx.Err() == nil, time.Since(now) >= hearFor:
			a.failedAt, a.err = now, err
		}
		return got, err
	}
}
