// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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

// A Node that is not Ready since a moment ago may be restarting; not so one that is silent for longer, that is new, or of which a clock that was
// ahead says since when (RELIABILITY 2b.10, G7).
func TestNodeMayRestart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	for name, c := range map[string]struct {
		ready       corev1.ConditionStatus
		since, made time.Duration // ago
		want        bool
	}{
		"not ready since a moment ago":     {corev1.ConditionFalse, time.Minute, time.Hour, true},
		"not heard of since a moment ago":  {corev1.ConditionUnknown, 14 * time.Minute, time.Hour, true},
		"not heard of for long":            {corev1.ConditionUnknown, 15 * time.Minute, time.Hour, false},
		"ready":                            {corev1.ConditionTrue, time.Minute, time.Hour, false},
		"new":                              {corev1.ConditionFalse, time.Minute, time.Minute, false},
		"new, by a clock that is ahead":    {corev1.ConditionFalse, time.Minute, -time.Hour, false},
		"silent, by a clock that is ahead": {corev1.ConditionUnknown, -time.Hour, 2 * time.Hour, false},
	} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(now.Add(-c.made))}}
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: c.ready, LastTransitionTime: metav1.NewTime(now.Add(-c.since))}}
		if got := NodeMayRestart(n, now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if NodeMayRestart(&corev1.Node{}, now) {
		t.Error("a Node that says nothing of itself may restart")
	}
}
