// SPDX-License-Identifier: Apache-2.0

package e2e

import "testing"

// A set in a zone of Azure's, with names and certificates of Azure's own behind a proxy: instances up and down, each with its Node (E38,
// E40).
func TestStoryOnAzure(t *testing.T) {
	t.Parallel() // it waits more than it works
	if testing.Short() {
		t.Skip("starts the whole system")
	}
	playOn(t, "azure")
}
