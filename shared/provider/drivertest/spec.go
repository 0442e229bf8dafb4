// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

var specTests = []test{
	{"the provider knows the account of a spec", func(t *testing.T, c *cloud) {
		region, secret, err := c.Provider.Account(c.Spec)
		if err != nil || region != c.Account.Region || secret != c.Account.Secret {
			t.Errorf("Account = %q, %q, %v, want %q, %q", region, secret, err, c.Account.Region, c.Account.Secret)
		}
		_, _, err = c.Provider.Account(json.RawMessage(`{"kind":`))
		wantCode(t, err, provider.Invalid)
	}},
	{"the provider is named and serves its kind", func(t *testing.T, c *cloud) {
		if c.Provider.Name == "" || !slices.Contains(c.Provider.Kinds, c.Account.Kind) {
			t.Errorf("provider %q serves %v, want %q", c.Provider.Name, c.Provider.Kinds, c.Account.Kind)
		}
	}},
	{"resolve gives the same answer every time", func(t *testing.T, c *cloud) {
		again, err := c.Resolve(t.Context(), c.Spec)
		if err != nil || !bytes.Equal(again, c.resolved) || !json.Valid(again) {
			t.Errorf("Resolve = %s, %v; before: %s", again, err, c.resolved)
		}
	}},
	{"resolve changes nothing", func(t *testing.T, c *cloud) {
		if c.Writes == nil {
			t.Skip("the cloud does not count changes")
		}
		before := c.Writes()
		if _, err := c.Resolve(t.Context(), c.Spec); err != nil {
			t.Fatal(err)
		}
		if after := c.Writes(); after != before {
			t.Errorf("Resolve made %d changes", after-before)
		}
	}},
	{"a spec that can never work is invalid and says where", func(t *testing.T, c *cloud) {
		if len(c.Invalid) == 0 {
			t.Fatal("the harness has no invalid spec")
		}
		for _, bad := range c.Invalid {
			_, err := c.Resolve(t.Context(), bad.Spec)
			wantCode(t, err, provider.Invalid)
			wantNames(t, err, bad.Names)
		}
	}},
	{"a spec that cannot be read is invalid", func(t *testing.T, c *cloud) {
		for _, bad := range []string{"", "null", "[]", `"x"`, `{"kind":`} {
			_, err := c.Resolve(t.Context(), json.RawMessage(bad))
			wantCode(t, err, provider.Invalid)
		}
	}},
	{"a spec that names what the cloud lacks may be tried again", func(t *testing.T, c *cloud) {
		if c.Missing == nil {
			t.Skip("the cloud lacks nothing that a spec may name")
		}
		_, err := c.Resolve(t.Context(), c.Missing.Spec)
		wantCode(t, err, provider.NotFound, provider.Exhausted)
		wantNames(t, err, c.Missing.Names)
	}},
	{"instance types are sorted and have capacity", func(t *testing.T, c *cloud) {
		c.needTypes(t)
		all, err := c.InstanceTypes(t.Context())
		if err != nil || len(all) == 0 {
			t.Fatalf("InstanceTypes = %v, %v", all, err)
		}
		if !slices.IsSortedFunc(all, func(a, b provider.InstanceType) int { return strings.Compare(a.Name, b.Name) }) {
			t.Errorf("instance types are not sorted by name: %v", all)
		}
		for i, it := range all {
			nothing := it.MilliCPU <= 0 || it.Memory <= 0
			if it.Name == "" || nothing && it.Problem == "" || it.Arch == "" || i > 0 && it.Name == all[i-1].Name {
				t.Errorf("instance type %+v: no name of its own, no architecture, or no capacity and no word why", it)
			}
		}
	}},
	{"the type of a spec states its capacity or is offered", func(t *testing.T, c *cloud) {
		c.needTypes(t)
		want, err := c.Provider.InstanceType(c.Spec)
		if err != nil {
			t.Fatal(err)
		}
		if want.MilliCPU > 0 && want.Memory > 0 {
			return
		}
		all, err := c.InstanceTypes(t.Context())
		if err != nil || !slices.ContainsFunc(all, func(it provider.InstanceType) bool { return it.Name == want.Name }) {
			t.Errorf("type %q is not among %v (%v)", want.Name, all, err)
		}
	}},
	{"the horizon covers an invocation, and without tokens the clocks", func(t *testing.T, c *cloud) {
		least := invocation + c.Lag
		if !c.tokens() {
			least += 2 * machine.Skew
		}
		if c.Horizon() < least {
			t.Errorf("Horizon = %v: a create that began in time may surface for %v", c.Horizon(), least)
		}
	}},
}

func (c *cloud) needTypes(t *testing.T) {
	t.Helper()
	if c.OwnNames {
		t.Skip("what an instance offers is known once it was chosen")
	}
}
