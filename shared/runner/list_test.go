// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/machine"
	"github.com/machine-functions/machine-functions/shared/provider"
)

// A list has the instance of a Machine that records it in other words than the driver (B5).
func TestListIsReadByWhatAProviderIDNames(t *testing.T) {
	t.Parallel()
	_, byID := index([]provider.Instance{{ID: "6a1b2c3d", ProviderID: "openstack:///6a1b2c3d"}, {ID: "port", Child: true}, {ID: "of no name yet"}})
	for id, want := range map[string]string{"openstack:///6a1b2c3d": "6a1b2c3d", "openstack://RegionOne/6a1b2c3d": "6a1b2c3d", "openstack:///6a1b2c3e": "", "": ""} {
		if in := byID[machine.InstanceOf(id)]; in.ID != want {
			t.Errorf("%q is %q, want %q", id, in.ID, want)
		}
	}
}
