// SPDX-License-Identifier: Apache-2.0

package azure

import (
	"testing"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/test/arm"
)

// data is a data disk of a spec.
func data(suffix, policy string) map[string]any {
	return map[string]any{"dataDisks": []any{map[string]any{"nameSuffix": suffix, "diskSizeGB": 64, "lun": 0, "deletionPolicy": policy}}}
}

// swept removes what a list shows as the sweep does, which knows a leftover by its own name, until there is nothing left.
func swept(t *testing.T, d *driver) {
	t.Helper()
	for range 8 {
		all, err := d.List(t.Context())
		must(t, err)
		for _, in := range all {
			err := d.Delete(t.Context(), provider.Ref{Name: in.Name, ID: in.ID, ProviderID: in.ProviderID, Token: in.Token, UID: in.UID})
			if err != nil && provider.CodeOf(err) != provider.NotFound {
				t.Fatalf("Delete of %s = %v", in.Name, err)
			}
		}
	}
}

// What outlived its instance goes by what lists tell of it: its own name is no Machine's (R-S2).
func TestLeftoversGoByWhatListsTell(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	_, _, err := create(t, d, "worker-a", spec(map[string]any{"publicIP": true}))
	must(t, err)
	cloud.Keep(arm.Cards, "worker-a-nic", true)
	cloud.Keep(arm.Addresses, "worker-a-ip", true)
	must(t, d.drop(t.Context(), d.id(instanceKind, "worker-a")))
	swept(t, d)
	if left := cloud.Names(arm.Cards, arm.Addresses, arm.Disks); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// A removal that knows no spec removes the data disks too that stayed when their instance went, and says nothing is there when that is so.
func TestDataDisksThatStayedGo(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(data("logs", "Delete")))
	must(t, err)
	cloud.KeepDisk("worker-a", "worker-a_logs")
	deleted(t, d, r)
	if left := cloud.Names(arm.Disks); len(left) != 0 {
		t.Errorf("left are %v", left)
	}
}

// A copy of an instance, which carries its tags, hides nothing of what the original left.
func TestCopyHidesNoLeftover(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	_, _, err := create(t, d, "worker-a", spec(nil))
	must(t, err)
	cloud.Keep(arm.Cards, "worker-a-nic", true)
	cloud.Copy("worker-a", "restored")
	all, err := d.List(t.Context())
	must(t, err)
	if len(all) != 2 {
		t.Fatalf("listed %+v", all)
	}
	must(t, d.drop(t.Context(), d.id(instanceKind, "worker-a")))
	all, err = d.List(t.Context())
	if err != nil || len(all) != 2 || !all[1].Child || all[1].Name != "worker-a-nic" {
		t.Errorf("List = %+v, %v", all, err)
	}
}

// A disk of a living instance that somebody took off is no leftover: whoever did may want to put it back.
func TestDiskThatWasTakenOffIsNoLeftover(t *testing.T) {
	t.Parallel()
	cloud := &arm.Cloud{}
	d, _ := wired(t, cloud, account())
	r, _, err := create(t, d, "worker-a", spec(data("logs", "Delete")))
	must(t, err)
	cloud.TakeOff("worker-a", "worker-a_logs")
	if all, err := d.List(t.Context()); err != nil || len(all) != 1 || all[0].Child {
		t.Errorf("List = %+v, %v", all, err)
	}
	deleted(t, d, r)
	if left := cloud.Names(arm.Disks); len(left) != 0 { // with its Machine it goes
		t.Errorf("left are %v", left)
	}
}
