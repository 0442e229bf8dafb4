// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// powerTests hold a driver that can power-cycle to what it promises; the others skip them.
var powerTests = []test{
	{"power-cycle keeps the instance", func(t *testing.T, c *cloud) {
		cycler := c.cycler(t)
		r := c.ref()
		before := c.launch(t, r)
		r.ID, r.ProviderID = before.ID, before.ProviderID
		for range 2 {
			if err := cycler.PowerCycle(t.Context(), r); err != nil {
				t.Fatalf("PowerCycle: %v", err)
			}
		}
		c.eventually(t, "it runs again", func() bool {
			found := c.find(t, r)
			return len(found) == 1 && found[0].State == provider.StateRunning
		})
		c.wantInstances(t, 1)
		after := c.find(t, r)[0]
		if after.ID != before.ID || after.ProviderID != before.ProviderID {
			t.Errorf("it is %s (%s) now, was %s (%s)", after.ID, after.ProviderID, before.ID, before.ProviderID)
		}
	}},
	{"power-cycle of what is not there is NotFound", func(t *testing.T, c *cloud) {
		cycler := c.cycler(t)
		r := c.ref()
		wantCode(t, cycler.PowerCycle(t.Context(), r), provider.NotFound)
		c.launch(t, r)
		c.remove(t, r)
		wantCode(t, cycler.PowerCycle(t.Context(), r), provider.NotFound)
	}},
	{"power-cycle never takes another machine's instance for its id", func(t *testing.T, c *cloud) {
		cycler := c.cycler(t)
		mine, theirs := c.ref(), c.launch(t, c.ref())
		wantCode(t, cycler.PowerCycle(t.Context(), provider.Ref{UID: mine.UID, ID: theirs.ID, ProviderID: theirs.ProviderID}), provider.NotFound)
	}},
}

// switchTests hold a driver that can hold an instance off to what it promises.
var switchTests = []test{
	{"an instance is held off until it is let go", func(t *testing.T, c *cloud) {
		r, power := c.held(t)
		for range 2 {
			if err := power.PowerOff(t.Context(), r); err != nil {
				t.Fatalf("PowerOff: %v", err)
			}
		}
		off := func(i provider.Instance) bool {
			return i.Power == provider.PowerHeld && i.State == provider.StateStopped
		}
		c.eventually(t, "it is off", func() bool { found := c.find(t, r); return len(found) == 1 && off(found[0]) })
		for _, i := range c.list(t) {
			if i.UID == r.UID && !off(i) {
				t.Errorf("the list shows it as %s, power %q", i.State, i.Power)
			}
		}
		for range 2 {
			if err := power.PowerOn(t.Context(), r); err != nil {
				t.Fatalf("PowerOn: %v", err)
			}
		}
		c.eventually(t, "it runs again", func() bool {
			found := c.find(t, r)
			return len(found) == 1 && found[0].State == provider.StateRunning && found[0].Power == provider.PowerOn && found[0].ProviderID == r.ProviderID
		})
		c.wantInstances(t, 1)
	}},
	{"an instance that is held off can be deleted", func(t *testing.T, c *cloud) {
		r, power := c.held(t)
		if err := power.PowerOff(t.Context(), r); err != nil {
			t.Fatalf("PowerOff: %v", err)
		}
		c.remove(t, r)
		c.launch(t, c.ref()) // nothing of it holds the next one off
	}},
	{"power of what is not there is NotFound", func(t *testing.T, c *cloud) {
		r, power := c.held(t)
		other := c.ref()
		wantCode(t, power.PowerOff(t.Context(), other), provider.NotFound)
		wantCode(t, power.PowerOn(t.Context(), other), provider.NotFound)
		wantCode(t, power.PowerOff(t.Context(), provider.Ref{UID: other.UID, ID: r.ID, ProviderID: r.ProviderID}), provider.NotFound)
	}},
}

// held launches an instance that can be held off.
func (c *cloud) held(t *testing.T) (provider.Ref, provider.PowerSwitch) {
	t.Helper()
	power, can := c.Driver.(provider.PowerSwitch)
	if !can {
		t.Skip("the cloud holds nothing off")
	}
	r := c.ref()
	made := c.started(t, r)
	r.ID, r.ProviderID = made.ID, made.ProviderID
	if c.find(t, r)[0].Power != provider.PowerOn {
		t.Skip("the cloud does not hold this one off")
	}
	return r, power
}

func (c *cloud) cycler(t *testing.T) provider.PowerCycler {
	t.Helper()
	cycler, can := c.Driver.(provider.PowerCycler)
	if !can {
		t.Skip("the cloud cannot power-cycle")
	}
	return cycler
}
