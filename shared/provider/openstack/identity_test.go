// SPDX-License-Identifier: Apache-2.0

package openstack

import (
	"testing"
	"testing/synctest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Whose project it is comes with the login, which every other call needs too; who cannot log in does not know it.
func TestIdentityIsTheProject(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newFake()
		d, err := providerOf(f).Open(t.Context(), accountOf("secret"))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got, err := d.(provider.Identified).Identity(t.Context()); got != own || err != nil {
				t.Errorf("Identity = %q, %v; want %q", got, err, own)
			}
		}
		if len(f.calls) != 1 {
			t.Errorf("%d requests, want the login alone: %v", len(f.calls), f.calls)
		}
		f.refuses = "stale"
		stale, err := providerOf(f).Open(t.Context(), accountOf("stale"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := stale.(provider.Identified).Identity(t.Context()); got != "" || provider.CodeOf(err) != provider.Denied {
			t.Errorf("Identity = %q, %v; want it denied", got, err)
		}
	})
}
