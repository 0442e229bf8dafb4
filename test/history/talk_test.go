// SPDX-License-Identifier: Apache-2.0

package history

import (
	"context"
	"encoding/json"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/function"
	"github.com/machine-functions/machine-functions/shared/plan"
	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/snapshot"
	"github.com/machine-functions/machine-functions/test/sim"
)

// talk is a library below a driver that says the password when a call fails, as it does once for every Machine.
type talk struct {
	mu   sync.Mutex
	said string // last
}

// talkative is R-B35: the naive function tells what the library said.
func talkative() class {
	t := &talk{}
	return class{
		id: "R-B35", what: "what a library says of a failed call is told as it is, with the password", breaks: []string{"R-S13"},
		level: sim.Machines, world: []byte{0, 0, 0, 0, 0, 1}, naive: of(provision, t.repeated), always: func(c *sim.Config) { c.Clouds = t.below },
	}
}

func (t *talk) repeated(f function.Function) function.Function {
	return planned(f, func(_ snapshot.Snapshot, p plan.Plan) plan.Plan {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.said != "" {
			p.Notes = append(p.Notes, plan.Log(t.said))
		}
		return p
	})
}

func (t *talk) below(p provider.Provider) provider.Provider {
	open := p.Open
	p.Open = func(ctx context.Context, a provider.Account) (provider.Driver, error) {
		d, err := open(ctx, a)
		return &talking{Driver: d, talk: t, password: string(a.Credentials["key"]), failed: map[types.UID]bool{}}, err
	}
	return p
}

// talking is such a driver.
type talking struct {
	provider.Driver
	talk     *talk
	password string

	mu     sync.Mutex
	failed map[types.UID]bool
}

// Create implements [provider.Driver].
func (d *talking) Create(ctx context.Context, r provider.Ref, resolved json.RawMessage) (provider.Instance, error) {
	d.mu.Lock()
	again := d.failed[r.UID]
	d.failed[r.UID] = true
	d.mu.Unlock()
	if again {
		return d.Driver.Create(ctx, r, resolved)
	}
	err := provider.Errorf(provider.Unknown, "Post https://machines:%s@cloud.test/instances: connection refused", d.password)
	d.talk.mu.Lock()
	defer d.talk.mu.Unlock()
	d.talk.said = err.Error()
	return provider.Instance{}, err
}
