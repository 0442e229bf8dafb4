// SPDX-License-Identifier: Apache-2.0

package vsphere

import (
	"testing"

	"github.com/vmware/govmomi/object"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// Whichever call of a deletion fails: what is there is not gone, and a pod's volume does not go with it (R-S2, R-B29).
func TestFaultsOfADeletionLoseNothing(t *testing.T) {
	t.Parallel()
	v := newVCenter(t)
	d, w := v.wired(t, v.account())
	r, _, err := create(t, d, "worker-a", v.spec(nil))
	must(t, err)
	store, _ := v.volume(t, object.NewVirtualMachine(v.client(t), v.machines(t)["worker-a"].Self), "persistent")
	n := 0
	for len(v.machines(t)) > 0 {
		if n++; n > 100 {
			t.Fatal("Delete does not end")
		}
		once(w, "", n, "a proxy's page")
		if err := d.Delete(t.Context(), r); provider.CodeOf(err) == provider.NotFound {
			t.Fatalf("without call %d, Delete = %v", n, err)
		}
	}
	if n < 6 {
		t.Errorf("it took %d deletions: no call of most of them failed", n)
	}
	w.set(nil)
	if err := removed(t, d, r); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete of what is gone = %v", err)
	}
	if _, err := store.Stat(t.Context(), "kubevols/pvc-1.vmdk"); err != nil {
		t.Errorf("the volume is gone: %v", err)
	}
}
