// SPDX-License-Identifier: Apache-2.0

package memory_test

import (
	"context"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/machine-functions/machine-functions/shared/provider"
	"github.com/machine-functions/machine-functions/shared/provider/drivertest"
	"github.com/machine-functions/machine-functions/shared/provider/memory"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	clouds := map[string]func() *memory.Cloud{
		"plain":      func() *memory.Cloud { return &memory.Cloud{} },
		"slow":       func() *memory.Cloud { return &memory.Cloud{Boot: 3 * time.Second, Removal: 2 * time.Second} },
		"with ports": func() *memory.Cloud { return &memory.Cloud{Ports: 2, Removal: time.Second} },
		"lagging":    func() *memory.Cloud { return &memory.Cloud{Lag: 3 * time.Second, Removal: time.Second} },
		"held off":   func() *memory.Cloud { return &memory.Cloud{Hold: time.Second, Boot: time.Second, Removal: time.Second} },
		"untokened":  func() *memory.Cloud { return &memory.Cloud{Untokened: true, Window: 84 * time.Second} },
		"all at once": func() *memory.Cloud {
			return &memory.Cloud{Untokened: true, Window: 87 * time.Second, Ports: 2, Lag: 3 * time.Second, Boot: time.Second, Removal: time.Second}
		},
	}
	for name, cloud := range clouds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			drivertest.RunVirtual(t, func(*testing.T) drivertest.Harness { return harness(cloud()) })
		})
	}
}

func harness(c *memory.Cloud) drivertest.Harness {
	var hangs atomic.Bool
	c.Networks = []string{"inner"}
	if c.Window == 0 {
		c.Window = c.Lag + 24*time.Second
	}
	c.Fault = func(ctx context.Context, call memory.Call) error {
		if hangs.Load() && !call.After {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	}
	return drivertest.Harness{
		Provider: c.Provider(),
		Lag:      c.Lag,
		Account:  provider.Account{Kind: memory.Kind, Region: "east", Namespace: "machines", Secret: "keys"},
		Spec:     json.RawMessage(`{"kind": "MemoryMachineProviderSpec", "type": "small", "region": "east", "secret": "keys", "network": "inner"}`),
		Invalid: []drivertest.Bad{
			{Spec: json.RawMessage(`{"type": "huge"}`), Names: []string{"providerSpec.value.type", "huge"}},
			{Spec: json.RawMessage(`{"zone": "z"}`), Names: []string{"providerSpec.value.type", `""`}},
			{Spec: json.RawMessage(`{"type": "small", "color": "red"}`), Names: []string{"color"}},
		},
		Missing: &drivertest.Bad{Spec: json.RawMessage(`{"type": "small", "network": "outer"}`), Names: []string{"providerSpec.value.network", "outer"}},
		Exhaust: func(exhausted bool) {
			c.SetStock("small", -1)
			if exhausted {
				c.SetStock("small", 0)
			}
		},
		Hang:   hangs.Store,
		Writes: func() int { return len(c.History()) },
		Children: func() int {
			n := 0
			for _, i := range c.Instances() {
				if i.Child {
					n++
				}
			}
			return n
		},
		Foreign: func(clusterID string) string {
			a := provider.Account{Kind: memory.Kind, Region: "east", Namespace: "machines", Secret: "keys"}
			return "memory:///" + c.Add(a.Key(), clusterID, provider.Instance{Name: "master-0"})
		},
		Untagged: func() (string, func() bool) {
			id := c.Add("", "", provider.Instance{Name: "somebody-elses"})
			return "memory:///" + id, func() bool {
				for _, i := range c.Instances() {
					if i.ID == id {
						return true
					}
				}
				return false
			}
		},
	}
}
