// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// The walk-through on an engine of oVirt, with an affinity group that does not exist, and instances up and down (S12–S43, E43, E44).
func TestStoryOnOvirt(t *testing.T) {
	t.Parallel() // it waits more than it works
	if testing.Short() {
		t.Skip("starts the whole system")
	}
	playOn(t, "ovirt")
}
