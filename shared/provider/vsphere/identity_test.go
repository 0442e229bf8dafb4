// SPDX-License-Identifier: Apache-2.0

package vsphere

import "testing"

// A vCenter is known by its own id, which came with the login: nothing more is asked.
func TestIdentityIsTheVCentersID(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, _ := v.wired(t, v.account())
	want := v.client(t).ServiceContent.About.InstanceUuid
	if got, err := d.Identity(t.Context()); got == "" || got != want || err != nil {
		t.Errorf("Identity = %q, %v; want %q", got, err, want)
	}
}
