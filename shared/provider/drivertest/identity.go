// SPDX-License-Identifier: Apache-2.0

package drivertest

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// identityTests hold a driver that can tell in which of the cloud's accounts it is to what it promises.
var identityTests = []test{
	{"the account is told the same whoever asks, and nothing is written", func(t *testing.T, c *cloud) {
		if _, can := c.Driver.(provider.Identified); !can {
			t.Skip("the cloud does not tell its accounts apart")
		}
		before := 0
		if c.Writes != nil {
			before = c.Writes()
		}
		mine, theirs := c.identity(t), c.other(t).identity(t)
		if again := c.identity(t); again != mine || theirs != mine {
			t.Errorf("the account is %q, then %q, and %q for another cluster", mine, again, theirs)
		}
		if c.Writes != nil && c.Writes() != before {
			t.Errorf("it took %d changes", c.Writes()-before)
		}
	}},
}

func (c *cloud) identity(t *testing.T) string {
	t.Helper()
	d, can := c.Driver.(provider.Identified)
	if !can {
		t.Fatal("another cluster's driver cannot tell")
	}
	of, err := d.Identity(t.Context())
	if err != nil {
		t.Fatalf("Identity: %v", err)
	}
	return of
}

// endedTests hold a driver whose cloud remembers ended instances to what it promises.
var endedTests = []test{
	{"nothing ended that is there, or never was", func(t *testing.T, c *cloud) {
		d, can := c.Driver.(provider.Ended)
		if !can {
			t.Skip("the cloud forgets instances at once")
		}
		r, stranger := c.ref(), c.ref()
		made := c.started(t, r)
		r.ID, r.ProviderID = made.ID, made.ProviderID
		stranger.ID, stranger.ProviderID = made.ID, made.ProviderID
		for whose, asked := range map[string]provider.Ref{"an instance that runs": r, "none": c.ref(), "another machine's": stranger} {
			if why, err := d.Ended(t.Context(), asked); why != "" || err != nil {
				t.Errorf("Ended of %s = %q, %v", whose, why, err)
			}
		}
		c.remove(t, r)
		if why, err := d.Ended(t.Context(), stranger); why != "" || err != nil {
			t.Errorf("Ended of another machine's instance = %q, %v", why, err)
		}
	}},
}
