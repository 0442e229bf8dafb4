// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"testing"
)

// The walk-through of a cluster on hosts, with the real baremetal-operator: a host that waited becomes a Node under its own
// name, and goes back to the stock; the installer's masters and workers, which carry no tag of ours, stay (S49–S71, E34).
func TestBareMetalStory(t *testing.T) {
	if testing.Short() || os.Getenv("METAL3") == "" {
		t.Skip("make test-metal3 runs this")
	}
	playOn(t, "metal3")
}
