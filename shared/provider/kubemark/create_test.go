// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/machine-functions/machine-functions/shared/provider"
)

var frozen = json.RawMessage(`{"flavor": "4c12g30d", "region": "regionOne", "zone": "nova", "network": "default"}`)

func open(t *testing.T, store Store, cluster string) provider.Driver {
	t.Helper()
	d, err := Provider(store).Open(t.Context(), provider.Account{ClusterID: cluster, Region: "regionOne"})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func ref(n int) provider.Ref {
	return provider.Ref{UID: types.UID(fmt.Sprintf("uid-%d", n)), Name: fmt.Sprintf("worker-%d", n), Token: fmt.Sprintf("token-%d", n)}
}

// delayed is a Store whose every call takes a time of its own, so that calls of others come between.
type delayed struct {
	Store
	seed  int
	calls atomic.Int64
}

func (d *delayed) delay() {
	h := fnv.New32a()
	_, _ = fmt.Fprint(h, d.seed, d.calls.Add(1))
	time.Sleep(time.Duration(h.Sum32()%1000) * time.Millisecond)
}

func (d *delayed) Create(ctx context.Context, o Object) (Object, error) {
	d.delay()
	return d.Store.Create(ctx, o)
}

func (d *delayed) List(ctx context.Context, labels map[string]string) ([]Object, error) {
	d.delay()
	return d.Store.List(ctx, labels)
}

func (d *delayed) Update(ctx context.Context, o Object) (Object, error) {
	d.delay()
	return d.Store.Update(ctx, o)
}

// Whatever the order of their calls, as many creations succeed as there is stock, and every address is given once.
func TestStockIsNeverExceededNorLeft(t *testing.T) {
	t.Parallel()
	for seed := range 200 {
		stock, wanted := 1+seed%4, 2+seed%11
		synctest.Test(t, func(t *testing.T) {
			store := new(Memory)
			set(t, store, map[string]string{"stock": fmt.Sprintf("4c12g30d/nova: %d", stock)})
			d := open(t, &delayed{Store: store, seed: seed}, "ours")
			var wg sync.WaitGroup
			var made atomic.Int64
			for n := range wanted {
				for range 2 { // two invocations of every creation
					wg.Go(func() {
						_, err := d.Create(t.Context(), ref(n), frozen)
						if err != nil && provider.CodeOf(err) != provider.Exhausted {
							t.Errorf("seed %d: %v", seed, err)
						}
						if err == nil {
							made.Add(1)
						}
					})
				}
			}
			wg.Wait()
			history, err := History(t.Context(), store)
			if err != nil || len(history) != min(stock, wanted) {
				t.Errorf("seed %d: %d instances, %v, want %d of %d", seed, len(history), err, stock, wanted)
			}
			if n := int(made.Load()); n < len(history) || n > 2*len(history) {
				t.Errorf("seed %d: %d calls succeeded for %d instances", seed, n, len(history))
			}
			seen := map[string]bool{}
			for _, r := range history {
				if seen[r.Address] {
					t.Errorf("seed %d: %s is given twice", seed, r.Address)
				}
				seen[r.Address] = true
			}
		})
	}
}

// What was refused claims nothing any more: a claim that stayed would come before those of others once there is room.
func TestRefusedCreateLeavesNoClaim(t *testing.T) {
	t.Parallel()
	store := new(Memory)
	set(t, store, map[string]string{"stock": "4c12g30d/nova: 0"})
	if _, err := open(t, store, "ours").Create(t.Context(), ref(0), frozen); provider.CodeOf(err) != provider.Exhausted {
		t.Errorf("Create = %v", err)
	}
	if all, err := Records(t.Context(), store, false); err != nil || len(all) != 0 {
		t.Errorf("%+v, %v are left", all, err)
	}
}

// An account is of one region: what is in another is neither listed nor removed there.
func TestInstancesOfAnotherRegionAreNotOurs(t *testing.T) {
	t.Parallel()
	store := new(Memory)
	d := open(t, store, "ours")
	if _, err := d.Create(t.Context(), ref(0), frozen); err != nil {
		t.Fatal(err)
	}
	elsewhere, err := Provider(store).Open(t.Context(), provider.Account{Kind: Kind, ClusterID: "ours", Region: "regionTwo"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := elsewhere.List(t.Context())
	if gone := elsewhere.Delete(t.Context(), ref(0)); err != nil || len(all) != 0 || provider.CodeOf(gone) != provider.NotFound {
		t.Errorf("List = %+v, %v; Delete = %v", all, err, gone)
	}
	if all, err := d.List(t.Context()); err != nil || len(all) != 1 {
		t.Errorf("in its own region: List = %+v, %v", all, err)
	}
}

func TestAddressThatIsTakenIsNotGivenAgain(t *testing.T) {
	t.Parallel()
	store := new(Memory)
	taken := address(identity("ours", "token-1"), "")
	o, err := (Record{
		ID: identity("", ""), Name: "other", Address: taken, Spec: Spec{Flavor: "2c8g30d"}.filled(), Admitted: true, Created: time.Now(),
	}).object()
	if err == nil {
		_, err = store.Create(t.Context(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
	i, err := open(t, store, "ours").Create(t.Context(), ref(1), frozen)
	if err != nil || i.Addresses[0].Address == taken {
		t.Errorf("Create = %v, %v: the address is taken", i.Addresses, err)
	}
}

func TestClaimOfACallThatDiedGoesOn(t *testing.T) {
	t.Parallel()
	store := new(Memory)
	d := open(t, store, "ours").(*driver)
	s, err := parse(frozen)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.claim(t.Context(), ref(1), s); err != nil {
		t.Fatal(err)
	}
	if found, err := d.Find(t.Context(), ref(1)); err != nil || len(found) != 0 {
		t.Errorf("found %v, %v: a claim is no instance", found, err)
	}
	if i, err := d.Create(t.Context(), ref(1), frozen); err != nil || i.ID != identity("ours", "token-1") {
		t.Errorf("Create = %v, %v", i, err)
	}
	if _, err := d.claim(t.Context(), ref(2), s); err != nil {
		t.Fatal(err)
	}
	if err := d.Delete(t.Context(), ref(2)); provider.CodeOf(err) != provider.NotFound {
		t.Errorf("Delete of a claim = %v, want NotFound", err)
	}
	if all, err := Records(t.Context(), store, false); err != nil || len(all) != 1 {
		t.Errorf("records %v, %v: the claim is left", all, err)
	}
}

func TestNameThatNoNodeCanHave(t *testing.T) {
	t.Parallel()
	r := ref(1)
	r.Name = "Worker_1"
	_, err := open(t, new(Memory), "ours").Create(t.Context(), r, frozen)
	if provider.CodeOf(err) != provider.Invalid {
		t.Errorf("Create = %v, want Invalid", err)
	}
}

func TestClusterIDThatCannotBeATag(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"", "a b"} {
		_, err := Provider(new(Memory)).Open(t.Context(), provider.Account{ClusterID: id})
		if provider.CodeOf(err) != provider.Invalid {
			t.Errorf("Open for cluster %q = %v, want Invalid", id, err)
		}
	}
}

func TestHistoryTellsEverything(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := new(Memory)
		d := open(t, store, "ours")
		for n := range 3 {
			if _, err := d.Create(t.Context(), ref(n), frozen); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if err := d.Delete(t.Context(), ref(1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		history, err := History(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range history {
			names = append(names, r.Name)
		}
		if !slices.Equal(names, []string{"worker-0", "worker-1", "worker-2"}) || history[1].Deleted.Sub(history[1].Created) != 2*time.Second {
			t.Errorf("history %+v", history)
		}
	})
}
