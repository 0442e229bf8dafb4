// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/machine-functions/machine-functions/shared/provider"
)

// What a token stood for is not made a second time, nor handed out while it goes, however it went (R-S1, R-S17).
func TestTokenOfWhatIsGoneIsUsedUp(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Record){
		"it goes":          func(r *Record) { r.Deleted, r.Spec.DeletionTimeout = time.Now(), &metav1.Duration{Duration: time.Hour} },
		"it went":          func(r *Record) { r.Deleted = time.Now().Add(-time.Hour) },
		"it vanished":      func(r *Record) { r.Fault = FaultVanished },
		"it is history":    func(r *Record) { r.Gone = time.Now() },
		"its time is over": func(r *Record) { r.Spec.VanishAfter = &metav1.Duration{Duration: time.Nanosecond} },
	} {
		store := new(Memory)
		d := open(t, store, "ours")
		if _, err := d.Create(t.Context(), ref(1), frozen); err != nil {
			t.Fatal(err)
		}
		o, err := store.Get(t.Context(), identity("ours", "token-1"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Load(o)
		if err != nil {
			t.Fatal(err)
		}
		change(&r)
		if _, err := r.Save(t.Context(), store); err != nil {
			t.Fatal(err)
		}
		if i, err := d.Create(t.Context(), ref(1), frozen); provider.CodeOf(err) != provider.NotFound {
			t.Errorf("%s: Create = %+v, %v", name, i, err)
		}
	}
}

// broken is a Store of which some calls fail.
type broken struct {
	Store
	stock, addresses, drop bool
}

var errBroken = errors.New("etcdserver: request timed out")

func (b broken) List(ctx context.Context, labels map[string]string) ([]Object, error) {
	if _, address := labels[labelAddress]; b.addresses && address || b.stock && !address {
		return nil, errBroken
	}
	return b.Store.List(ctx, labels)
}

func (b broken) Delete(ctx context.Context, o Object) error {
	if b.drop {
		return errBroken
	}
	return b.Store.Delete(ctx, o)
}

// Nobody takes the stock or the address of others because these could not be listed, and a claim that could not be taken back is no refusal:
// it may still become an instance (R-S12).
func TestWhatCannotBeSeenIsNotFree(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		stock  string
		broken broken
	}{
		"the stock could not be listed":     {"4c12g30d/nova: 1", broken{stock: true}},
		"the addresses could not be listed": {"", broken{addresses: true}},
		"the claim could not be taken back": {"4c12g30d/nova: 0", broken{drop: true}},
	} {
		store := new(Memory)
		if tt.stock != "" {
			set(t, store, map[string]string{"stock": tt.stock})
		}
		tt.broken.Store = store
		i, err := open(t, tt.broken, "ours").Create(t.Context(), ref(1), frozen)
		if code := provider.CodeOf(err); !errors.Is(err, errBroken) || code == provider.Exhausted || code == provider.NotFound {
			t.Errorf("%s: Create = %+v, %v", name, i, err)
		}
		if history, err := History(t.Context(), store); err != nil || len(history) != 0 {
			t.Errorf("%s: %+v, %v: nothing was made", name, history, err)
		}
	}
}
