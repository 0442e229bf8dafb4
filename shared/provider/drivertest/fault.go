// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var faultTests = []test{
	{"exhausted stock is said and heals", func(t *testing.T, c *cloud) {
		if c.Exhaust == nil {
			t.Skip("the cloud is never short of anything")
		}
		r := c.ref()
		c.Exhaust(true)
		_, err := c.create(t.Context(), r)
		wantCode(t, err, provider.Exhausted)
		time.Sleep(c.Lag) // without the attempt's progress only reads lead to what it left
		c.remove(t, provider.Ref{UID: r.UID})
		c.wantInstances(t, 0)
		c.Exhaust(false)
		c.launch(t, c.attempt(r, 2))
		c.wantInstances(t, 1)
	}},
	{"a call that has ended already is an error with a code", func(t *testing.T, c *cloud) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		for name, err := range c.calls(ctx, c.ref()) {
			if err == nil {
				t.Errorf("%s ignores its context", name)
				continue
			}
			wantClassified(t, err)
			if code := provider.CodeOf(err); code.Definite() {
				t.Errorf("%s: %v has the code %v: it proves nothing", name, err, code)
			}
		}
		c.wantInstances(t, 0)
	}},
	{"a call ends at its deadline", func(t *testing.T, c *cloud) {
		if c.Hang == nil {
			t.Skip("the cloud always answers")
		}
		c.Hang(true)
		defer c.Hang(false)
		const limit = 300 * time.Millisecond
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		begin := time.Now()
		for name, err := range c.calls(ctx, c.ref()) {
			if provider.CodeOf(err) != provider.Unknown || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s = %v, want Unknown because of the deadline", name, err)
			}
		}
		if took := time.Since(begin); took > limit+2*time.Second {
			t.Errorf("the calls took %v beyond their deadline", took-limit)
		}
	}},
}

// calls makes every call that reaches every cloud.
func (c *cloud) calls(ctx context.Context, r provider.Ref) map[string]error {
	_, create := c.Create(ctx, r, c.resolved)
	_, find := c.Find(ctx, r)
	_, list := c.List(ctx)
	all := map[string]error{"Create": create, "Find": find, "List": list, "Delete": c.Delete(ctx, r)}
	if d, can := c.Driver.(provider.Updater); can {
		all["Update"] = d.Update(ctx, r, map[string]string{"team": "a"})
	}
	if d, can := c.Driver.(provider.PowerCycler); can {
		all["PowerCycle"] = d.PowerCycle(ctx, r)
	}
	if d, can := c.Driver.(provider.PowerSwitch); can {
		all["PowerOff"], all["PowerOn"] = d.PowerOff(ctx, r), d.PowerOn(ctx, r)
	}
	if d, can := c.Driver.(provider.Ended); can {
		_, all["Ended"] = d.Ended(ctx, r)
	}
	if d, can := c.Driver.(provider.Stocked); can {
		_, all["Stock"] = d.Stock(ctx, c.Spec)
	}
	return all
}
