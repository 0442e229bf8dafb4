// SPDX-License-Identifier: Apache-2.0

package metal3

import (
	"testing"
	"testing/synctest"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// A host that was restored from a backup, or deleted while detached and applied again, keeps its consumer and has another
// UID. It is the same instance still.
func TestHostMadeAnewIsTheSameInstance(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStock(1)
		d := open(t, s)
		spec := specOf(image)
		in, err := d.Create(t.Context(), chosen(t, d, worker, spec), spec)
		if err != nil {
			t.Fatal(err)
		}
		follow(t, d, provider.StateRunning)
		s.change(t, "host-0", func(h *host) { h.UID = "another-uid" })
		r := worker
		r.ID, r.ProviderID = in.ID, in.ProviderID
		found, err := d.Find(t.Context(), r)
		listed, listErr := d.List(t.Context())
		if err != nil || listErr != nil {
			t.Fatal(err, listErr)
		}
		for _, all := range [][]provider.Instance{found, listed} {
			if len(all) != 1 || !all[0].Sole || all[0].UID != worker.UID || all[0].ID != in.ID || all[0].State != provider.StateRunning {
				t.Errorf("of %s %+v", in.ID, all)
			}
		}
	})
}

// A host that an installer gave to a Machine says no UID, and is known by what the Machine records: its name, not its UID.
func TestHostOfAnInstallerMadeAnewIsTheSameInstance(t *testing.T) {
	t.Parallel()
	s := newStock(1)
	recorded, exists := s.untagged()
	d := open(t, s)
	s.change(t, "host-99", func(h *host) { h.UID = "another-uid" })
	master := provider.Ref{UID: "uid-of-master-0", Name: "master-0", ProviderID: recorded}
	found, err := d.Find(t.Context(), master)
	if err != nil || len(found) != 1 || found[0].ProviderID != recorded {
		t.Errorf("of %s %+v, %v", recorded, found, err)
	}
	for _, in := range found { // the name of its consumer proves nothing beyond what is recorded
		if in.Sole || in.UID != "" || in.ID != "host-99" {
			t.Errorf("it has no claim: %+v", in)
		}
	}
	another := master
	another.Name = "master-1"
	if found, err := d.Find(t.Context(), another); err != nil || len(found) != 0 {
		t.Errorf("of another Machine %+v, %v", found, err)
	}
	if !exists() {
		t.Error("the host was let go")
	}
}
