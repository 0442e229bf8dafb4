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

func (c *cloud) cycler(t *testing.T) provider.PowerCycler {
	t.Helper()
	cycler, can := c.Driver.(provider.PowerCycler)
	if !can {
		t.Skip("the cloud cannot power-cycle")
	}
	return cycler
}
