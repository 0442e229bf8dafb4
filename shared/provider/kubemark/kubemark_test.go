// SPDX-License-Identifier: Apache-2.0

package kubemark

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.RunVirtual(t, func(t *testing.T) drivertest.Harness {
		t.Helper()
		store := &hanging{Store: new(Memory)}
		h := harness(t, store)
		h.Hang, h.Writes = store.hangs.Store, store.Store.(*Memory).Writes
		return h
	})
}

// harness is a cloud of its own in a store that may have others.
func harness(t *testing.T, store Store) drivertest.Harness {
	t.Helper()
	return drivertest.Harness{
		Provider: Provider(store),
		Account:  provider.Account{Kind: Kind, Region: "regionTwo", Namespace: "machines"},
		Spec:     json.RawMessage(`{"kind": "KubemarkMachineProviderSpec", "flavor": "4c12g30d", "region": "regionTwo", "bootSeconds": 1, "deletionTimeout": "300ms"}`),
		Invalid: []drivertest.Bad{
			{Spec: json.RawMessage(`{"zone": "nova"}`), Names: []string{"providerSpec.value.flavor", "Required value"}},
			{Spec: json.RawMessage(`{"numCores": 4}`), Names: []string{"providerSpec.value.flavor"}},
			{Spec: json.RawMessage(`{"flavor": "m1.large"}`), Names: []string{"providerSpec.value.flavor", "m1.large"}},
			{Spec: json.RawMessage(`{"flavor": "4c12g30d", "color": "red"}`), Names: []string{"providerSpec.value.color", "unknown field"}},
			{Spec: json.RawMessage(`{"numCores": 4, "memoryCapacity": "much"}`), Names: []string{"providerSpec.value.memoryCapacity", "much"}},
			{Spec: json.RawMessage(`{"numCores": -4, "memoryCapacity": "1Gi"}`), Names: []string{"providerSpec.value.numCores", "-4"}},
			{Spec: json.RawMessage(`{"flavor": "4c12g30d", "vanishAfter": "soon"}`), Names: []string{"providerSpec.value.vanishAfter", "soon"}},
			{Spec: json.RawMessage(`{"flavor": "4c12g30d", "bootSeconds": -1}`), Names: []string{"providerSpec.value.bootSeconds", "-1"}},
			{Spec: json.RawMessage(`{"flavor": "4c12g30d", "zone": "a b"}`), Names: []string{"providerSpec.value.zone", "a b"}},
			{Spec: json.RawMessage(`{"flavor": "4c12g30d", "labels": {"a": "b c"}}`), Names: []string{"providerSpec.value.labels[a]", "b c"}},
			{Spec: json.RawMessage(`{"flavor": "4c12g30d", "turnUnhealthyPeriodically": true}`), Names: []string{"turnUnhealthyPeriodically", "healthyDuration"}},
		},
		Missing: &drivertest.Bad{
			Spec:  json.RawMessage(`{"flavor": "4c12g30d", "network": "outer"}`),
			Names: []string{"providerSpec.value.network", "outer", "No network was found or provided"},
		},
		Exhaust: func(exhausted bool) {
			stock := map[string]string{}
			if exhausted {
				stock["stock"] = "4c12g30d: 0"
			}
			set(t, store, stock)
		},
		Untagged: func() (string, func() bool) { return untagged(t, store) },
	}
}

// set writes the cloud's settings.
func set(t *testing.T, store Store, data map[string]string) {
	t.Helper()
	o, err := store.Get(t.Context(), Settings)
	if errors.Is(err, ErrGone) {
		o, err = store.Create(t.Context(), Object{Name: Settings})
	}
	if err == nil {
		o.Data = data
		_, err = store.Update(t.Context(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// untagged makes an instance that no driver made.
func untagged(t *testing.T, store Store) (providerID string, exists func() bool) {
	t.Helper()
	r := Record{
		ID: identity("", time.Now().String()), Name: "somebody-elses", Spec: Spec{Flavor: "2c8g30d"}.filled(),
		Address: "10.9.9.9", Admitted: true, Created: time.Now(),
	}
	o, err := r.object()
	if err == nil {
		_, err = store.Create(t.Context(), o)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r.ProviderID(), func() bool {
		o, err := store.Get(t.Context(), r.ID)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Load(o)
		if err != nil {
			t.Fatal(err)
		}
		return !r.IsGone(time.Now())
	}
}

// hanging is a Store that may stop answering.
type hanging struct {
	Store
	hangs atomic.Bool
}

func (h *hanging) Get(ctx context.Context, name string) (Object, error) {
	if h.hangs.Load() {
		<-ctx.Done()
		return Object{}, ctx.Err()
	}
	return h.Store.Get(ctx, name)
}
