// SPDX-License-Identifier: Apache-2.0

package machine

import "testing"

// What a driver of ours records, or another system did, beside what a cloud controller or a kubelet says of the same instance (B5).
func TestProviderIDsOfOneInstance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, ours, theirs string
		same               bool
	}{
		{"the same", "kubemark://abi/i-1", "kubemark://abi/i-1", true},
		{"a region, told by OS_CCM_REGIONAL", "openstack:///6a1b2c3d", "openstack://RegionOne/6a1b2c3d", true},
		{"a region, and another instance", "openstack:///6a1b2c3d", "openstack://RegionOne/6a1b2c3e", false},
		{"no zone, as a kubelet may be told", "aws:///us-east-2a/i-0b1", "aws:////i-0b1", true},
		{"another instance of that zone", "aws:///us-east-2a/i-0b1", "aws:///us-east-2a/i-0b2", false},
		{"another cloud", "aws:///us-east-2a/i-1", "openstack:///i-1", false},
		{"a BIOS's letters", "vsphere://4228e784-3f9e", "vsphere://4228E784-3F9E", true},
		{"Azure's letters", "azure:///subscriptions/s/resourceGroups/RG/providers/Microsoft.Compute/virtualMachines/vm-0",
			"azure:///subscriptions/s/resourcegroups/rg/providers/microsoft.compute/virtualmachines/vm-0", true},
		{"a name in two groups", "azure:///subscriptions/s/resourceGroups/a/providers/Microsoft.Compute/virtualMachines/vm-0",
			"azure:///subscriptions/s/resourceGroups/b/providers/Microsoft.Compute/virtualMachines/vm-0", false},
		{"a name in two zones", "gce://project/us-a/vm-0", "gce://project/us-b/vm-0", false},
		{"a host in two namespaces", "baremetalhost:///a/host-0/uid", "baremetalhost:///b/host-0/uid", false},
		{"a host as others name it", "baremetalhost:///a/host-0/uid", "metal3://a/host-0/machine", false},
		{"a region, and nothing in it", "openstack:///6a1b2c3d", "openstack://6a1b2c3d/", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, n := at("a", c.ours, "1"), joined("n", c.theirs, true, "1")
			if SameInstance(m, n) != c.same || OtherInstance(m, n) == c.same || Fits(m, n) != c.same || RunsOn(c.ours, nil, n) != c.same {
				t.Errorf("same %v, other %v, fits %v, runs on it %v; want %v", SameInstance(m, n), OtherInstance(m, n), Fits(m, n), RunsOn(c.ours, nil, n), c.same)
			}
			if found := IndexOf([]*Machine{m}).Of(n); len(found) == 1 != c.same {
				t.Errorf("found %d by the Node", len(found))
			}
		})
	}
}
